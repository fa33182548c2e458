//! Where a thread is that has trapped, and what a handler of signals returns to.

use crate::cpu::sys::kernel::UContext;
use crate::cpu::sys::number;
use crate::sys::kernel::SIGTRAP;
use core::arch::global_asm;

/// An instruction of one byte that traps.
pub const TRAP: u8 = 0xcc;

global_asm!(
    ".pushsection .text.clew_trap_restorer,\"ax\",@progbits",
    ".globl clew_trap_restorer",
    "clew_trap_restorer:",
    "mov eax, {sigreturn}",
    "syscall",
    ".popsection",
    sigreturn = const number::RT_SIGRETURN,
);

// SAFETY: the assembly above defines it.
unsafe extern "C" {
    fn clew_trap_restorer();
}

/// Where a handler of signals returns to.
pub fn restorer() -> u64 {
    clew_trap_restorer as *const () as u64
}

/// The address of the byte at which a thread trapped: behind an int3, at what is no instruction (AMD64 Architecture Programmer's Manual,
/// volume 2, 8.2.4 and 8.2.7).
pub fn trapped_at(frame: &UContext, signal: u32) -> u64 {
    frame.mcontext.rip.wrapping_sub(u64::from(signal == SIGTRAP))
}

/// Has the thread go on elsewhere.
pub fn go_on_at(frame: &mut UContext, target: u64) {
    frame.mcontext.rip = target;
}
