//! Where the controller has the runtime's task make system calls, while it holds that by ptrace.
//!
//! If the controller is killed in the midst of that, the kernel lets the task go, behind the call. It begins to serve anew there, on a stack of
//! its own.

use core::arch::global_asm;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};

const STACK_BYTES: usize = 0x8000;

#[repr(C, align(64))]
struct Stack([u8; STACK_BYTES]);

static mut STACK: Stack = Stack([0; STACK_BYTES]);

/// What the task does, and never comes back from.
pub type Serve = extern "C" fn() -> !;

/// The probes' floor is above this one: it says which function that is.
static SERVE: AtomicUsize = AtomicUsize::new(0);

/// Says what the task does. Once, before the controller can hold it.
pub fn set_serve(serve: Serve) {
    SERVE.store(serve as usize, Ordering::Relaxed);
}

extern "C" fn serve_anew() -> ! {
    let address = SERVE.load(Ordering::Relaxed);
    // SAFETY: `set_serve` stored a function of this type before the address of the call was told.
    let serve: Serve = unsafe { transmute(address) };
    serve()
}

global_asm!(
    ".pushsection .text.clew_task_call,\"ax\",@progbits",
    ".balign 16",
    ".globl clew_task_call",
    "clew_task_call:",
    "syscall",
    "lea rsp, [rip + {stack} + {STACK_BYTES}]",
    "xor ebp, ebp",
    "call {serve}",
    "ud2",
    ".popsection",
    stack = sym STACK,
    STACK_BYTES = const STACK_BYTES,
    serve = sym serve_anew,
);

// SAFETY: the assembly above defines it. Only the controller leads the task there.
unsafe extern "C" {
    fn clew_task_call();
}

/// The address of the instruction.
pub fn call_address() -> u64 {
    clew_task_call as *const () as u64
}
