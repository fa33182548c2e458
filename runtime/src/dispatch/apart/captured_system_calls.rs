//! What is captured at system calls, before they are made and when they have returned.
//!
//! Runs in the target on the runtime's stack: a call at which something is captured comes to the dispatcher (calls/call_table.rs), and back to it
//! from the gate. So the dispatcher works everything out by itself (instrument/captures/evaluate.rs), and no code is emitted. A call is
//! open as a function's is (captured_calls.rs), by the stack pointer; a call that is made again, as behind a signal, stays open.

extern crate alloc;
use super::captured_rings;
use super::captured_thread::Thread;
use super::injections;
use super::known_places;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::capture::CallDecision;
use crate::context::ThreadContext;
use crate::cpu::sys::calls::CALL_BYTES;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::layout::{Action, Program};
use crate::instrument::captures::open_calls::{CallHead, RETURN_ADDRESS_BYTES};
use crate::instrument::captures::places::{are_calls_captured, call_place, Place};
use crate::instrument::captures::taken::Taken;
use crate::instrument::captures::taken_records::{add, record, Heading};
use crate::instrument::{Engine, ENGINE};
use crate::protocol::injected;
use crate::thread::captured_calls::{measure_ticks, note_others, open, table_of, texts_of, to_ns};
use crate::thread::registry::writer_of;
use alloc::vec::Vec;

/// The thread is about to make the system call of that number; its instruction ends at `next`. Whether it is delayed first: then the call
/// begins anew.
pub fn begin(context: &mut ThreadContext, number: u64, next: AppPc) -> bool {
    context.capture.is_answered = 0;
    if !are_calls_captured() {
        return false;
    }
    // SAFETY: `shared` is set before any thread runs and never changes.
    let writer = writer_of(context, unsafe { ENGINE.peek() }.shared);
    captured_rings::begin(&writer);
    let pc = AppPc::from_raw(next.raw().wrapping_sub(CALL_BYTES));
    // SAFETY: no other is looked for before this one is captured.
    let place = unsafe { known_places::at_call(context, number) };
    let is_delayed = place.is_some_and(|place| capture(context, &writer, number, pc, place));
    // What is delayed comes here again; what is answered submits nothing.
    if !is_delayed && context.capture.is_answered == 0 {
        captured_rings::submit(context, &writer, number, pc);
    }
    is_delayed
}

/// A call of that number and kind that the thread begins at `pc`, which keeps nothing yet.
fn head_of(context: &ThreadContext, number: u64, pc: AppPc, kind: u32) -> CallHead {
    CallHead {
        stack_pointer: context.registers.sp().wrapping_sub(RETURN_ADDRESS_BYTES),
        return_pc: call_place(number).raw(),
        function: pc.raw(),
        kind,
        ..CallHead::default()
    }
}

/// Captures the call at `pc`, and decides what is done to it. Whether it is delayed first.
fn capture(context: &mut ThreadContext, writer: &RingWriter, number: u64, pc: AppPc, place: &Place) -> bool {
    measure_ticks_once(writer);
    let (index, is_again) = note_begun(context, pc);
    let injects = !is_again && place.injects();
    if injects {
        decide(context, place, index);
    }
    carry_out(context, index);
    for program in &place.programs {
        match program.action {
            Action::Open(kind) if is_again && is_open(context, number, kind) => {}
            Action::Open(kind) => begin_call(context, writer, number, pc, (kind, program)),
            _ if is_again => {}
            _ => note(writer, pc, program, &Thread::of(context)),
        }
    }
    injects && context.capture.delayed_until_ns != 0
}

/// Has the call go the way that was decided, the one of that number among those that have begun.
fn carry_out(context: &mut ThreadContext, index: usize) {
    let decision = context.capture.decisions[index];
    context.capture.is_answered = decision.injected & injected::RESULT;
    context.capture.answer = decision.answer;
    context.capture.injected = decision.injected;
}

/// Whether a call of that kind is open where the thread makes one of that number.
fn is_open(context: &mut ThreadContext, number: u64, kind: u32) -> bool {
    let Some(table) = table_of(context) else { return false };
    if context.capture.n_other_calls != 0 {
        fetch_others(&mut ENGINE.lock(), context, number);
    }
    table.find(context.registers.sp(), call_place(number), |own| own == kind).is_some()
}

/// Has those calls in the thread's table that return where it is.
fn fetch_others(engine: &mut Engine, context: &mut ThreadContext, number: u64) {
    let Some(table) = table_of(context).filter(|_| context.capture.n_other_calls != 0) else { return };
    engine.captures.other_calls.fetch(table, context.registers.sp(), call_place(number));
    note_others(engine, context, table);
}

/// Decides what is done to the call that begins, the one of that number among those that have begun.
fn decide(context: &mut ThreadContext, place: &Place, index: usize) {
    let registers = context.registers;
    let thread = Thread::with(&registers, context);
    let decision = injections::decide(context, place, &thread);
    context.capture.decisions[index] =
        CallDecision { injected: decision.what, answer: decision.result, delay_exit_ns: decision.delay_exit_ns };
    injections::send_signals(context, &decision);
    injections::delay(context, decision.delay_enter_ns);
}

/// Takes note that the call at `pc` was captured as it begins: as which of those that have begun, and whether it was before.
fn note_begun(context: &mut ThreadContext, pc: AppPc) -> (usize, bool) {
    let key = (context.registers.sp(), pc);
    let capture = &mut context.capture;
    let known = capture.begun_calls.iter().position(|known| *known == key);
    if let Some(index) = known.filter(|index| capture.begun_frames[*index] == 0) {
        return (index, true);
    }
    // A handler left the one that is known by a jump.
    let index = known.unwrap_or(capture.next_begun as usize % capture.begun_calls.len());
    capture.next_begun = capture.next_begun.wrapping_add(u64::from(known.is_none()));
    capture.begun_calls[index] = key;
    (capture.begun_frames[index], capture.decisions[index]) = (0, CallDecision::default());
    (index, false)
}

/// A call has returned, or goes on elsewhere, as a return from a handler: none that begins with its stack pointer is the same. The
/// thread is delayed, if it is to be now. Whether there was one.
pub fn forget_begun(context: &mut ThreadContext) -> bool {
    let (sp, mut is_known) = (context.registers.sp(), false);
    for index in 0..context.capture.begun_calls.len() {
        if context.capture.begun_calls[index].0 == sp {
            context.capture.begun_calls[index] = (0, AppPc::NOWHERE);
            injections::delay(context, context.capture.decisions[index].delay_exit_ns);
            is_known = true;
        }
    }
    is_known
}

/// The thread was taken out of the call in front of which it is now, and will make it again: what began before anybody asked for such
/// calls is open from here on.
pub fn resume_late(context: &mut ThreadContext) {
    let (number, pc) = (context.registers.call_number(), context.registers.pc);
    // Of others nothing is noted: nobody would take that back.
    if are_calls_captured() && ENGINE.lock().captures.at_call(number).is_some() && !note_begun(context, pc).1 {
        begin_late(context, number, pc);
    }
}

/// The thread is in a call at `pc`, or has just returned from it, that began before anybody asked for such calls: it is open as if it had
/// begun when they did. What it was called with is in the registers still, but for the number.
fn begin_late(context: &mut ThreadContext, number: u64, pc: AppPc) {
    // SAFETY: `shared` is set before any thread runs and never changes.
    let writer = writer_of(context, unsafe { ENGINE.peek() }.shared);
    let (place, asked_tsc) = {
        let captures = &ENGINE.lock().captures;
        (captures.at_call(number).cloned(), captures.asked_tsc)
    };
    let Some(place) = place else { return };
    for (kind, program) in place.opening() {
        let mut registers = context.registers;
        registers.set_result(number);
        let mut taken = Taken::default();
        if !is_open(context, number, kind) && taken.evaluate(program, &Thread::with(&registers, context)) {
            let call = CallHead { missing: taken.missing, tsc: asked_tsc, ..head_of(context, number, pc, kind) };
            open(&mut ENGINE.lock(), &writer, context, call, &taken.words, texts_of(program, &taken));
        }
    }
}

/// A call whose return is captured, too: it is open from here on.
fn begin_call(
    context: &mut ThreadContext,
    writer: &RingWriter,
    number: u64,
    pc: AppPc,
    (kind, program): (u32, &Program),
) {
    let mut taken = Taken::default();
    if taken.evaluate(program, &Thread::of(context)) {
        let call = CallHead { missing: taken.missing, tsc: ticks(), ..head_of(context, number, pc, kind) };
        let texts = texts_of(program, &taken);
        let table = table_of(context).filter(|_| context.capture.n_other_calls == 0 && texts.is_empty());
        if !table.is_some_and(|table| table.open_beside(&call, &taken.words)) {
            open(&mut ENGINE.lock(), writer, context, call, &taken.words, texts);
        }
    }
}

/// The system call of that number has returned; its result is in its register.
pub fn end(context: &mut ThreadContext, number: u64) {
    if !are_calls_captured() {
        return;
    }
    if !forget_begun(context) {
        begin_late(context, number, AppPc::from_raw(context.registers.pc.raw().wrapping_sub(CALL_BYTES)));
    }
    captured_rings::end(context, number);
    let Some(table) = table_of(context) else { return };
    loop {
        if context.capture.n_other_calls != 0 {
            fetch_others(&mut ENGINE.lock(), context, number);
        }
        let Some(at) = table.find(context.registers.sp(), call_place(number), |_| true) else { return };
        // SAFETY: the table is this thread's, which has no call open before the next turn.
        let call = unsafe { table.at(at) };
        let texts = match call.texts {
            0 => Vec::new(),
            texts => ENGINE.lock().captures.other_calls.take_texts(table, texts),
        };
        // SAFETY: the next one is looked for in the next turn.
        let place = unsafe { known_places::returned(context, call.kind) };
        // SAFETY: `shared` is set before any thread runs and never changes.
        let writer = writer_of(context, unsafe { ENGINE.peek() }.shared);
        let thread = Thread::of(context).behind(call, &texts);
        for program in place.iter().flat_map(|place| &place.programs) {
            note(&writer, AppPc::from_raw(call.function), program, &thread);
        }
        // Where it began is told as well.
        table.close(at);
    }
}

/// Works out what is captured, and writes it, or adds it up.
fn note(writer: &RingWriter, pc: AppPc, program: &Program, thread: &Thread<'_>) {
    let mut taken = Taken::default();
    if !taken.evaluate(program, thread) {
        return;
    }
    match program.action {
        Action::Aggregate(table) => add(&taken, program, &table, writer.shared.outlets().aggregates),
        Action::Record => {
            record(writer, &Heading { tid: writer.tid, pc, tsc: ticks(), number: program.number }, &taken);
        }
        // Nobody stops in the midst of a call.
        Action::Stop | Action::Open(_) | Action::Inject | Action::Delay | Action::Change => {}
    }
}

fn measure_ticks_once(writer: &RingWriter) {
    if to_ns(1 << 32) == 0 {
        measure_ticks(writer.shared);
    }
}
