//! Signals that interrupt the runtime's handler.
//!
//! While it runs only those come that copies of the program's memory cause, and its own code causes none: they were sent. Where two
//! come at once the second finds the handler at its first instruction, neither the program's mask nor its code. It is put off until
//! the handler is done.
//!
//! Called by the handler, and keeps to its rules.

use crate::context::ThreadContext;
use crate::cpu::signal::blocked;
use crate::cpu::signal::deliver;
use crate::cpu::sys::kernel::UContext;
use crate::protocol::DETACH_CODE;
use crate::sys::calls::set_signal_mask;
use crate::sys::kernel::{SigInfo, SIGTRAP};
use crate::thread::block::signal_stack;

/// Whether the controller sent the signal, to fetch the thread: it says what the mask was that it opened for that.
pub fn is_of_controller(signal: u32, info: &SigInfo) -> bool {
    signal == SIGTRAP && info.code == -(DETACH_CODE as i32) && info.rest[0] == DETACH_CODE
}

/// Has the mask block SIGTRAP again, if the controller opened it for its signal. All else of the mask stays: another signal may have
/// come in between, behind which everything is blocked.
pub fn take_back_opening(context: &mut ThreadContext, info: &SigInfo, ucontext: &mut UContext) {
    let opened = info.rest[1] & 1 << (SIGTRAP - 1);
    ucontext.sigmask |= opened;
    if context.is_signal_waiting() || context.signals.fault_pending != 0 {
        // What came in between found the opened mask.
        context.signals.pending_mask |= opened;
    }
}

/// Whether the handler itself was interrupted: nothing else runs on its stack.
pub fn is_within_handler(context: &ThreadContext, ucontext: &UContext) -> bool {
    let stack = signal_stack(context);
    ucontext.sp().wrapping_sub(stack.sp) < stack.size
}

/// The handler begins.
pub fn begin(context: &mut ThreadContext) {
    // SAFETY: a field of a live context, which a signal that comes meanwhile writes.
    unsafe { (&raw mut context.signals.is_handler_deaf).write_volatile(0) };
}

/// Whether everything is blocked for the rest of the handler.
pub fn is_deaf(context: &ThreadContext) -> bool {
    // SAFETY: as above.
    unsafe { (&raw const context.signals.is_handler_deaf).read_volatile() != 0 }
}

/// Puts a signal off that came within the handler. If that is about to leave for the dispatcher it is held back there; else it
/// waits in the kernel, for which everything is blocked until the handler returns. Should the runtime be at fault after all, it
/// faults again right there, and the kernel ends the process.
pub fn put_off(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
    if is_of_controller(signal, info) {
        // It fetches a thread that ran natively, which is on its way already.
        take_back_opening(context, info, ucontext);
        return;
    }
    // SAFETY: a field of a live context, which the interrupted handler writes.
    if unsafe { (&raw const context.signals.has_state_apart).read_volatile() } != 0 {
        blocked::hold(context, signal, info);
        return;
    }
    // SAFETY: as in `begin`.
    unsafe { (&raw mut context.signals.is_handler_deaf).write_volatile(1) };
    set_signal_mask(u64::MAX);
    ucontext.sigmask = u64::MAX;
    deliver::send_again(&SigInfo { signo: signal as i32, ..*info });
}
