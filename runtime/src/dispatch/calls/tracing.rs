//! What a thread of the program's does to another process: it traces that, or writes to its memory. A tracer is to see the program's own
//! code executed, and what is written there is to be executed: where the other process is recorded as well, the controller sees to both.
//!
//! Runs on the runtime's stack, no lock held.

use super::vectors::read_pieces;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::dispatch::life::release;
use crate::instrument::ENGINE;
use crate::protocol::{release_reason, request_kind};
use crate::sys::calls::{check, program_call, syscall, Error, EFAULT};
use crate::sys::proc_text;
use crate::thread::registry::writer_of;

const TRACEME: u64 = 0;
const ATTACH: u64 = 16;
const SEIZE: u64 = 0x4206;
/// PTRACE_O_MASK (include/uapi/linux/ptrace.h): with others nothing is seized.
const SEIZE_OPTIONS: u64 = 0x30_00ff;

/// ptrace. Who asks to be traced goes on natively; whom the thread is to trace the controller leaves first, where it follows that.
pub fn trace(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [request, task, address, data, ..] = arguments;
    let attaches = request == ATTACH || request == SEIZE && address == 0 && data & !SEIZE_OPTIONS == 0;
    if attaches && may_trace(task) {
        ask(context, request_kind::TRACE, task, release_reason::TRACED);
    }
    // SAFETY: the program's own call.
    let result = unsafe { program_call(number::PTRACE, arguments) };
    if request == TRACEME && result == 0 {
        context.registers.set_result(0);
        release::release_all(context, release_reason::TRACED);
    }
    result
}

/// process_vm_writev. It fails, or comes short, where the other process is recorded and its runtime took the right to write from code that
/// was compared often (instrument/change/trust.rs): then that is left, and the call made again.
pub fn write_memory(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [task, here, n_here, there, n_there, _] = arguments;
    // SAFETY: the program's own call.
    let result = unsafe { program_call(number::PROCESS_VM_WRITEV, arguments) };
    let is_short = match check(result) {
        Ok(written) => written < length_of(context, here, n_here).min(length_of(context, there, n_there)),
        Err(error) => error == Error(EFAULT),
    };
    if is_short && ask(context, request_kind::TRACE, task, release_reason::WRITTEN) {
        // SAFETY: as above.
        return unsafe { program_call(number::PROCESS_VM_WRITEV, arguments) };
    }
    result
}

/// How many bytes the pieces of a vector are.
fn length_of(context: &mut ThreadContext, vector: u64, n: u64) -> u64 {
    read_pieces(context, vector, n).iter().fold(0, |length, (_, size)| length.saturating_add(*size))
}

/// The program has opened /proc/PID/mem of another process for writing, of which `path` is the path.
pub fn tell_writing(context: &ThreadContext, path: &[u8]) {
    if let Some(process) = proc_text::process_of(path) {
        ask(context, request_kind::WRITE, u64::from(process), 0);
    }
}

/// Asks the controller about task `number` of a process that may be recorded. Whether it did as asked.
fn ask(context: &ThreadContext, kind: u32, number: u64, reason: u16) -> bool {
    let shared = ENGINE.lock().shared;
    // The kernel takes a number of 32 bits.
    let arguments = [u64::from(number as u32), u64::from(reason), 0, 0];
    shared.header().follows != 0 && writer_of(context, shared).request(kind, arguments) == Some(1)
}

/// Whether the kernel lets this thread trace `task`. To read a task's memory takes the same right (mm/process_vm_access.c asks for
/// PTRACE_MODE_ATTACH_REALCREDS), and changes nothing; where there is none to read it says so after that.
fn may_trace(task: u64) -> bool {
    let mut byte = 0u8;
    let (here, there) = ([&raw mut byte as u64, 1], [0u64, 1]);
    let call = [task, here.as_ptr() as u64, 1, there.as_ptr() as u64, 1, 0];
    // SAFETY: writes at most `byte`.
    let result = check(unsafe { syscall(number::PROCESS_VM_READV, call) });
    matches!(result, Ok(_) | Err(Error(EFAULT)))
}
