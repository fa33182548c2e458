//! What was captured in front of a block: it is written into the thread's ring, or the thread stops for it.
//!
//! Translated code has worked it out (cpu::instrument::captures) and left, all the program's registers in place. From then on the thread counts
//! as past the place, though it has not executed anything: a signal that comes is delivered behind the block, as if it had found the
//! thread there, so that nothing is captured twice.

use crate::cache::exit::{Exit, ExitType};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::capture::{N_FRAMES, UNFETCHED, UNPREPARED};
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::context::ThreadContext;
use crate::cpu::signal::asynchronous::TAKEN_BACK;
use crate::cpu::sys::clock::ticks;
use crate::dispatch::apart::captured_calls;
use crate::dispatch::apart::captured_thread::Thread;
use crate::dispatch::apart::injections;
use crate::dispatch::life::detach;
use crate::dispatch::signals::masks;
use crate::instrument::captures::layout::{is_delay_exit, is_injected, Action};
use crate::instrument::captures::places::{are_any, Guarded, Place};
use crate::instrument::captures::taken_records::{add, record, Heading};
use crate::instrument::indirect::pads::add_to_counter;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{capture_context, MAX_CAPTURES_AT_PLACE};
use crate::sys::calls::{getpid, monotonic_ns, set_signal_mask};
use crate::sys::kernel::SIGTRAP;
use crate::sys::lock::Guard;
use crate::thread::captured_values::Values;
use crate::thread::registry::{thread_name, writer_of};
use core::sync::atomic::Ordering;

/// Deals with what the thread came for, if that is it and it goes on right away: where. `None`: there is more to be done, or nothing was done.
pub fn take_alone(context: &mut ThreadContext) -> Option<CachePc> {
    if !are_any() {
        return None;
    }
    let mut engine = ENGINE.lock();
    let exit = *engine.cache.exit(context.gate.exit_id);
    let is_alone = exit.kind == ExitType::Capture
        && context.pending_word().load(Ordering::Relaxed) == 0
        && context.signals.fault_pending == 0
        && context.rseq.aborted == 0
        && !context.registers.are_stepped();
    if !is_alone {
        return None;
    }
    context.registers.pc = exit.target;
    let guarded = engine.captures.of_fragment(exit.fragment)?.clone();
    if context.capture.outcome == UNFETCHED {
        context.capture.outcome = 0;
        captured_calls::fetch(&mut engine, context);
        return Some(guarded.start);
    }
    if context.capture.outcome == UNPREPARED {
        context.capture.outcome = 0;
        drop(engine);
        prepare(context, &guarded);
        return Some(guarded.start);
    }
    if guarded.place.injects() {
        // Where it goes on is decided there.
        return None;
    }
    let goes_on = goes_on(&engine, context);
    note(engine, context, &guarded);
    let is_held = context.capture.stops != 0 || context.capture.delayed_until_ns != 0;
    let goes_on = goes_on && !is_held && context.pending_word().load(Ordering::Relaxed) == 0;
    if goes_on && guarded.place.has_returns() && captured_calls::are_more(context, &guarded.place) {
        context.capture.is_again = 1;
        context.capture.passed_pc = AppPc::NOWHERE;
        return Some(guarded.start);
    }
    forget_more(context, &guarded.place);
    goes_on.then_some(guarded.behind)
}

/// Everything that is captured at the place is, but for what returns as well and is not looked for.
fn forget_more(context: &mut ThreadContext, place: &Place) {
    context.capture.is_again = 0;
    if place.has_returns() {
        // SAFETY: `shared` is set before any thread runs and never changes.
        captured_calls::forget_more(context, place, unsafe { ENGINE.peek() }.shared);
    }
}

/// Deals with it where something else waits as well: what waits to be delivered comes first, and everything is worked out again behind it.
pub fn take(context: &mut ThreadContext, exit: &Exit) {
    let engine = ENGINE.lock();
    let Some(guarded) = engine.captures.of_fragment(exit.fragment).cloned() else {
        return;
    };
    uncount_entry(&engine, context, exit.fragment);
    let comes_first = context.is_signal_waiting() || context.signals.fault_pending != 0;
    match context.capture.outcome {
        UNPREPARED if !comes_first && goes_on(&engine, context) => {
            drop(engine);
            context.capture.outcome = 0;
            prepare(context, &guarded);
        }
        outcome if comes_first || outcome == UNPREPARED || outcome == UNFETCHED => {
            drop(engine);
            (context.capture.outcome, context.capture.is_fetched) = (0, 0);
            if core::mem::take(&mut context.capture.is_again) != 0 {
                // All else was captured already.
                forget_more(context, &guarded.place);
            }
            end_preparation(context);
        }
        _ if guarded.place.injects() => {
            drop(engine);
            let registers = context.registers;
            let thread = Thread::with(&registers, context);
            let decision = injections::decide(context, &guarded.place, &thread);
            (context.capture.injected, context.capture.delay_exit_ns) = (decision.what, decision.delay_exit_ns);
            note(ENGINE.lock(), context, &guarded);
            forget_more(context, &guarded.place);
            injections::carry_out_at_function(context, &decision);
        }
        _ => {
            note(engine, context, &guarded);
            forget_more(context, &guarded.place);
        }
    }
}

/// Whether nobody has anything for the thread to do before it executes code again.
fn goes_on(engine: &Engine, context: &ThreadContext) -> bool {
    engine.directives.count() == engine.shared.directive_count()
        && engine.shared.hold_ticket() == 0
        && !detach::is_asked(context)
}

/// Whether the thread is past what is captured in front of it.
pub fn is_past(context: &ThreadContext) -> bool {
    context.capture.passed_pc != AppPc::NOWHERE && context.capture.passed_pc == context.registers.pc
}

/// Whether the thread left the code that it is in front of behind what is captured there, and before it executed any of it.
pub fn is_left(context: &ThreadContext) -> bool {
    context.capture.left_pc != AppPc::NOWHERE && context.capture.left_pc == context.registers.pc
}

/// Takes note that the thread left fragment `id` in front of the instruction at `pc`: a signal came, or the instruction faulted. If that is
/// its first one, nothing is captured again where the thread goes on there.
pub fn note_left(engine: &Engine, context: &mut ThreadContext, id: FragmentId, pc: AppPc) {
    if !are_any() || id == FragmentId::NONE || engine.captures.of_fragment(id).is_none() {
        return;
    }
    let fragment = engine.cache.fragment(id);
    // A comparison in front of that may have been what faulted.
    if fragment.app_pc == pc && !fragment.is_compared {
        context.capture.left_pc = pc;
    }
}

/// The same of a fault that waits to be delivered, or of a signal that took the thread back.
pub fn note_fault(context: &mut ThreadContext) {
    // A trap may have come in the midst of what captures: nothing may have been captured yet.
    let is_fault = context.signals.fault_pending == 1 && context.signals.fault_info.signo as u32 != SIGTRAP;
    if is_fault || context.signals.fault_pending == TAKEN_BACK {
        note_left(&ENGINE.lock(), context, context.gate.fault_fragment(), context.registers.pc);
    }
}

/// Takes note of the frame of a handler that the thread is about to run: it was in front of `pc`, and had left code so, or came from a mark.
pub fn keep_left(context: &mut ThreadContext, frame: u64, pc: AppPc, is_left: bool) {
    let capture = &mut context.capture;
    capture.left_pc = AppPc::NOWHERE;
    for known in &mut capture.left_frames {
        // One that was there before is gone.
        *known = if *known == frame { 0 } else { *known };
    }
    for index in (0..N_FRAMES).filter(|index| capture.begun_calls[*index].1 == pc) {
        if capture.begun_frames[index] == 0 {
            capture.begun_frames[index] = frame;
        }
    }
    let behind = core::mem::take(&mut capture.behind);
    if is_left || behind != 0 {
        let index = capture.next_frame as usize % N_FRAMES;
        capture.left_frames[index] = frame;
        (capture.left_pcs[index], capture.are_left[index], capture.left_behinds[index]) = (pc, is_left, behind);
        capture.next_frame = capture.next_frame.wrapping_add(1);
    }
}

/// The thread returns from a handler by a frame, to `pc`.
pub fn come_back(context: &mut ThreadContext, frame: u64, pc: AppPc) {
    let capture = &mut context.capture;
    for known in &mut capture.begun_frames {
        *known = if *known == frame { 0 } else { *known };
    }
    if let Some(index) = (0..N_FRAMES).find(|index| capture.left_frames[*index] == frame) {
        capture.left_frames[index] = 0;
        if capture.left_pcs[index] == pc {
            capture.left_pc = if capture.are_left[index] { pc } else { capture.left_pc };
            capture.behind = capture.left_behinds[index];
        }
    }
}

/// Where a thread enters fragment `id` that is past what is captured in front of it; what waits to be delivered makes it leave behind that.
pub fn entry_behind(engine: &Engine, context: &mut ThreadContext, id: FragmentId) -> Option<CachePc> {
    let is_late = is_past(context);
    if !is_late && !is_left(context) {
        return None;
    }
    let Some(behind) = engine.captures.of_fragment(id).map(|guarded| guarded.behind) else {
        // Nothing is captured there any more: what waits to be delivered need not wait.
        context.capture.passed_pc = AppPc::NOWHERE;
        return None;
    };
    count_entry(engine, context, id);
    // Where the block begins a program that steps through itself has been already: the next trap is its first instruction's.
    context.stepping.is_fresh = 0;
    if is_late && context.is_signal_waiting() {
        engine.cache.interrupt(id);
        context.signals.unlinked_fragment = id;
        context.capture.is_late = 1;
    }
    Some(behind)
}

/// Takes back that fragment `id` was entered, where its entry or its leader counts that: it is left before it ran, and the thread may
/// come back to another one.
fn uncount_entry(engine: &Engine, context: &ThreadContext, id: FragmentId) {
    let fragment = engine.cache.fragment(id);
    if fragment.leader != ExitId::NONE {
        if let Some((counter, each)) = engine.cache.counted_too_early(fragment, fragment.app_pc) {
            add_to_counter(context, counter, -each);
        }
    }
}

/// Counts that it is entered behind its entry, as that would.
fn count_entry(engine: &Engine, context: &ThreadContext, id: FragmentId) {
    let fragment = engine.cache.fragment(id);
    if fragment.leader != ExitId::NONE && fragment.counter != CounterId::NONE {
        add_to_counter(context, fragment.counter, 1);
    }
}

/// Writes what was captured, or has the thread stop.
fn note(mut engine: Guard<Engine>, context: &mut ThreadContext, guarded: &Guarded) {
    let outcome = context.capture.take_outcome();
    let behind = core::mem::take(&mut context.capture.behind);
    if outcome != 0 {
        context.capture.shown_behind = behind;
    }
    if !guarded.place.injects() {
        (context.capture.injected, context.capture.delay_exit_ns) = (0, 0);
    }
    let writer = writer_of(context, engine.shared);
    let taken = || guarded.place.programs.iter().enumerate().filter(|(index, _)| outcome >> index & 1 != 0);
    let mut functions = [context.registers.pc; MAX_CAPTURES_AT_PLACE as usize];
    for (index, program) in taken() {
        for (operation, one) in program.needed() {
            if is_injected(one) {
                Values::of(context).set(program, operation, context.capture.injected.into());
            } else if is_delay_exit(one) {
                Values::of(context).set(program, operation, context.capture.delay_exit_ns);
            }
        }
        if let Action::Open(kind) = program.action {
            captured_calls::begin(&mut engine, &writer, context, program, kind);
        } else if program.returned != 0 {
            functions[index] = captured_calls::end(&mut engine, context, index);
        }
    }
    drop(engine);
    let tsc = ticks();
    for (index, program) in taken() {
        let values = Values::of(context);
        match program.action {
            Action::Stop => context.capture.stops = 1,
            // Of several that are asked for at one function each has what all of them come to.
            Action::Delay => {
                values.take(program).words.first().into_iter().for_each(|ns| injections::delay(context, *ns))
            }
            Action::Aggregate(table) => add(&values.take(program), program, &table, writer.shared.outlets().aggregates),
            Action::Record => {
                let heading = Heading { tid: writer.tid, pc: functions[index], tsc, number: program.number };
                record(&writer, &heading, &values.take(program));
            }
            // Changes are asked of probes only.
            Action::Open(_) | Action::Inject | Action::Change => {}
        }
    }
    writer.shared.stamp_now_and_then(tsc);
    context.capture.passed_pc = context.registers.pc;
    end_preparation(context);
}

/// Does what translated code can't do by itself, which works everything out behind it, and leaves in any case.
fn prepare(context: &mut ThreadContext, guarded: &Guarded) {
    context.capture.is_prepared = 1;
    if context.signals.blocks_faults != 0 && context.signals.holds_mask == 0 {
        context.capture.mask = set_signal_mask(u64::MAX);
        context.capture.is_mask_held = 1;
        masks::hold_mask(context);
    }
    captured_calls::prepare(context, &guarded.place);
    let values = Values::of(context);
    for program in &guarded.place.programs {
        for (index, one) in program.told().filter(|(_, one)| !one.is_kept()) {
            match one.immediate as u8 {
                capture_context::PID => values.set(program, index, u64::from(getpid())),
                capture_context::TIME => values.set(program, index, monotonic_ns()),
                _ => {
                    let name = thread_name();
                    let size = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                    values.set_text(program, index, &name[..size]);
                }
            }
        }
    }
}

fn end_preparation(context: &mut ThreadContext) {
    context.capture.is_prepared = 0;
    if core::mem::take(&mut context.capture.is_mask_held) != 0 {
        masks::let_go_of_mask(context, context.capture.mask);
    }
}
