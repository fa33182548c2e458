//! The runtime's own code: where it is, and how a handler leads a thread into it.

use crate::context::ThreadContext;
use crate::cpu::gate;
use crate::cpu::sys::kernel::UContext;
use crate::cpu::thread::create::clew_clone_returned;
use crate::sys::calls::clew_program_call_returned;
use core::sync::atomic::{AtomicU64, Ordering};

pub static IMAGE_START: AtomicU64 = AtomicU64::new(0);

pub static IMAGE_END: AtomicU64 = AtomicU64::new(0);

/// Says where the runtime's image is. Once, at the start.
pub fn set_image_range(start: u64, end: u64) {
    IMAGE_START.store(start, Ordering::Relaxed);
    IMAGE_END.store(end, Ordering::Relaxed);
}

/// Where the runtime's image is.
pub fn image_range() -> core::ops::Range<u64> {
    IMAGE_START.load(Ordering::Relaxed)..IMAGE_END.load(Ordering::Relaxed)
}

/// Whether an address is in it.
pub(super) fn is_in_image(address: u64) -> bool {
    image_range().contains(&address)
}

/// The kernel returns to `address` on the runtime's stack instead, with the vector state as it was.
pub(super) fn redirect(context: &ThreadContext, ucontext: &mut UContext, address: u64) {
    ucontext.mcontext.rip = address;
    ucontext.mcontext.rsp = context.gate.stack_top;
    ucontext.mcontext.rflags = 0x202;
}

/// The addresses behind the instructions that make the program's system calls: the gate's first, then those that Rust makes
/// in its place.
pub fn program_calls() -> [u64; 4] {
    [
        gate::clew_syscall_return as *const () as u64,
        clew_program_call_returned as *const () as u64,
        clew_clone_returned as *const () as u64,
        gate::clew_return_refused as *const () as u64,
    ]
}
