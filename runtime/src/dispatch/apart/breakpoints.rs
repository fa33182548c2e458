//! Breakpoints that others put into the program's code: they are met there, and the program's own instruction is executed and counted.
//!
//! Runs in the target on the runtime's stack, in the dispatcher.

use crate::buffer::Shared;
use crate::cache::NONE;
use crate::cpu::context::{ThreadContext, MEETS_ONCE, MET_ONCE};
use crate::cpu::decode::placed;
use crate::cpu::guarded;
use crate::dispatch::signals::natively;
use crate::instrument::indirect::pads::add_to_counter;
use crate::instrument::recorders::has_cells;
use crate::instrument::ENGINE;
use crate::sys::kernel::{RESUME_FLAG, TRAP_FLAG};

/// Whether a breakpoint that another put in front of the thread is still to be met.
pub fn is_due(context: &ThreadContext, shared: Shared) -> bool {
    if placed::next_of(context.rip).is_none() || context.rflags & RESUME_FLAG != 0 {
        return false;
    }
    // What is executed there has no tag, and no trap of the program's own.
    let is_copy_needed = context.rflags & TRAP_FLAG != 0 || has_cells(shared);
    if is_copy_needed && placed::is_for_once(context.rip) {
        return false;
    }
    let mut there = [0];
    let is_there = guarded::read_code(&mut there, context.rip) == there.len();
    is_there && placed::instruction_at(context.rip).is_some_and(|(instruction, _)| instruction[0] != there[0])
}

/// Lets the thread meet the breakpoint at the context's rip, that another put there, as natively; it comes back in front of it,
/// or behind it where the instruction is to be executed once. Comes back at once as `natively::fault_natively` does.
pub fn meet(context: &mut ThreadContext, n_changes: u64) {
    context.breakpoint_next = placed::next_of(context.rip).unwrap_or(0);
    context.breakpoint_once = if placed::is_for_once(context.rip) { MEETS_ONCE } else { 0 };
    context.breakpoint_counter = ENGINE.lock().probe_counter(context.rip);
    context.n_breakpoint_steps = 0;
    natively::fault_natively(context, n_changes);
    context.breakpoint_next = 0;
}

/// Counts the instruction that was executed where its breakpoint is, if one was.
pub fn count_met(context: &mut ThreadContext) {
    if context.breakpoint_once == MET_ONCE {
        context.breakpoint_once = 0;
        if context.breakpoint_counter != NONE {
            add_to_counter(context, context.breakpoint_counter, 1);
        }
    }
}

/// A fault came where one was to be met: a breakpoint of one byte, and the instruction in whose place it is has no more, is as if that
/// had been executed.
pub fn settle_fault(context: &mut ThreadContext) {
    let met = core::mem::take(&mut context.breakpoint_next);
    if met != 0 && met == context.rip {
        context.breakpoint_once = MET_ONCE;
        count_met(context);
    }
}
