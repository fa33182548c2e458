//! Syscall user dispatch: a thread's system calls that it wants to have as SIGSYS, but for those from a part of its code.
//!
//! The kernel would look at the gate's address, so it never comes to know: the runtime decides as the kernel does
//! (kernel/entry/syscall_user_dispatch.c), and while a thread asks for it, all its calls come to the dispatcher.

use crate::context::call::UserDispatch;
use crate::context::ThreadContext;
use crate::cpu::call_dispatch::OFF;
use crate::cpu::dispatcher;
use crate::cpu::guarded;
use crate::cpu::sys::kernel::AUDIT_ARCH;
use crate::cpu::sys::kernel::USER_END;
use crate::cpu::sys::number;
use crate::dispatch::life::release;
use crate::dispatch::signals::masks;
use crate::sys::calls::{program_call, EFAULT};
use crate::sys::kernel::{SigInfo, SIGSEGV, SIGSYS, SYS_USER_DISPATCH};

/// Calls are made inside of the range alone, not outside of it alone.
const ON_INSIDE: u64 = 2;
/// What the selector's byte says.
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;
const SI_KERNEL: i32 = 128;

/// prctl(PR_SET_SYSCALL_USER_DISPATCH, how, offset, length, selector).
pub fn change(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [operation, how, offset, length, selector, _] = arguments;
    // The kernel looks at all else before it refuses a selector for its address.
    let refused = if how == OFF { selector } else { u64::MAX };
    // SAFETY: changes nothing, because the kernel knows of no dispatch to end, or refuses this.
    let result = unsafe { program_call(number::PRCTL, [operation, how, offset, length, refused, 0]) };
    let is_on = match result {
        0 => false,
        _ if how == OFF || result != -i64::from(EFAULT) || selector > USER_END => return result,
        _ => true,
    };
    let (offset, length) = if how == ON_INSIDE {
        // What is outside of it goes around the end of all addresses.
        (offset.wrapping_add(length), length.wrapping_neg())
    } else {
        (offset, length)
    };
    end(context);
    if is_on {
        context.call.user_dispatch = UserDispatch { is_on: 1, padding: 0, offset, length, selector };
        context.call.handled = &raw const dispatcher::ALL_SYSCALLS as u64;
    }
    0
}

/// The thread's calls are made from now on.
pub fn end(context: &mut ThreadContext) {
    context.call.user_dispatch.is_on = 0;
    context.call.handled = &raw const dispatcher::HANDLED_SYSCALLS as u64;
}

/// Whether the call that the thread is about to make, behind which it goes on at `context.registers.pc`, is not made: SIGSYS waits
/// to be delivered then.
pub fn intercept(context: &mut ThreadContext) -> bool {
    let UserDispatch { is_on, offset, length, selector, .. } = context.call.user_dispatch;
    if is_on == 0 || context.registers.pc.raw().wrapping_sub(offset) < length {
        return false;
    }
    if selector != 0 {
        let mut state = [0];
        if masks::with_faults(context, |_| guarded::read_program(&mut state, selector)) != 1 {
            release::end_by(context, &SigInfo { signo: SIGSEGV as i32, code: SI_KERNEL, ..SigInfo::ZERO });
        }
        match state[0] {
            ALLOW => return false,
            BLOCK => {}
            _ => release::end_by(context, &SigInfo { signo: SIGSYS as i32, code: SI_KERNEL, ..SigInfo::ZERO }),
        }
    }
    let mut info = SigInfo { signo: SIGSYS as i32, code: SYS_USER_DISPATCH, ..SigInfo::ZERO };
    // si_syscall and si_arch.
    info.rest[0] = context.registers.call_number() | AUDIT_ARCH << 32;
    context.signals.fault_info = info;
    context.call.is_trapped = 1;
    true
}
