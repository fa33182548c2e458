//! What a handler's machine code does not do by itself: it leaves for here, and goes on behind.
//!
//! Runs in the thread that came to the probe, on its block's stack, all its registers in its context. Its block is busy, so that a signal's
//! handler which comes to a probe takes nothing.

extern crate alloc;
use super::asked::Probed;
use super::backtraces::rest_of;
use super::changes;
use super::program_memory::read_memory;
use super::sites::{site_of, Site};
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::capture::UNFETCHED;
use crate::context::ThreadContext;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::layout::{Action, Program};
use crate::instrument::captures::open_calls::{CallHead, OpenCalls, RETURN_ADDRESS_BYTES};
use crate::instrument::captures::taken::Taken;
use crate::instrument::captures::taken_records::{add, record, Heading};
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{hold_reason, request_kind};
use crate::sys::calls::{gettid, set_signal_mask};
use crate::thread::captured_calls::{note_others, open, table_of, texts_of};
use crate::thread::captured_values::Values;
use crate::thread::registry::writer_of;
use alloc::vec::Vec;

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
    let target = if site.is_worked_out && context.capture.outcome == UNFETCHED {
        fetch(context);
        context.probe.is_busy = 0;
        site.ways.again.raw()
    } else {
        take(context, site).unwrap_or(site.ways.behind.raw())
    };
    set_signal_mask(mask);
    target
}

/// Has the calls in the thread's table that return now, if they were not.
fn fetch(context: &mut ThreadContext) {
    context.capture.is_fetched = 1;
    let Some((table, behind, return_pc)) = returning(context) else { return };
    let mut engine = ENGINE.lock();
    engine.captures.other_calls.fetch(table, behind, return_pc);
    note_others(&engine, context, table);
}

/// The thread's open calls, and what those have in common that are about to return; `None`: there are none.
fn returning(context: &ThreadContext) -> Option<(OpenCalls, u64, AppPc)> {
    let stack_pointer = context.registers.sp();
    let mut word = [0; RETURN_ADDRESS_BYTES as usize];
    let table = table_of(context).filter(|_| read_memory(stack_pointer, &mut word) == word.len())?;
    Some((table, stack_pointer + RETURN_ADDRESS_BYTES, AppPc::from_raw(u64::from_le_bytes(word))))
}

/// Takes what is captured at a place, and then does what is asked for besides. Where the thread goes on, if that is not behind the handler.
fn take(context: &mut ThreadContext, site: &Site) -> Option<u64> {
    // SAFETY: `shared` is set before any code leads here, and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let writer = writer_of(context, shared);
    let outcome = context.capture.take_outcome();
    shared.stamp_now_and_then(ticks());
    let mut consequences = Vec::new();
    for (index, program) in site.place.programs.iter().enumerate() {
        let mut taken = Taken::default();
        if site.is_worked_out {
            if outcome >> index & 1 == 0 {
                continue;
            }
            let registers = &context.registers;
            taken = Values::of(context).take_more(program, |backtrace| rest_of(registers, backtrace));
        } else if program.returned == 0 && !taken.evaluate(program, &Probed::of(context)) {
            continue;
        }
        let found = match program.action {
            Action::Open(kind) => {
                begin(context, &writer, site, program, kind, &taken);
                continue;
            }
            _ if program.returned != 0 && site.is_worked_out => {
                end_found(context, context.capture.matched[index]).map(|function| (function, taken))
            }
            _ if program.returned != 0 => end(context, program),
            _ => Some((site.pc, taken)),
        };
        let Some((function, taken)) = found else { continue };
        match program.action {
            Action::Stop | Action::Change => consequences.push((program, function, taken)),
            _ => keep(&writer, program, function, &taken),
        }
    }
    // What is recorded is how it was before.
    let mut target = None;
    for (program, function, taken) in consequences {
        if program.action == Action::Change {
            target = changes::carry_out(context, &taken).or(target);
        } else {
            stop(&writer, program, function);
        }
    }
    // What the handler does at its end is left out.
    target.inspect(|_| context.probe.is_busy = 0).map(AppPc::raw)
}

/// Does with a capture's fields what it is for.
fn keep(writer: &RingWriter, program: &Program, pc: AppPc, taken: &Taken) {
    match &program.action {
        Action::Record => {
            let heading = Heading { tid: writer.tid, pc, tsc: ticks(), number: program.number };
            record(writer, &heading, taken);
        }
        Action::Aggregate(table) => add(taken, program, table, writer.shared.outlets().aggregates),
        _ => {}
    }
}

/// The thread waits until the controller has done what is to be done then.
fn stop(writer: &RingWriter, program: &Program, pc: AppPc) {
    // A child of vfork has its parent's block, and is another task.
    let who = gettid().into();
    writer.request(request_kind::HOLD, [hold_reason::CAPTURE.into(), program.number.into(), pc.raw(), who]);
}

/// A call begins, in front of the function's first instruction.
fn begin(context: &mut ThreadContext, writer: &RingWriter, site: &Site, program: &Program, kind: u32, taken: &Taken) {
    let stack_pointer = context.registers.sp();
    let mut word = [0; RETURN_ADDRESS_BYTES as usize];
    if read_memory(stack_pointer, &mut word) < word.len() {
        return;
    }
    let (return_pc, function, missing) = (u64::from_le_bytes(word), site.pc.raw(), taken.missing);
    let texts = texts_of(program, taken);
    let call = CallHead { stack_pointer, return_pc, function, tsc: ticks(), kind, missing, texts: 0 };
    open(&mut ENGINE.lock(), writer, context, call, &taken.words, texts);
}

/// A call is about to return, by the instruction in front of which the thread is: its stack pointer is what it was at the beginning. Its
/// function, and what is taken of it, if that is of interest.
fn end(context: &mut ThreadContext, program: &Program) -> Option<(AppPc, Taken)> {
    fetch(context);
    context.capture.is_fetched = 0;
    let (table, behind, return_pc) = returning(context)?;
    let at = table.find(behind, return_pc, |kind| kind == program.returned)?;
    // SAFETY: the table is the calling thread's, which has no call open as long as this is looked at.
    let call = unsafe { table.at(at) };
    let mut taken = Taken::default();
    let mut engine = ENGINE.lock();
    let texts = engine.captures.other_calls.texts_of(table, call.texts);
    let is_wanted = taken.evaluate(program, &Probed::of(context).behind(call, texts));
    let function = AppPc::from_raw(call.function);
    close(&mut engine, table, at);
    is_wanted.then_some((function, taken))
}

/// The same where the call was found in the thread's table, and its fields are there.
fn end_found(context: &ThreadContext, at: u64) -> Option<AppPc> {
    let table = table_of(context).filter(|_| at != 0)?;
    // SAFETY: as above; what the handler found is a place of the table.
    let function = unsafe { table.at(at) }.function;
    close(&mut ENGINE.lock(), table, at);
    Some(AppPc::from_raw(function))
}

/// The call there has returned.
fn close(engine: &mut Engine, table: OpenCalls, at: u64) {
    // SAFETY: as above.
    let texts = unsafe { table.at(at) }.texts;
    table.close(at);
    engine.captures.other_calls.drop_texts(table, texts);
}
