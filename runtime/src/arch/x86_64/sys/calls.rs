//! How system calls are made.

use core::arch::{asm, global_asm};

/// Bytes of the instruction that makes a call.
pub const CALL_BYTES: u64 = 2;

/// Makes a system call and returns what the kernel left in rax.
///
/// # Safety
/// The arguments must be what the call expects; whatever memory it writes must be the runtime's to lose.
#[inline(always)]
pub unsafe fn syscall(number: u64, arguments: [u64; 6]) -> i64 {
    let result: i64;
    // SAFETY: the kernel clobbers rcx and r11 only; memory effects are the caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") number as i64 => result,
            in("rdi") arguments[0], in("rsi") arguments[1], in("rdx") arguments[2],
            in("r10") arguments[3], in("r8") arguments[4], in("r9") arguments[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

global_asm!(
    ".pushsection .text.clew_program_call,\"ax\",@progbits",
    // i64 clew_program_call(rdi number, rsi six arguments). Clobbers what a C function may.
    ".globl clew_program_call",
    "clew_program_call:",
    "mov rax, rdi",
    "mov r11, rsi",
    "mov rdi, [r11]",
    "mov rsi, [r11 + 8]",
    "mov rdx, [r11 + 16]",
    "mov r10, [r11 + 24]",
    "mov r8, [r11 + 32]",
    "mov r9, [r11 + 40]",
    "syscall",
    ".globl clew_program_call_returned",
    "clew_program_call_returned:",
    "ret",
    ".popsection",
);

// SAFETY: the assembly above defines them, as they are declared here.
unsafe extern "C" {
    fn clew_program_call(number: u64, arguments: *const u64) -> i64;
    pub fn clew_program_call_returned();
}

/// Makes a system call for the program, from an instruction where its seccomp filters apply (sys/filter.rs), and returns
/// what the kernel left in rax, or `TRAPPED`.
///
/// # Safety
/// As `syscall`; what it does to the program's memory must be what the program asked for.
pub unsafe fn program_call(number: u64, arguments: [u64; 6]) -> i64 {
    // SAFETY: reads the six arguments; the rest is the caller's promise.
    unsafe { clew_program_call(number, arguments.as_ptr()) }
}
