//! Signals that come although the program blocks them, as the kernel's mask is not the program's.
//!
//! Called by the handler, and keeps to its rules.

use crate::context::ThreadContext;
use crate::cpu::gate;
use crate::cpu::signal::{deliver, returning};
use crate::cpu::sys::kernel::UContext;
use crate::cpu::sys::number;
use crate::instrument::change::trust;
use crate::sys::kernel::{SigInfo, SEGV_BIT, SIGSEGV, UNDEFERRED_SIGNALS};

/// Whether the program blocks a SIGSEGV that the kernel let come. Where the kernel blocks it as well, or a system call was
/// interrupted that waits with a mask of its own, it is that mask that let it in.
pub fn is_blocked_by_program(context: &ThreadContext, ucontext: &UContext) -> bool {
    const EINTR: i64 = 4;
    let machine = &ucontext.mcontext;
    let is_interrupted = machine.rip == gate::clew_syscall_return as *const () as u64 && machine.rax as i64 == -EINTR;
    let waits_with_mask = is_interrupted
        && matches!(
            context.call.number,
            number::RT_SIGSUSPEND
                | number::PPOLL
                | number::PSELECT6
                | number::EPOLL_PWAIT
                | number::EPOLL_PWAIT2
                | number::IO_PGETEVENTS
        );
    ucontext.sigmask & SEGV_BIT == 0 && context.program_mask(0) & SEGV_BIT != 0 && !waits_with_mask
}

/// A SIGSEGV was sent that the program blocks: it waits in the kernel, where the program can look for it.
pub fn block_again(context: &mut ThreadContext, info: &SigInfo, ucontext: &mut UContext) {
    // SAFETY: a field of a live context, which only its own thread writes.
    unsafe { (&raw mut context.signals.is_segv_blocked).write_volatile(1) };
    if trust::is_active() {
        context.signals.is_segv_blocked = 0;
        hold(context, SIGSEGV, info);
        return;
    }
    context.signals.hides_block = 0;
    // SAFETY: as above.
    unsafe { (&raw mut context.native.is_mask_known).write_volatile(0) };
    ucontext.sigmask |= SEGV_BIT;
    if context.signals.gives_mask_by_frame != 0 {
        returning::block_segv(context);
    }
    deliver::send_again(info);
}

/// Keeps back a signal that was sent while the mask here is not the program's: only those that an instruction can cause
/// as well come then. A second one of a kind is lost, as it is where the kernel keeps it (signal(7), standard signals).
pub fn hold(context: &mut ThreadContext, signal: u32, info: &SigInfo) {
    let Some(index) = UNDEFERRED_SIGNALS.iter().position(|number| *number == signal) else {
        return;
    };
    if context.signals.held[index].signo == 0 {
        context.signals.held[index] = SigInfo { signo: signal as i32, ..*info };
    }
}
