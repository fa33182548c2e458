//! What a handler's machine code does not do by itself: it leaves for here, and goes on behind.
//!
//! Runs in the thread that came to the probe, on its block's stack, all its registers in its context. Its block is busy, so that a signal's
//! handler which comes to a probe takes nothing.

use super::asked::{read_memory, Probed};
use super::sites::{site_of, Site};
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::layout::{Action, Program};
use crate::instrument::captures::open_calls::{CallHead, RETURN_ADDRESS_BYTES};
use crate::instrument::captures::taken::Taken;
use crate::instrument::captures::taken_records::{add, record, Heading};
use crate::instrument::ENGINE;
use crate::protocol::{hold_reason, request_kind};
use crate::sys::calls::set_signal_mask;
use crate::thread::captured_calls::{note_others, open, table_of, texts_of};
use crate::thread::registry::writer_of;

/// All signals but those of traps (SIGILL, SIGTRAP), which nothing here raises: who writes code live looks at whether threads can trap.
const MASK: u64 = !(1 << 3 | 1 << 4);

/// What the gates call: where the thread goes on. No signal comes meanwhile: a handler of the program's that never came back would keep
/// locks.
pub extern "C" fn dispatch(context: &mut ThreadContext, _reason: u32) -> u64 {
    let Some(site) = site_of(context.gate.exit_id.raw()) else {
        // No handler is made before its number is known.
        loop {
            core::hint::spin_loop();
        }
    };
    let mask = set_signal_mask(MASK);
    context.registers.pc = site.pc;
    take(context, site);
    set_signal_mask(mask);
    site.behind.raw()
}

/// Takes what is captured at a place.
fn take(context: &mut ThreadContext, site: &Site) {
    // SAFETY: `shared` is set before any code leads here, and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let writer = writer_of(context, shared);
    context.capture.outcome = 0;
    shared.stamp_now_and_then(ticks());
    for program in &site.place.programs {
        match program.action {
            Action::Open(kind) => begin(context, &writer, site, program, kind),
            _ if program.returned != 0 => end(context, &writer, program),
            _ => {
                let mut taken = Taken::default();
                if taken.evaluate(program, &Probed::of(context)) {
                    keep(&writer, program, site.pc, &taken);
                }
            }
        }
    }
}

/// Does with a capture's fields what it is for.
fn keep(writer: &RingWriter, program: &Program, pc: AppPc, taken: &Taken) {
    match &program.action {
        Action::Record => {
            let heading = Heading { tid: writer.tid, pc, tsc: ticks(), number: program.number };
            record(writer, &heading, taken);
        }
        Action::Aggregate(table) => add(taken, program, table, writer.shared.outlets().aggregates),
        Action::Stop => {
            writer.request(request_kind::HOLD, [hold_reason::CAPTURE.into(), program.number.into(), pc.raw(), 0]);
        }
        _ => {}
    }
}

/// A call begins, in front of the function's first instruction.
fn begin(context: &mut ThreadContext, writer: &RingWriter, site: &Site, program: &Program, kind: u32) {
    let stack_pointer = context.registers.sp();
    let mut word = [0; RETURN_ADDRESS_BYTES as usize];
    let mut taken = Taken::default();
    if !taken.evaluate(program, &Probed::of(context)) || read_memory(stack_pointer, &mut word) < word.len() {
        return;
    }
    let (return_pc, function, missing) = (u64::from_le_bytes(word), site.pc.raw(), taken.missing);
    let texts = texts_of(program, &taken);
    let call = CallHead { stack_pointer, return_pc, function, tsc: ticks(), kind, missing, texts: 0 };
    open(&mut ENGINE.lock(), writer, context, call, &taken.words, texts);
}

/// A call is about to return, by the instruction in front of which the thread is: its stack pointer is what it was at the beginning.
fn end(context: &mut ThreadContext, writer: &RingWriter, program: &Program) {
    let stack_pointer = context.registers.sp();
    let mut word = [0; RETURN_ADDRESS_BYTES as usize];
    let Some(table) = table_of(context).filter(|_| read_memory(stack_pointer, &mut word) == word.len()) else { return };
    let mut engine = ENGINE.lock();
    let (behind, return_pc) = (stack_pointer + RETURN_ADDRESS_BYTES, AppPc::from_raw(u64::from_le_bytes(word)));
    engine.captures.other_calls.fetch(table, behind, return_pc);
    note_others(&engine, context, table);
    let Some(at) = table.find(behind, return_pc, |kind| kind == program.returned) else { return };
    // SAFETY: the table is the calling thread's, which has no call open as long as this is looked at.
    let call = unsafe { table.at(at) };
    let mut taken = Taken::default();
    let texts = engine.captures.other_calls.texts_of(table, call.texts);
    if taken.evaluate(program, &Probed::of(context).behind(call, texts)) {
        keep(writer, program, AppPc::from_raw(call.function), &taken);
    }
    let texts = call.texts;
    table.close(at);
    engine.captures.other_calls.drop_texts(table, texts);
}
