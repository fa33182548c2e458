//! What is captured at system calls, before they are made and when they have returned.
//!
//! Runs in the target on the runtime's stack: a call at which something is captured comes to the dispatcher (calls/call_table.rs), and back to it
//! from the gate. So the dispatcher works everything out by itself (instrument/captures/evaluate.rs), and no code is emitted. A call is
//! open as a function's is (captured_calls.rs), by the stack pointer; a call that is made again, as behind a signal, begins again.

extern crate alloc;
use super::capture_records::{add, record, Heading};
use super::captured_calls::{measure_ticks, note_others, open, table_of, to_ns};
use super::captured_values::{kept_of, Taken};
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::context::N_HELD;
use crate::cpu::guarded;
use crate::cpu::sys::calls::CALL_BYTES;
use crate::cpu::sys::clock::ticks;
use crate::cpu::thread_pointer;
use crate::instrument::captures::evaluate::{evaluate, Asked, Value};
use crate::instrument::captures::layout::{Action, Program};
use crate::instrument::captures::open_calls::{KeptText, OpenCall, RETURN_ADDRESS_BYTES};
use crate::instrument::captures::places::{are_calls_captured, call_place};
use crate::instrument::ENGINE;
use crate::protocol::{capture_context, MAX_KEPT_VALUES};
use crate::sys::calls::{getpid, monotonic_ns};
use crate::thread::registry::{thread_name, writer_of};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The thread is about to make the system call of that number; its instruction ends at `next`.
pub fn begin(context: &mut ThreadContext, number: u64, next: AppPc) {
    if !are_calls_captured() {
        return;
    }
    let (place, writer) = {
        let engine = ENGINE.lock();
        (engine.captures.at_call(number).cloned(), writer_of(context, engine.shared))
    };
    let Some(place) = place else { return };
    let pc = AppPc::from_raw(next.raw().wrapping_sub(CALL_BYTES));
    measure_ticks_once(&writer);
    let is_again = !note_begun(context, pc);
    let thread = Thread::of(context, None, &[]);
    for program in &place.programs {
        match program.action {
            Action::Open(kind) => begin_call(context, &writer, number, pc, (kind, program), &thread),
            _ if is_again => {}
            _ => note(&writer, pc, program, &thread),
        }
    }
}

/// Takes note that the call at `pc` was captured as it begins. Whether it was not before.
fn note_begun(context: &mut ThreadContext, pc: AppPc) -> bool {
    let key = (context.registers.sp(), pc);
    let capture = &mut context.capture;
    if capture.begun_calls.contains(&key) {
        return false;
    }
    let index = capture.next_begun as usize % capture.begun_calls.len();
    capture.begun_calls[index] = key;
    capture.next_begun = capture.next_begun.wrapping_add(1);
    true
}

/// A call has returned, or goes on elsewhere, as a return from a handler: none that begins with its stack pointer is the same.
pub fn forget_begun(context: &mut ThreadContext) {
    let sp = context.registers.sp();
    for known in &mut context.capture.begun_calls {
        if known.0 == sp {
            *known = (0, AppPc::NOWHERE);
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
    let Some(table) = table_of(context) else { return };
    loop {
        let place = call_place(number);
        if context.capture.n_other_calls != 0 {
            let mut engine = ENGINE.lock();
            engine.captures.other_calls.fetch(table, context.registers.sp(), place);
            note_others(&engine, context, table);
        }
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
        Action::Stop | Action::Open(_) => {}
    }
}

fn measure_ticks_once(writer: &RingWriter) {
    if to_ns(1 << 32) == 0 {
        measure_ticks(writer.shared);
    }
}

/// The calling thread, at a system call; `call` is the one that has returned, with the bytes that it keeps.
struct Thread<'t> {
    tid: u32,
    registers: [u64; N_HELD],
    call: Option<&'t OpenCall>,
    texts: &'t [KeptText],
}

impl<'t> Thread<'t> {
    fn of(context: &ThreadContext, call: Option<&'t OpenCall>, texts: &'t [KeptText]) -> Thread<'t> {
        Thread { tid: context.tid, registers: context.registers.held(), call, texts }
    }
}

impl Asked for Thread<'_> {
    fn register(&self, number: u64) -> Option<u64> {
        self.registers.get(number as usize).copied()
    }

    fn read(&self, address: u64, target: &mut [u8]) -> usize {
        guarded::read_program(target, address)
    }

    fn context(&self, what: u8) -> Value {
        match what {
            capture_context::TID => Value::Number(self.tid.into()),
            capture_context::PID => Value::Number(u64::from(getpid())),
            capture_context::TIME => Value::Number(monotonic_ns()),
            capture_context::THREAD_POINTER => Value::Number(thread_pointer()),
            capture_context::DURATION => {
                self.call.map_or(Value::Missing, |call| Value::Number(to_ns(ticks().saturating_sub(call.tsc))))
            }
            capture_context::BEGAN => self.call.map_or(Value::Missing, |call| Value::Number(call.tsc)),
            capture_context::FRAME => self.call.map_or(Value::Missing, |call| Value::Number(call.stack_pointer)),
            capture_context::COMM => {
                let name = thread_name();
                Value::Bytes(name.iter().copied().take_while(|byte| *byte != 0).collect())
            }
            _ => Value::Missing,
        }
    }

    fn kept(&self, field: usize, is_text: bool) -> Value {
        self.call.map_or(Value::Missing, |call| kept_of(call, self.texts, field, is_text))
    }
}
