//! Holding threads: the controller holds the process, has a thread make one step, or set a breakpoint where it comes to.
//!
//! No tracer is needed for it. A thread that is stopped waits in the dispatcher, its own state complete, and tells where it
//! is; should the controller be killed, it goes on. What the controller tells all threads while they are stopped, each carries
//! out before it executes anything more.

use crate::buffer::{RingWriter, Shared};
use crate::context::addresses::AppPc;
use crate::context::hold::{STEP_DUE, STEP_MADE};
use crate::context::numbers::FragmentId;
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::cpu::decode::placed;
use crate::cpu::probe_points;
use crate::cpu::thread_pointer;
use crate::dispatch::apart::{ahead, captured_calls};
use crate::dispatch::calls::call_table;
use crate::dispatch::flow::{landings, paths};
use crate::dispatch::life::begin;
use crate::dispatch::signals::{calling, masks};
use crate::instrument::captures::places::are_calls_captured;
use crate::instrument::{BuildError, Engine, ENGINE};
use crate::protocol::{event_kind, hold_reason, hold_reply};
use crate::thread::registry::{write_event, writer_of};

/// Why the thread is to stop in front of the context's pc; `None`: it is not. A process of its own in this memory
/// is not: the controller holds the threads of one process.
pub fn reason(context: &mut ThreadContext, shared: Shared) -> Option<u32> {
    let stops = core::mem::take(&mut context.capture.stops) != 0;
    if stops && context.process.sharing == Sharing::Thread {
        return Some(hold_reason::CAPTURE);
    }
    if context.process.sharing != Sharing::Thread || context.hold.step == STEP_DUE {
        return None;
    }
    if context.hold.step == STEP_MADE {
        context.hold.step = 0;
        return Some(hold_reason::STEPPED);
    }
    if context.hold.passed_pc != context.registers.pc {
        context.hold.passed_pc = AppPc::NOWHERE;
        if shared.has_breakpoint(context.registers.pc.raw()) {
            return Some(hold_reason::BREAKPOINT);
        }
    }
    (shared.hold_ticket() != 0 && !shared.is_controller_gone()).then_some(hold_reason::ASKED)
}

/// Whether the thread, which is a process of its own in this memory, is to go on natively: somebody traces it.
pub fn is_to_leave(context: &ThreadContext, shared: Shared) -> bool {
    context.process.sharing != Sharing::Thread && shared.released_task() == context.tid
}

/// Waits for the controller, stopped, until that says how to go on, or is gone. No lock held, the context complete.
pub fn stop(context: &mut ThreadContext, shared: Shared, reason: u32) {
    // Where the program would have been aborted natively, for that it stopped.
    crate::dispatch::flow::rseq::settle(context);
    let writer = writer_of(context, shared);
    let wait = |context: &ThreadContext| {
        let others = [thread_pointer(), u64::from(context.capture.shown_behind)];
        writer.wait_stopped(reason, context.registers.held(), context.vector.held(), others)
    };
    let mut reply = wait(context);
    while reply == hold_reply::CALL && !calling::begin(context, &writer) {
        reply = wait(context);
    }
    if reply == hold_reply::CALL {
        context.hold.passed_pc = AppPc::NOWHERE;
        context.hold.step = 0;
        return;
    }
    if matches!(reply, hold_reply::GO_ON_CHANGED | hold_reply::STEP_CHANGED) {
        context.registers.set_held(&writer.told_registers());
    }
    context.hold.passed_pc = context.registers.pc;
    match reply {
        hold_reply::STEP | hold_reply::STEP_CHANGED => context.hold.step = STEP_DUE,
        // A step on whose way something was captured is still to be made.
        _ if reason == hold_reason::CAPTURE => {}
        _ => context.hold.step = 0,
    }
}

/// Whether the thread is to execute the instruction at the context's pc by itself, in code that nothing is linked to: for a
/// step, because nobody else may pass there, or because its path is to go on in front of the next block.
pub fn goes_alone(context: &ThreadContext, engine: &Engine) -> bool {
    context.hold.step == STEP_DUE || context.path.is_due || engine.stops_at(context.registers.pc)
}

/// Executes that instruction: where its code is. It is made anew each time, as seldom as that is; but for a breakpoint of the
/// program's, which it comes by.
pub fn go_alone(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
) -> Result<FragmentId, BuildError> {
    let id = engine.build_alone(writer, context.registers.pc, context.path.is_due)?;
    context.hold.passed_pc = AppPc::NOWHERE;
    if context.hold.step == STEP_DUE {
        context.hold.step = STEP_MADE;
    }
    if let Some(point) = probe_points::find(context.registers.pc).filter(|_| !context.registers.passes_breakpoint()) {
        // As the kernel has it: one execution is one hit, whatever comes between both (arch/x86/kernel/hw_breakpoint.c,
        // hw_breakpoint_handler). The processor clears the flag behind the instruction.
        context.registers.pass_breakpoint();
        probe_points::come_by(point);
    }
    Ok(id)
}

/// The thread came by the breakpoint in front of it, if there is one, and did not execute the instruction.
pub fn stay_at_probe(context: &mut ThreadContext) {
    if probe_points::find(context.registers.pc).is_some() || placed::is_known(context.registers.pc) {
        context.registers.pass_breakpoint();
    }
}

/// Carries out what the controller told all threads since this one did so last, in front of the context's pc. No lock held.
pub fn carry_out(context: &mut ThreadContext, shared: Shared) {
    let n_filters = shared.filter_count();
    let n_directives = shared.directive_count();
    if context.hold.directives_done == n_directives {
        context.hold.filters_seen = n_filters;
        return;
    }
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, shared);
    // Code is read that may be there no more.
    let has_other_mode = masks::with_faults(context, |_| engine.carry_out(&writer, n_directives));
    if has_other_mode || are_calls_captured() {
        call_table::handle_what(&engine);
    }
    if core::mem::take(&mut context.capture.has_handed_calls) != 0 {
        // Code is renewed, which may be there no more.
        masks::with_faults(context, |context| captured_calls::take_over(&mut engine, &writer, context));
    }
    if has_other_mode {
        landings::forget_ways(&mut engine);
    }
    masks::with_faults(context, |context| ahead::translate(&mut engine, &writer, context));
    context.hold.directives_done = n_directives;
    let before = core::mem::replace(&mut context.hold.filters_seen, n_filters);
    if before != n_filters {
        let is_included = |count| u64::from(shared.is_included_by(context.registers.pc.raw(), count));
        let details = [is_included(before), is_included(n_filters), 0];
        write_event(&writer, event_kind::RECORDING_CHANGED, context.registers.pc, details);
    }
    drop(engine);
    follow_mode(context, shared);
}

/// The same where the thread has come back from a system call, before that is dealt with: it may have been in there since before the
/// controller asked for such calls. Not where it is to stop first, since more may be changed meanwhile.
pub fn catch_up(context: &mut ThreadContext) {
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let is_late = context.hold.directives_done != shared.directive_count();
    if is_late && shared.hold_ticket() == 0 {
        carry_out(context, shared);
    }
}

/// Records the thread's path or no more, in front of the context's pc, as the engine has it. No lock held.
pub fn follow_mode(context: &mut ThreadContext, shared: Shared) {
    let engine = ENGINE.lock();
    let writer = writer_of(context, shared);
    if !paths::follow_mode(&engine, &writer, context) {
        drop(engine);
        begin::give_up(context);
    }
}
