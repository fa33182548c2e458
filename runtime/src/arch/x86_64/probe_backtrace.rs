//! How a handler takes a backtrace: the way from its machine code to the walk (`unwinding`), and back.
//!
//! The walk runs on the program's stack, below its red zone: a signal that comes meanwhile finds a stack of the program's. What the walk
//! needs beside that lies at the lower end of the stack on which the thread's block has the runtime run: nobody is there while the thread is
//! in a handler, and no one comes so far down from above.

use super::displacements::{GS_PROBE_PROCESS, GS_PROBE_SPILLED, GS_SELF_ADDRESS};
use super::unwinding::{walk, Frame, COPY_BYTES};
use crate::context::layout::{STACK_BYTES, STACK_OFFSET};
use core::arch::global_asm;

/// How far the routine's stack pointer is below the program's.
const BELOW: usize = 128 + 8;
/// Where vector registers are meanwhile: compiled code uses their lower halves, and leaves the others alone.
const VECTORS: u32 = STACK_OFFSET as u32 + COPY_BYTES as u32;
const N_VECTORS: u64 = 16;
/// Flags that compiled code does not expect: backwards (DF), alignment is checked (AC).
const STRANGE_FLAGS: u32 = 1 << 10 | 1 << 18;

global_asm!(
    ".pushsection .text.clew_probe_backtrace,\"ax\",@progbits",
    // clew_probe_backtrace(rax the instruction's address, rcx how many frames, rdx where to): how many bytes there are, to rax. All other
    // registers but rcx, rdx and the flags of arithmetic are kept.
    ".balign 16",
    ".globl clew_probe_backtrace",
    "clew_probe_backtrace:",
    "mov gs:[{spilled}], rdi; mov gs:[{spilled} + 8], rsi; mov gs:[{spilled} + 16], r8; mov gs:[{spilled} + 24], r9",
    "mov gs:[{spilled} + 32], r10; mov gs:[{spilled} + 40], r11; mov gs:[{spilled} + 48], rbx",
    "mov rbx, rsp",
    "mov rdi, rax",
    "lea rsi, [rsp + {BELOW}]",
    "mov r8, rcx",
    "mov r9, rdx",
    "mov rdx, rbp",
    "mov rcx, gs:[{self_address}]",
    ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "movups [rcx + {VECTORS} + 16 * \\n], xmm\\n",
    ".endr",
    "pushfq",
    "pop rax",
    "mov gs:[{spilled} + 56], rax",
    "test eax, {STRANGE_FLAGS}",
    "jz 2f",
    "and eax, ~{STRANGE_FLAGS}",
    "push rax",
    "popfq",
    "2:",
    "and rsp, -16",
    "call {walk}",
    "mov rsp, rbx",
    "mov rcx, gs:[{spilled} + 56]",
    "test ecx, {STRANGE_FLAGS}",
    "jz 3f",
    "push rcx",
    "popfq",
    "3:",
    "mov rcx, gs:[{self_address}]",
    ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "movups xmm\\n, [rcx + {VECTORS} + 16 * \\n]",
    ".endr",
    "mov rdi, gs:[{spilled}]; mov rsi, gs:[{spilled} + 8]; mov r8, gs:[{spilled} + 16]; mov r9, gs:[{spilled} + 24]",
    "mov r10, gs:[{spilled} + 32]; mov r11, gs:[{spilled} + 40]; mov rbx, gs:[{spilled} + 48]",
    "ret",
    ".popsection",
    spilled = const GS_PROBE_SPILLED,
    self_address = const GS_SELF_ADDRESS,
    BELOW = const BELOW,
    VECTORS = const VECTORS,
    STRANGE_FLAGS = const STRANGE_FLAGS,
    walk = sym walk_there,
);

// SAFETY: the assembly above defines it. It is only ever called by handlers.
unsafe extern "C" {
    fn clew_probe_backtrace();
}

/// Where handlers call.
pub fn taker() -> u64 {
    clew_probe_backtrace as *const () as u64
}

/// What the routine calls: how many bytes there are.
///
/// # Safety
/// `block` is the thread's own; it has written below its stack pointer; `out` has room for as many frames (`layout`).
unsafe extern "C" fn walk_there(
    pc: u64,
    stack_pointer: u64,
    frame_pointer: u64,
    block: u64,
    limit: u64,
    out: *mut u64,
) -> u64 {
    // SAFETY: the block is the thread's own; the field is aligned.
    let process = unsafe { ((block + u64::from(GS_PROBE_PROCESS)) as *const u32).read() };
    let start = Frame::of_thread(pc, stack_pointer, frame_pointer);
    // SAFETY: the handler has written below the stack pointer, and gives as much room as a form that was checked asks for.
    unsafe { walk(start, limit as usize, out, copy_of(block), process) as u64 }
}

/// Where a walk of the thread whose block begins there copies stacks to.
pub fn copy_of(block: u64) -> *mut u8 {
    (block + STACK_OFFSET) as *mut u8
}

const _: () = assert!((COPY_BYTES as u64) + 16 * N_VECTORS < STACK_BYTES / 4);
