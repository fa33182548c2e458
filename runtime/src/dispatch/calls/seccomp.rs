//! Seccomp: installing the program's filters so that they spare the runtime, and asking them about what the runtime does in
//! the program's place.
//!
//! Runs on the runtime's stack, no lock held. What a filter says is never guessed: the kernel is asked, by a call of the
//! program's that changes nothing.

extern crate alloc;
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::cpu::signal::image::image_range;
use crate::cpu::signal::image::program_calls;
use crate::cpu::sys::kernel::ARCH_GET_GS;
use crate::cpu::sys::kernel::ARCH_SET_GS;
use crate::cpu::sys::number;
use crate::dispatch::life::release;
use crate::dispatch::signals::masks;
use crate::instrument::ENGINE;
use crate::protocol::{event_kind, release_reason};
use crate::sys::calls::{check, program_call, syscall};
use crate::sys::filter::{self, Instruction, Program};
use crate::thread::registry::{write_event, writer_of};
use alloc::vec::Vec;

/// prctl's operations.
pub const PR_GET_SECCOMP: u64 = 21;
pub const PR_SET_SECCOMP: u64 = 22;
const MODE_STRICT: u64 = 1;
const MODE_FILTER: u64 = 2;
/// seccomp's.
const SET_MODE_STRICT: u64 = 0;
const SET_MODE_FILTER: u64 = 1;
const FLAG_NEW_LISTENER: u64 = 8;

/// Whether filters apply already: inherited by the process.
pub fn initialize() {
    if has_filters() {
        filter::note_active(false);
    }
}

/// Whether filters apply to this thread.
fn has_filters() -> bool {
    // SAFETY: no memory.
    unsafe { syscall(number::PRCTL, [PR_GET_SECCOMP, 0, 0, 0, 0, 0]) > 0 }
}

/// seccomp, and prctl's part of it.
pub fn change(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> i64 {
    let is_strict = match call {
        number::SECCOMP => arguments[0] == SET_MODE_STRICT && arguments[1] as u32 == 0 && arguments[2] == 0,
        _ => arguments[0] == PR_SET_SECCOMP && arguments[1] == MODE_STRICT,
    };
    let is_filter = match call {
        number::SECCOMP => arguments[0] == SET_MODE_FILTER,
        _ => arguments[0] == PR_SET_SECCOMP && arguments[1] == MODE_FILTER,
    };
    // A thread that has filters is refused it (seccomp_may_assign_mode of kernel/seccomp.c).
    if is_strict && !has_filters() {
        // Leaves no room for the runtime's own calls.
        release_before(context, release_reason::SECCOMP_STRICT);
    }
    if is_filter {
        install(context, call, arguments)
    } else {
        // SAFETY: the program's own call.
        unsafe { program_call(call, arguments) }
    }
}

/// Both calls have the filter as their third argument.
fn install(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> i64 {
    let Some(program) = masks::with_faults(context, |_| read_filter(arguments[2])) else {
        // The kernel says why.
        // SAFETY: the program's own call.
        return unsafe { program_call(call, arguments) };
    };
    let Some(wrapped) = filter::wrap(&program, image_range(), program_calls()) else {
        release_before(context, release_reason::SECCOMP_FILTER);
    };
    let given = Program { length: wrapped.len() as u16, padding: [0; 6], instructions: wrapped.as_ptr() as u64 };
    filter::note_active(call == number::SECCOMP && arguments[1] & FLAG_NEW_LISTENER != 0);
    let call_arguments =
        [arguments[0], arguments[1], &raw const given as u64, arguments[3], arguments[4], arguments[5]];
    // SAFETY: reads the filter, which is what the program asked for.
    let result = unsafe { program_call(call, call_arguments) };
    drop(wrapped);
    if check(result).is_ok() {
        let shared = ENGINE.lock().shared;
        let flags = if call == number::SECCOMP { arguments[1] } else { 0 };
        let details = [SET_MODE_FILTER, flags, program.len() as u64];
        write_event(&writer_of(context, shared), event_kind::SECCOMP, context.registers.pc, details);
        if filter::reads_address(&program) {
            // It would see the gate's address at every call.
            context.registers.set_result(result as u64);
            release::release(context, release_reason::SECCOMP_FILTER);
        }
    }
    result
}

/// The filter that a `struct sock_fprog` of the program's leads to; `None` where the kernel refuses it for its length or
/// because it can't be read.
fn read_filter(address: u64) -> Option<Vec<Instruction>> {
    let mut head = [0; size_of::<Program>()];
    if guarded::read_program(&mut head, address) != head.len() {
        return None;
    }
    // SAFETY: as many bytes, and any bytes are one.
    let program = unsafe { head.as_ptr().cast::<Program>().read_unaligned() };
    let length = usize::from(program.length);
    if length == 0 || length > filter::MAX_LENGTH {
        return None;
    }
    let mut instructions = alloc::vec![Instruction { code: 0, if_true: 0, if_false: 0, k: 0 }; length];
    let size = size_of_val(instructions.as_slice());
    // SAFETY: the vector's own bytes, all of which any value may have.
    let bytes = unsafe { core::slice::from_raw_parts_mut(instructions.as_mut_ptr().cast::<u8>(), size) };
    (guarded::read_program(bytes, program.instructions) == size).then_some(instructions)
}

/// The thread goes on natively with the call that it is about to make.
fn release_before(context: &mut ThreadContext, reason: u16) -> ! {
    super::rewind::rewind_syscall(context);
    release::release(context, reason)
}

/// Asks the filters about a call that the runtime does not make as the program did: what it returns if they refuse it. The
/// arguments that they see are the program's, but for pointers.
pub fn refusal(context: &ThreadContext, call: u64, arguments: [u64; 6]) -> Option<i64> {
    if !filter::is_active() {
        return None;
    }
    let mut base = 0u64;
    let harmless = match call {
        number::RT_SIGACTION | number::RT_SIGPROCMASK => [arguments[0], 0, 0, arguments[3], 0, 0],
        number::SIGALTSTACK => [0; 6],
        number::ARCH_PRCTL if arguments[0] == ARCH_SET_GS => [ARCH_SET_GS, context.self_address, 0, 0, 0, 0],
        number::ARCH_PRCTL if arguments[0] == ARCH_GET_GS => [ARCH_GET_GS, &raw mut base as u64, 0, 0, 0, 0],
        _ => return None,
    };
    // SAFETY: with these arguments the call changes nothing, or writes to `base`.
    let result = unsafe { program_call(call, harmless) };
    (result != 0).then_some(result)
}
