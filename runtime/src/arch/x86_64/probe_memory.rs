//! How a handler reads the program's memory, where that may not be there.
//!
//! No handler of faults is the runtime's in a process that is not followed. One could be installed, but the program may put its own in
//! place of it at any time, or block the signal, and then a fault is the program's end (signal(7)). Nor does it help to ask the
//! kernel for a page in front of a read: another thread need only unmap it in between. So what is read by plain instructions is what can't
//! fault, because the thread has just written there: the handler itself has, `WRITTEN_BYTES` below the stack pointer. If that is the same
//! page, all of that page is there.
//!
//! Everything else the kernel reads (process_vm_readv(2)). It brings in pages that were not touched yet, and says which are not there.
//!
//! The routines are called by handlers, on the program's stack below its red zone. They keep all registers but rax, rcx, rdx and the flags.

use super::displacements::{GS_PROBE_LOCAL, GS_PROBE_PROCESS, GS_PROBE_REMOTE, GS_PROBE_SPILLED};
use crate::cpu::sys::number;
use core::arch::global_asm;

/// How far a routine's stack pointer is below the program's.
const BELOW: usize = 128 + 8;
/// As far below the program's stack pointer a handler has written.
pub const WRITTEN_BYTES: u32 = 144;
/// Of an address: where in its page it is.
pub const PAGE_MASK: u32 = 4095;

global_asm!(
    ".macro clew_probe_keep",
    "mov gs:[{spilled}], rdi; mov gs:[{spilled} + 8], rsi; mov gs:[{spilled} + 16], r8; mov gs:[{spilled} + 24], r9",
    "mov gs:[{spilled} + 32], r10; mov gs:[{spilled} + 40], r11; mov gs:[{spilled} + 48], rbx",
    ".endm",
    ".macro clew_probe_give_back",
    "mov rdi, gs:[{spilled}]; mov rsi, gs:[{spilled} + 8]; mov r8, gs:[{spilled} + 16]; mov r9, gs:[{spilled} + 24]",
    "mov r10, gs:[{spilled} + 32]; mov r11, gs:[{spilled} + 40]; mov rbx, gs:[{spilled} + 48]",
    ".endm",
    ".pushsection .text.clew_probe_memory,\"ax\",@progbits",
    // clew_probe_read(rax where from, rcx how many, rdx where to): ZF is set where all of them were read.
    ".balign 16",
    ".globl clew_probe_read",
    "clew_probe_read:",
    "clew_probe_keep",
    "mov rbx, rcx",
    "mov rsi, rax",
    "mov rdi, rdx",
    "call clew_probe_by_kernel",
    "cmp rax, rbx",
    "clew_probe_give_back",
    "ret",
    // clew_probe_text(rax where from, rcx how many at most, rdx where to): the bytes up to a zero byte, their number in rax; negative:
    // memory ends before either. As many as the next multiple of eight may be written.
    ".balign 16",
    ".globl clew_probe_text",
    "clew_probe_text:",
    "clew_probe_keep",
    "mov gs:[{spilled} + 56], rbp; mov gs:[{spilled} + 64], r12",
    "mov rbp, rax",
    "mov rdi, rdx",
    "mov r12, rdx",
    "mov rbx, rcx",
    // A piece of rcx bytes that lies in one page: rsi where, rbp behind it, rbx what is left then.
    "2:",
    "mov rsi, rbp",
    "mov ecx, {PAGE_MASK} + 1",
    "mov eax, esi",
    "and eax, {PAGE_MASK}",
    "sub ecx, eax",
    "cmp rcx, rbx",
    "cmova rcx, rbx",
    "sub rbx, rcx",
    "add rbp, rcx",
    "lea rax, [rsp + {BELOW}]",
    "mov rdx, rsi",
    "xor rdx, rax",
    "cmp rdx, {PAGE_MASK}",
    "ja 5f",
    "and eax, {PAGE_MASK}",
    "cmp eax, {WRITTEN_BYTES}",
    "jb 5f",
    // Where the program has alignment checks on it is read byte by byte.
    "3:",
    "pushfq",
    "test byte ptr [rsp + 2], 4",
    "lea rsp, [rsp + 8]",
    "jnz 33f",
    "mov r8, 0x0101010101010101",
    "mov r9, 0x8080808080808080",
    "jmp 31f",
    "30:",
    "mov rax, [rsi]",
    "mov [rdi], rax",
    // Of a word's zero bytes the lowest has the lowest bit of (word - 01..01) & ~word & 80..80.
    "mov rdx, rax",
    "sub rdx, r8",
    "not rax",
    "and rdx, rax",
    "and rdx, r9",
    "jnz 6f",
    "add rsi, 8",
    "add rdi, 8",
    "31:",
    "sub rcx, 8",
    "jae 30b",
    "add rcx, 8",
    "33:",
    "test rcx, rcx",
    "jz 35f",
    "34:",
    "movzx eax, byte ptr [rsi]",
    "test eax, eax",
    "jz 7f",
    "mov [rdi], al",
    "inc rsi",
    "inc rdi",
    "dec rcx",
    "jnz 34b",
    "35:",
    "test rbx, rbx",
    "jnz 2b",
    "jmp 7f",
    // The kernel brings it to where it is to be, and there it is read.
    "5:",
    "call clew_probe_by_kernel",
    "mov rdi, gs:[{local}]",
    "mov rcx, gs:[{local} + 8]",
    "mov rsi, rdi",
    "cmp rax, rcx",
    "je 3b",
    "mov rax, -1",
    "jmp 8f",
    "6:",
    "bsf rdx, rdx",
    "shr edx, 3",
    "add rdi, rdx",
    "7:",
    "mov rax, rdi",
    "sub rax, r12",
    "8:",
    "mov rbp, gs:[{spilled} + 56]; mov r12, gs:[{spilled} + 64]",
    "clew_probe_give_back",
    "ret",
    // rcx bytes at rsi to rdi: how many were read, or an error, to rax. rdi, rsi, rcx, rdx and r8 to r11 are lost.
    "clew_probe_by_kernel:",
    "mov gs:[{local}], rdi; mov gs:[{local} + 8], rcx; mov gs:[{remote}], rsi; mov gs:[{remote} + 8], rcx",
    "rdgsbase r10",
    "lea rsi, [r10 + {local}]",
    "lea r10, [r10 + {remote}]",
    "mov edi, gs:[{process}]",
    "mov edx, 1",
    "mov r8d, 1",
    "xor r9d, r9d",
    "mov eax, {readv}",
    "syscall",
    "ret",
    ".popsection",
    ".purgem clew_probe_keep",
    ".purgem clew_probe_give_back",
    spilled = const GS_PROBE_SPILLED,
    local = const GS_PROBE_LOCAL,
    remote = const GS_PROBE_REMOTE,
    process = const GS_PROBE_PROCESS,
    readv = const number::PROCESS_VM_READV,
    BELOW = const BELOW,
    PAGE_MASK = const PAGE_MASK,
    WRITTEN_BYTES = const WRITTEN_BYTES,
);

// SAFETY: the assembly above defines them. They are only ever called by handlers.
unsafe extern "C" {
    fn clew_probe_read();
    fn clew_probe_text();
}

/// Reads a few bytes, by the kernel.
pub fn reader() -> u64 {
    clew_probe_read as *const () as u64
}

/// Reads bytes up to a zero byte.
pub fn text_reader() -> u64 {
    clew_probe_text as *const () as u64
}
