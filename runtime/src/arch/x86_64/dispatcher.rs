//! What the gates know of the floors above them: which function they call and why, and which system calls it has a part in.

use crate::context::ThreadContext;

pub const REASON_EXIT: u32 = 0;
pub const REASON_INDIRECT: u32 = 1;
pub const REASON_SYSCALL: u32 = 2;
/// A plain system call is done, and a signal waits.
pub const REASON_SYSCALL_DONE: u32 = 3;
/// A plain system call was not made yet, or is to be restarted, and a signal waits.
pub const REASON_SYSCALL_AGAIN: u32 = 4;
/// The context is complete; start, signal or a return of a handler: go on at `rip`.
pub const REASON_RESUME: u32 = 5;
/// A thread that ran before the runtime came: as above, once the kernel knows it as one of the runtime's.
pub const REASON_ATTACH: u32 = 6;

/// Numbers from here on are one: the last byte of a table of calls.
pub const N_CALLS: usize = 512;

/// One byte for each system call, 1 where it comes to the dispatcher.
pub type CallTable = [u8; N_CALLS + 1];

/// Which calls the dispatcher has a part in. Written before the first gate runs.
pub static mut HANDLED_SYSCALLS: CallTable = [0; N_CALLS + 1];

/// All of them.
pub static ALL_SYSCALLS: CallTable = [1; N_CALLS + 1];

/// The dispatcher, as the top floor set it: the gates are below it and know it by this pointer only.
static DISPATCH: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

pub type Dispatch = extern "C" fn(&mut ThreadContext, u32) -> u64;

/// Says which function the gates call. Once, before any thread runs translated code.
pub fn set_dispatch(dispatch: Dispatch) {
    DISPATCH.store(dispatch as usize, core::sync::atomic::Ordering::Relaxed);
}

/// Called by the gates on the runtime's stack; returns the cache address to resume at.
pub extern "C" fn clew_dispatch_entry(context: &mut ThreadContext, reason: u32) -> u64 {
    let address = DISPATCH.load(core::sync::atomic::Ordering::Relaxed);
    // SAFETY: `set_dispatch` stored a function of this type before the first gate was entered.
    let dispatch: Dispatch = unsafe { core::mem::transmute(address) };
    dispatch(context, reason)
}
