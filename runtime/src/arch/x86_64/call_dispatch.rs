//! System calls of the program's own code that come to the signal handler: the kernel's syscall user dispatch, for threads that are not
//! followed (Linux 5.11; Documentation/admin-guide/syscall-user-dispatch.rst).

use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::sys::calls::{check, syscall};
use core::ops::Range;

/// prctl's operation and what it may be asked.
pub const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
pub const OFF: u64 = 0;
const ON: u64 = 1;

/// Has the kernel send the calling thread's system calls to the handler, but for those from `image`, the runtime's. `false`: it
/// can't, or a filter forbids it.
pub fn begin(context: &mut ThreadContext, image: Range<u64>) -> bool {
    if context.native.is_dispatched == 0 {
        let call = [PR_SET_SYSCALL_USER_DISPATCH, ON, image.start, image.end - image.start, 0, 0];
        // SAFETY: no memory; calls from the runtime's image are made as ever.
        context.native.is_dispatched = u32::from(check(unsafe { syscall(number::PRCTL, call) }).is_ok());
    }
    context.native.is_dispatched != 0
}

/// The kernel makes the thread's calls again: it comes to translated code, or out of the runtime's hands.
pub fn end(context: &mut ThreadContext) {
    if core::mem::take(&mut context.native.is_dispatched) != 0 {
        // SAFETY: no memory.
        unsafe { syscall(number::PRCTL, [PR_SET_SYSCALL_USER_DISPATCH, OFF, 0, 0, 0, 0]) };
    }
}
