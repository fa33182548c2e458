//! What is captured at system calls, before they are made and when they have returned.
//!
//! Runs in the target on the runtime's stack: a call at which something is captured comes to the dispatcher (calls/call_table.rs), and back to it
//! from the gate. So the dispatcher works everything out by itself (instrument/captures/evaluate.rs), and no code is emitted. A call is
//! open as a function's is (captured_calls.rs), by the stack pointer; a call that is made again, as behind a signal, stays open.

extern crate alloc;
use super::capture_records::{add, record, Heading};
use super::captured_calls::{measure_ticks, note_others, open, table_of, to_ns};
use super::captured_rings;
use super::captured_thread::Thread;
use super::captured_values::Taken;
use super::injections;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::capture::CallDecision;
use crate::context::ThreadContext;
use crate::cpu::sys::calls::CALL_BYTES;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::evaluate::{evaluate, Value};
use crate::instrument::captures::layout::{Action, Program};
use crate::instrument::captures::open_calls::{KeptText, OpenCall, OpenCalls, RETURN_ADDRESS_BYTES};
use crate::instrument::captures::places::{are_calls_captured, call_place, Place};
use crate::instrument::ENGINE;
use crate::protocol::{injected, MAX_KEPT_VALUES};
use crate::thread::registry::writer_of;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The thread is about to make the system call of that number; its instruction ends at `next`. Whether it is delayed first: then the call
/// begins anew.
pub fn begin(context: &mut ThreadContext, number: u64, next: AppPc) -> bool {
    context.capture.is_answered = 0;
    if !are_calls_captured() {
        return false;
    }
    let (place, writer) = {
        let engine = ENGINE.lock();
        (engine.captures.at_call(number).cloned(), writer_of(context, engine.shared))
    };
    captured_rings::begin(&writer, number);
    let pc = AppPc::from_raw(next.raw().wrapping_sub(CALL_BYTES));
    let is_delayed = place.is_some_and(|place| capture(context, &writer, number, pc, &place));
    // What is delayed comes here again; what is answered submits nothing.
    if !is_delayed && context.capture.is_answered == 0 {
        captured_rings::submit(context, &writer, number, pc);
    }
    is_delayed
}

/// Captures the call at `pc`, and decides what is done to it. Whether it is delayed first.
fn capture(context: &mut ThreadContext, writer: &RingWriter, number: u64, pc: AppPc, place: &Place) -> bool {
    measure_ticks_once(writer);
    let (index, is_again) = note_begun(context, pc);
    if !is_again && place.injects() {
        decide(context, place, index);
    }
    let decision = context.capture.decisions[index];
    context.capture.is_answered = decision.injected & injected::RESULT;
    context.capture.answer = decision.answer;
    context.capture.injected = decision.injected;
    let thread = Thread::of(context, None, &[]);
    for program in &place.programs {
        match program.action {
            Action::Open(kind) if is_again && is_open(context, number, kind) => {}
            Action::Open(kind) => begin_call(context, writer, number, pc, (kind, program), &thread),
            _ if is_again => {}
            _ => note(writer, pc, program, &thread),
        }
    }
    !is_again && context.capture.delayed_until_ns != 0
}

/// Whether a call of that kind is open where the thread makes one of that number.
fn is_open(context: &mut ThreadContext, number: u64, kind: u32) -> bool {
    let Some(table) = table_of(context) else { return false };
    fetch_others(context, table, number);
    table.find(context.registers.sp(), call_place(number), |own| own == kind).is_some()
}

/// Has those calls in the thread's table that return where it is.
fn fetch_others(context: &mut ThreadContext, table: OpenCalls, number: u64) {
    if context.capture.n_other_calls != 0 {
        let mut engine = ENGINE.lock();
        engine.captures.other_calls.fetch(table, context.registers.sp(), call_place(number));
        note_others(&engine, context, table);
    }
}

/// Decides what is done to the call that begins, the one of that number among those that have begun.
fn decide(context: &mut ThreadContext, place: &Place, index: usize) {
    let thread = Thread::of(context, None, &[]);
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
/// thread is delayed, if it is to be now.
pub fn forget_begun(context: &mut ThreadContext) {
    let sp = context.registers.sp();
    for index in 0..context.capture.begun_calls.len() {
        if context.capture.begun_calls[index].0 == sp {
            context.capture.begun_calls[index] = (0, AppPc::NOWHERE);
            injections::delay(context, context.capture.decisions[index].delay_exit_ns);
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
    thread: &Thread<'_>,
) {
    let mut call = OpenCall {
        stack_pointer: context.registers.sp().wrapping_sub(RETURN_ADDRESS_BYTES),
        return_pc: call_place(number).raw(),
        function: pc.raw(),
        kind,
        ..OpenCall::default()
    };
    let mut texts: Vec<KeptText> = Vec::new();
    let is_wanted = evaluate(program, thread, |field, value| match value {
        _ if field >= MAX_KEPT_VALUES as usize => {}
        Value::Missing => call.missing |= 1 << field,
        Value::Number(number) => call.values[field] = *number,
        Value::Bytes(bytes) => {
            call.values[field] = bytes.len() as u64;
            texts.push((field, bytes.clone()));
        }
    });
    if !is_wanted {
        return;
    }
    open(&mut ENGINE.lock(), writer, context, call, texts);
}

/// The system call of that number has returned; its result is in its register.
pub fn end(context: &mut ThreadContext, number: u64) {
    if !are_calls_captured() {
        return;
    }
    forget_begun(context);
    captured_rings::end(context, number);
    let Some(table) = table_of(context) else { return };
    loop {
        let place = call_place(number);
        fetch_others(context, table, number);
        let Some(at) = table.find(context.registers.sp(), place, |_| true) else { return };
        let mut engine = ENGINE.lock();
        let call = table.read(at);
        table.close(at);
        let texts = engine.captures.other_calls.take_texts(table, call.texts);
        let (taken, writer) = (engine.captures.returned_place(call.kind), writer_of(context, engine.shared));
        drop(engine);
        let thread = Thread::of(context, Some(&call), &texts);
        for program in taken.iter().flat_map(|place: &Arc<_>| &place.programs) {
            note(&writer, AppPc::from_raw(call.function), program, &thread);
        }
    }
}

/// Works out what is captured, and writes it, or adds it up.
fn note(writer: &RingWriter, pc: AppPc, program: &Program, thread: &Thread<'_>) {
    let Some(taken) = Taken::evaluate(program, thread) else { return };
    match program.action {
        Action::Aggregate(table) => add(taken, program, &table, writer.shared.outlets().aggregates),
        Action::Record => {
            record(writer, &Heading { tid: writer.tid, pc, tsc: ticks(), number: program.number }, taken);
        }
        // Nobody stops in the midst of a call.
        Action::Stop | Action::Open(_) | Action::Inject => {}
    }
}

fn measure_ticks_once(writer: &RingWriter) {
    if to_ns(1 << 32) == 0 {
        measure_ticks(writer.shared);
    }
}
