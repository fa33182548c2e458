//! Starting threads and processes: clone with stacks of the runtime's.
//!
//! A new thread starts on its own private block's stack, with all signals blocked, sets its gs base and signal stack and
//! goes on in the dispatcher. A new process starts on a stack of its own in its parent's block (so that a vfork's child
//! does not tread on its parent's frames).

use crate::context::layout::{CHILD_STACK_BYTES, CHILD_STACK_OFFSET};
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::sys::filter;
use core::arch::global_asm;
use core::ops::RangeInclusive;

global_asm!(
    ".pushsection .text.clew_clone,\"ax\",@progbits",
    // u64 clew_clone(number, a0, a1, a2, a3, a4, stack): the system call with five arguments. In the child, whose stack
    // holds an argument and a function: calls the function, which does not return. Until then the child touches no memory:
    // vfork's has its parent's stack pointer.
    ".globl clew_clone",
    "clew_clone:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    ".globl clew_clone_returned",
    "clew_clone_returned:",
    "test rax, rax",
    "jz 1f",
    "ret",
    "1:",
    "mov rsp, r9",
    "xor ebp, ebp",
    "pop rdi",
    "pop rax",
    "call rax",
    "ud2",
    // Jumps to the gate that starts a context: rdi context, rsi its stack.
    ".globl clew_enter",
    "clew_enter:",
    "mov rsp, rsi",
    "jmp clew_gate_start",
    ".popsection",
);

// SAFETY: the assembly above defines them, as they are declared here.
unsafe extern "C" {
    fn clew_clone(number: u64, a0: u64, a1: u64, a2: u64, a3: u64, a4: u64, stack: u64) -> i64;
    fn clew_enter(context: u64, stack: u64) -> !;
    pub fn clew_clone_returned();
}

/// What runs first in a child, with its context.
pub type ChildEntry = extern "C" fn(&mut ThreadContext) -> !;

/// Puts what `clew_clone` expects on top of a stack and returns the stack pointer.
fn prepare_stack(top: u64, context: &ThreadContext, entry: ChildEntry) -> u64 {
    let stack = (top - 64) & !15;
    // SAFETY: `top` is the end of an unused stack of the runtime's.
    unsafe {
        (stack as *mut u64).write(context.self_address);
        ((stack + 8) as *mut u64).write(entry as usize as u64);
    }
    stack
}

/// The stack on which a new process starts that shares this thread's block or has a copy of it.
pub fn child_stack_top(context: &ThreadContext) -> u64 {
    context.self_address + CHILD_STACK_OFFSET + CHILD_STACK_BYTES
}

/// Makes a clone call whose child runs `entry(child)` on the stack below `stack_top`. Returns what the kernel returns in
/// the parent.
pub fn clone(flags: u64, arguments: [u64; 3], stack_top: u64, child: &ThreadContext, entry: ChildEntry) -> i64 {
    let stack = prepare_stack(stack_top, child, entry);
    let mask = filter::open_for_trap(child.process.start_mask);
    // SAFETY: the child runs `entry` on a stack of its own; the parent returns as from any call.
    let result = unsafe { clew_clone(number::CLONE, flags, stack, arguments[0], arguments[1], arguments[2], stack) };
    filter::close_after_trap(mask);
    result
}

/// As `clone`, by fork or vfork, as `call` says: a filter may make a difference between them.
pub fn fork(call: u64, stack_top: u64, child: &ThreadContext, entry: ChildEntry) -> i64 {
    let stack = prepare_stack(stack_top, child, entry);
    let mask = filter::open_for_trap(child.process.start_mask);
    // SAFETY: as in `clone`.
    let result = unsafe { clew_clone(call, 0, 0, 0, 0, 0, stack) };
    filter::close_after_trap(mask);
    result
}

/// `struct clone_args` as large as any kernel knows it here.
pub const CLONE_ARGS_WORDS: usize = 11;
/// What the kernel takes (kernel/fork.c, copy_clone_args_from_user).
pub const CLONE_ARGS_SIZES: RangeInclusive<u64> = 64..=4096;
/// Index of `flags`, `stack` and `stack_size`.
pub const CLONE_ARGS_FLAGS: usize = 0;
pub const CLONE_ARGS_STACK: usize = 5;
pub const CLONE_ARGS_STACK_SIZE: usize = 6;

/// As `clone`, by clone3. `size` is what the application said.
pub fn clone3(
    mut arguments: [u64; CLONE_ARGS_WORDS],
    size: u64,
    stack_top: u64,
    child: &ThreadContext,
    entry: ChildEntry,
) -> i64 {
    let stack = prepare_stack(stack_top, child, entry);
    // The kernel puts rsp at the end of the given stack.
    arguments[CLONE_ARGS_STACK] = stack - 4096;
    arguments[CLONE_ARGS_STACK_SIZE] = 4096;
    let mask = filter::open_for_trap(child.process.start_mask);
    // SAFETY: as in `clone`; the kernel reads `size` bytes, at most the array.
    let result = unsafe { clew_clone(number::CLONE3, arguments.as_ptr() as u64, size, 0, 0, 0, stack) };
    filter::close_after_trap(mask);
    result
}

/// Enters the dispatcher for a context, on its own stack. Does not come back.
pub fn enter(context: &ThreadContext) -> ! {
    // SAFETY: the context is complete, gs is its block, and nothing on the present stack is needed any more.
    unsafe { clew_enter(context.self_address, context.gate.stack_top) }
}
