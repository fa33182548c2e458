//! ptrace: a thread of the program's is about to trace another task, or to be traced. What a tracer sees of a task is what the processor
//! executes, so the task has to run its own code by then.

use super::delivery;
use crate::arch::x86_64::context::ThreadContext;
use crate::instrument::ENGINE;
use crate::protocol::{release_reason, request_kind};
use crate::sys::calls::{check, program_call, syscall, Error, EFAULT};
use crate::sys::number;
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
    let shared = ENGINE.lock().shared;
    if attaches && shared.header().follows != 0 && may_trace(task) {
        // The kernel takes a number of 32 bits.
        writer_of(context, shared).request(request_kind::TRACE, [u64::from(task as u32), 0, 0, 0]);
    }
    // SAFETY: the program's own call.
    let result = unsafe { program_call(number::PTRACE, arguments) };
    if request == TRACEME && result == 0 {
        context.registers[0] = 0;
        delivery::release_all(context, release_reason::TRACED);
    }
    result
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
