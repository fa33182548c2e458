//! Parking: a thread stops for the controller, which holds it by ptrace, at a place that both know.
//!
//! Runs on the runtime's stack. The trap is the tracer's; should there be none any more, the signal handler lets the thread
//! go on behind it (arch/x86_64/signal/handler.rs). It must find the runtime's alternate stack then, or none: a frame on the program's
//! could lie over one that is in use.

use super::xmm::load_xmm;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::protocol::ThreadState;
use crate::sys::calls::set_signal_mask;
use crate::sys::kernel::{SigStack, SIGTRAP};
use core::arch::global_asm;
use core::mem::offset_of;

global_asm!(
    ".pushsection .text.clew_parking,\"ax\",@progbits",
    // void clew_park(rdi state, rsi stack): xmm and MXCSR become the application's as the context has them, then a trap. With
    // that behind it the thread takes the alternate stack that is given, and is where the controller takes it from. Returns
    // if the controller lets it go on, with xmm as they are and the runtime's MXCSR.
    ".globl clew_park",
    "clew_park:",
    "ldmxcsr gs:[{mxcsr}]",
    load_xmm!(),
    "int3",
    ".globl clew_parked",
    "clew_parked:",
    "mov rdi, rsi",
    "xor esi, esi",
    "mov eax, {SIGALTSTACK}",
    "syscall",
    ".globl clew_handover",
    "clew_handover:",
    "jmp 2f",
    // void clew_park_bare(): the trap alone; gs need not be a context's.
    ".globl clew_park_bare",
    "clew_park_bare:",
    "int3",
    ".globl clew_parked_bare",
    "clew_parked_bare:",
    "2:",
    "push 0x1f80",
    "ldmxcsr [rsp]",
    "pop rax",
    "ret",
    // Where the controller makes a stopped thread call the kernel; it takes the thread away behind the instruction.
    ".globl clew_controller_call",
    "clew_controller_call:",
    "syscall",
    "ud2",
    ".popsection",
    mxcsr = const offset_of!(ThreadContext, vector.mxcsr),
    xmm = const offset_of!(ThreadContext, vector.xmm),
    SIGALTSTACK = const number::SIGALTSTACK,
);

// SAFETY: the assembly above defines them, as they are declared here.
unsafe extern "C" {
    fn clew_park(state: *const ThreadState, stack: *const SigStack);
    fn clew_park_bare();
    pub fn clew_parked();
    pub fn clew_parked_bare();
    pub fn clew_handover();
    pub fn clew_controller_call();
}

/// Blocks all signals but SIGTRAP: a trap that is blocked would cost the program its action for SIGTRAP
/// (kernel/signal.c, force_sig_info_to_task).
fn open_mask() {
    set_signal_mask(!(1 << (SIGTRAP - 1)));
}

/// Whether a thread was trapped to park there.
pub fn is_parked_at(address: u64) -> bool {
    address == clew_parked as *const () as u64 || address == clew_parked_bare as *const () as u64
}

/// Parks the thread whose context gs holds, its state outside the runtime in `state`. The signal mask is lost, and the
/// kernel's alternate stack is `stack` then.
pub fn park(state: &ThreadState, stack: &SigStack) {
    open_mask();
    // SAFETY: gs is the calling thread's context, whose xmm registers are complete; both live until this returns.
    unsafe { clew_park(state, stack) };
}

/// Parks a thread that the controller sends elsewhere next, where SIGTRAP is taken without an alternate stack. Returns if the
/// controller was killed.
pub fn park_bare() {
    open_mask();
    // SAFETY: the trap is the tracer's, or the signal handler's.
    unsafe { clew_park_bare() };
}
