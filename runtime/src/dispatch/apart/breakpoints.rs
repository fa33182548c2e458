//! Breakpoints that others put into the program's code: they are met there, and the program's own instruction is executed and counted.
//!
//! Runs in the target on the runtime's stack, in the dispatcher.

use crate::buffer::Shared;
use crate::context::addresses::AppPc;
use crate::context::numbers::CounterId;
use crate::context::stepping::MEETS_ONCE;
use crate::context::stepping::MET_ONCE;
use crate::context::ThreadContext;
use crate::cpu::decode::placed;
use crate::cpu::guarded;
use crate::dispatch::signals::natively;
use crate::instrument::indirect::pads::add_to_counter;
use crate::instrument::recorders::has_cells;
use crate::instrument::ENGINE;
use crate::sys::mappings::tracer;

/// Whether a breakpoint that another put in front of the thread is still to be met.
pub fn is_due(context: &ThreadContext, shared: Shared) -> bool {
    if placed::next_of(context.registers.pc).is_none() || context.registers.passes_breakpoint() {
        return false;
    }
    // What is executed there has no tag, and no trap of the program's own.
    let is_copy_needed = context.registers.are_stepped() || has_cells(shared);
    if is_copy_needed && placed::is_for_once(context.registers.pc) {
        return false;
    }
    let mut there = [0];
    let is_there = guarded::read_code(&mut there, context.registers.pc) == there.len();
    is_there && placed::instruction_at(context.registers.pc).is_some_and(|(instruction, _)| instruction[0] != there[0])
}

/// Whether somebody debugs the thread. Not the controller, which traces it as well, to stop it: the thread runs for a moment before it is.
pub fn has_tracer(shared: Shared) -> bool {
    let tracer = tracer();
    tracer != 0 && tracer != shared.header().controller_tid
}

/// Lets the thread meet the breakpoint at the context's pc, that another put there, as natively; it comes back in front of it,
/// or behind it where the instruction is to be executed once. Comes back at once as `natively::fault_natively` does.
pub fn meet(context: &mut ThreadContext, n_changes: u64) {
    context.stepping.breakpoint_next = placed::next_of(context.registers.pc).unwrap_or(AppPc::NOWHERE);
    context.stepping.breakpoint_once = if placed::is_for_once(context.registers.pc) { MEETS_ONCE } else { 0 };
    context.stepping.breakpoint_counter = ENGINE.lock().probe_counter(context.registers.pc);
    context.stepping.n_breakpoint_steps = 0;
    natively::fault_natively(context, n_changes);
    context.stepping.breakpoint_next = AppPc::NOWHERE;
}

/// Counts the instruction that was executed where its breakpoint is, if one was.
pub fn count_met(context: &mut ThreadContext) {
    if context.stepping.breakpoint_once == MET_ONCE {
        context.stepping.breakpoint_once = 0;
        if context.stepping.breakpoint_counter != CounterId::NONE {
            add_to_counter(context, context.stepping.breakpoint_counter, 1);
        }
    }
}

/// A fault came where one was to be met: a breakpoint of one byte, and the instruction in whose place it is has no more, is as if that
/// had been executed.
pub fn settle_fault(context: &mut ThreadContext) {
    let met = core::mem::take(&mut context.stepping.breakpoint_next);
    if met != AppPc::NOWHERE && met == context.registers.pc {
        context.stepping.breakpoint_once = MET_ONCE;
        count_met(context);
    }
}
