//! Between which addresses code lies that might be trusted (instrument/change/trust.rs): the gate sends system calls that name them to
//! the dispatcher.

use core::sync::atomic::{AtomicU64, Ordering};

/// First address, and size: 0 where there is no such code.
pub static CODE_SPAN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Takes the code from `start` up to `end` in. Under the runtime's lock; what is in stays in. The size is set first: who reads both
/// meanwhile finds more, never less.
pub fn widen(start: u64, end: u64) {
    let (old_start, old_size) = (self::start(), CODE_SPAN[1].load(Ordering::Relaxed));
    let (start, end) = if old_size == 0 { (start, end) } else { (start.min(old_start), end.max(old_start + old_size)) };
    CODE_SPAN[1].store(end - start, Ordering::Release);
    CODE_SPAN[0].store(start, Ordering::Release);
}

fn start() -> u64 {
    CODE_SPAN[0].load(Ordering::Relaxed)
}

pub fn contains(address: u64) -> bool {
    address.wrapping_sub(start()) < CODE_SPAN[1].load(Ordering::Relaxed)
}
