//! Calls whose returns are captured, as far as translated code leaves them to the dispatcher: the first at each place, and those that keep bytes.
//!
//! Where a call returns to is read off the stack when it begins. From then on that is a place, whose code is translated anew, with what is
//! taken there in front. What such a call keeps lies in the thread's table (instrument/captures/open_calls.rs).

extern crate alloc;
use crate::buffer::{RingWriter, Shared};
use crate::context::addresses::AppPc;
use crate::context::layout::{OPEN_CALLS_BYTES, OPEN_CALLS_OFFSET};
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::form::Operation;
use crate::instrument::captures::layout::Program;
use crate::instrument::captures::open_calls::{
    is_armed, note_armed, CallHead, OpenCall, OpenCalls, OPEN_CALL_BYTES, RETURN_ADDRESS_BYTES,
};
use crate::instrument::captures::places::Place;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::CALL_PLACES;
use crate::thread::block;
use crate::thread::captured_calls::{measure_ticks, note_others, open, table_of, texts_of};
use crate::thread::captured_values::Values;

/// A call begins whose return is to be captured, at the thread's place; its values are those of `program`.
pub fn begin(engine: &mut Engine, writer: &RingWriter, context: &mut ThreadContext, program: &Program, kind: u32) {
    let stack_pointer = context.registers.sp();
    let mut word = [0; RETURN_ADDRESS_BYTES as usize];
    if guarded::read_program(&mut word, stack_pointer) < word.len() {
        return;
    }
    let return_pc = u64::from_le_bytes(word);
    if !arm(engine, writer, return_pc, kind) {
        return;
    }
    let taken = Values::of(context).take(program);
    let (function, missing) = (context.registers.pc.raw(), taken.missing);
    let tsc = ticks();
    let call = CallHead { stack_pointer, return_pc, function, kind, missing, tsc, ..CallHead::default() };
    open(engine, writer, context, call, &taken.words, texts_of(program, &taken));
}

/// Has it captured that calls of a kind return to an address. `false`: it can't be, which is counted.
fn arm(engine: &mut Engine, writer: &RingWriter, return_pc: u64, kind: u32) -> bool {
    if !is_armed(return_pc, kind) {
        let Some(is_new) = engine.captures.arm(AppPc::from_raw(return_pc), kind) else {
            writer.shared.add(crate::status_field!(calls_forgotten), 1);
            return false;
        };
        if is_new {
            engine.renew_at(writer, AppPc::from_raw(return_pc));
        }
        note_armed(return_pc, kind);
        measure_ticks(writer.shared);
    }
    true
}

/// The controller has put calls into the thread's window that began before the process was followed: they are open, and told of when they
/// return.
pub fn take_over(engine: &mut Engine, writer: &RingWriter, context: &mut ThreadContext) {
    if !block::map_handed_calls(context, engine.shared) {
        return;
    }
    let Some(table) = table_of(context) else { return };
    engine.captures.other_calls.forget(table);
    for (place, call) in table.all() {
        if !arm(engine, writer, call.return_pc, call.kind) {
            table.close(place);
        }
    }
    note_others(engine, context, table);
}

/// A process begins with a copy of its parent's memory, whose window of calls is the parent's: it has one of its own, with the same calls.
pub fn begin_child(engine: &mut Engine, context: &mut ThreadContext) {
    let Some(table) = table_of(context) else { return };
    context.capture.has_open_calls = 0;
    if block::map_open_calls(context, engine.shared) {
        engine.captures.other_calls.inherit(table);
        forget_maker(engine, context, table);
    } else {
        engine.captures.other_calls.forget(table);
        forget_all(context);
    }
}

/// The system call that made this process is its parent's, which it returns in. Those that a handler interrupted are made here, too.
fn forget_maker(engine: &mut Engine, context: &ThreadContext, table: OpenCalls) {
    let capture = &context.capture;
    let is_interrupted = |call: &OpenCall| {
        let known = capture.begun_calls.iter().zip(&capture.begun_frames);
        let sp = call.stack_pointer.wrapping_add(RETURN_ADDRESS_BYTES);
        known.into_iter().any(|(begun, frame)| *begun == (sp, AppPc::from_raw(call.function)) && *frame != 0)
    };
    for (place, call) in table.all().filter(|(_, call)| call.return_pc >= CALL_PLACES && !is_interrupted(call)) {
        engine.captures.other_calls.drop_texts(table, call.texts);
        table.close(place);
    }
}

/// Has the calls in the thread's table that return to where it is.
pub fn fetch(engine: &mut Engine, context: &mut ThreadContext) {
    if let Some(table) = table_of(context) {
        engine.captures.other_calls.fetch(table, context.registers.sp(), context.registers.pc);
        note_others(engine, context, table);
    }
    context.capture.is_fetched = 1;
}

/// Gives the captures of a place the bytes that were kept of calls which return there now.
pub fn prepare(context: &ThreadContext, place: &Place) {
    let (values, engine) = (Values::of(context), ENGINE.lock());
    for program in place.programs.iter().filter(|one| one.returned != 0) {
        let found = find(context, |kind| kind == program.returned);
        for (index, one) in program.told().filter(|(_, one)| one.is_kept()) {
            let bytes = found.and_then(|at| kept_text(&engine, context, at, one));
            values.set_missing(program, index, bytes.is_none());
            if let Some(bytes) = bytes {
                values.set_text(program, index, &bytes[..bytes.len().min(program.text_room(index))]);
            }
        }
    }
}

/// The bytes that an operation asks for of a call; `None`: they could not be had when it began.
fn kept_text<'e>(engine: &'e Engine, context: &ThreadContext, at: u64, one: &Operation) -> Option<&'e [u8]> {
    let (field, _) = one.kept();
    let table = table_of(context)?;
    // SAFETY: the thread's own, which has no call open here.
    let call = unsafe { table.at(at) };
    engine.captures.other_calls.text(table, call, field).filter(|_| call.missing >> field & 1 == 0)
}

/// The call that returns now to where the thread is, of a kind that is asked for.
fn find(context: &ThreadContext, is_asked: impl Fn(u32) -> bool) -> Option<u64> {
    table_of(context)?.find(context.registers.sp(), context.registers.pc, is_asked)
}

/// The call that capture `index` of the place was taken for is open no more; the function that it was of.
pub fn end(engine: &mut Engine, context: &ThreadContext, index: usize) -> AppPc {
    let at = context.capture.matched[index];
    let is_place = at.wrapping_sub(OPEN_CALLS_OFFSET) < OPEN_CALLS_BYTES && at.is_multiple_of(OPEN_CALL_BYTES);
    let Some(table) = table_of(context).filter(|_| is_place) else {
        return AppPc::NOWHERE;
    };
    // SAFETY: as above.
    let CallHead { texts, function, .. } = unsafe { table.at(at) }.head;
    table.close(at);
    engine.captures.other_calls.drop_texts(table, texts);
    AppPc::from_raw(function)
}

/// Whether more calls return to the place now that are to be captured.
pub fn are_more(context: &ThreadContext, place: &Place) -> bool {
    find(context, |kind| place.programs.iter().any(|one| one.returned == kind)).is_some()
}

/// They are not captured: something else is to be done first.
pub fn forget_more(context: &ThreadContext, place: &Place, shared: Shared) {
    let Some(table) = table_of(context) else { return };
    while let Some(at) = find(context, |kind| place.programs.iter().any(|one| one.returned == kind)) {
        // SAFETY: as above.
        let texts = unsafe { table.at(at) }.texts;
        table.close(at);
        ENGINE.lock().captures.other_calls.drop_texts(table, texts);
        shared.add(crate::status_field!(calls_forgotten), 1);
    }
}

/// The thread goes where nothing is captured: none of its calls is open any more.
pub fn forget_all(context: &mut ThreadContext) {
    (context.capture.has_open_calls, context.capture.n_other_calls) = (0, 0);
}
