//! New programs: execve and execveat.

use super::dumpable::while_shown;
use super::release;
use crate::context::call::RESTART_ARMED;
use crate::context::call::RESTART_DUE;
use crate::context::ThreadContext;
use crate::cpu::signal::deliver;
use crate::cpu::sys::number;
use crate::cpu::thread::create;
use crate::dispatch::apart::ended_calls;
use crate::instrument::ENGINE;
use crate::protocol::{end_kind, event_kind, request_kind};
use crate::signal::table::table_of;
use crate::sys::calls::{program_call, set_signal_mask};
use crate::thread::left_calls::Left;
use crate::thread::registry::{describe_end, write_event, writer_of};

/// execve and execveat: everything is recorded before, because nothing of the runtime is left after. The controller is
/// asked first: it becomes the thread's tracer, and finds the new program before its first instruction.
pub fn execute(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> i64 {
    let shared = ENGINE.lock().shared;
    let writer = writer_of(context, shared);
    let is_followed = shared.header().follows != 0 && {
        const AT_FDCWD: u64 = -100i64 as u64;
        let [first, second, _, _, fifth, _] = arguments;
        let (directory, path, flags) =
            if call == number::EXECVEAT { (first, second, fifth) } else { (AT_FDCWD, first, 0) };
        while_shown(|| writer.request(request_kind::EXECVE, [path, directory, flags, 0])) == Some(1)
    };
    ended_calls::end_process(context, &writer, Left::Executing);
    write_event(&writer, event_kind::EXECVE, context.registers.pc, [u64::from(is_followed), 0, 0]);
    release::end_path(&ENGINE.lock(), &writer, context);
    describe_end(context, shared, end_kind::EXECVE);
    table_of(context).lock().pass_ignored(true);
    let result = call_restartable(context, call, arguments);
    table_of(context).lock().pass_ignored(false);
    if is_followed {
        writer.request(request_kind::EXECVE_FAILED, [0; 4]);
    }
    begin_slot_again(context);
    ended_calls::end_process(context, &writer, Left::Stays);
    write_event(&writer, event_kind::EXECVE_FAILED, context.registers.pc, [-result as u64, 0, 0]);
    result
}

/// A signal came before the call: it is not made now, and perhaps never.
pub fn give_up(context: &ThreadContext) {
    let shared = ENGINE.lock().shared;
    begin_slot_again(context);
    ended_calls::end_process(context, &writer_of(context, shared), Left::Stays);
    if shared.header().follows != 0 {
        writer_of(context, shared).request(request_kind::EXECVE_FAILED, [0; 4]);
    }
}

/// Makes a call that passes the thread's mask on: a signal before it gives it up, is delivered, and the program makes
/// the call again. No lock may be held.
fn call_restartable(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> i64 {
    let (after, pc) = (context.registers.overwritten(), context.registers.pc);
    context.registers.put_back(context.gate.overwritten());
    let mask = set_signal_mask(u64::MAX);
    // SAFETY: a field of a live context, which the signal handler reads.
    unsafe { (&raw mut context.call.restart).write_volatile(RESTART_ARMED) };
    if context.is_signal_waiting() {
        // It came before the call was armed: the mask is not the program's.
        context.call.restart = RESTART_DUE;
        set_signal_mask(mask);
        create::enter(context);
    }
    deliver::raise_held(context);
    // The new program has what this one believes to have.
    set_signal_mask(context.program_mask(mask));
    // SAFETY: the program's own call.
    let result = unsafe { program_call(call, arguments) };
    set_signal_mask(mask);
    // SAFETY: as above.
    unsafe { (&raw mut context.call.restart).write_volatile(0) };
    context.registers.put_back(after);
    context.registers.pc = pc;
    result
}

/// The program was not replaced: the thread runs on.
pub fn begin_slot_again(context: &ThreadContext) {
    let shared = ENGINE.lock().shared;
    let slot = shared.slot(context.slot);
    // SAFETY: the slot is mapped and this thread's own.
    unsafe {
        (&raw mut (*slot).end_kind).write_volatile(end_kind::UNKNOWN);
        (&raw mut (*slot).end_tsc).write_volatile(0);
        (&raw mut (*slot).name).write_volatile([0; 16]);
    }
}
