//! Between which addresses code lies that might be trusted (instrument/trust.rs): the gate sends system calls that name them to
//! the dispatcher.

use core::sync::atomic::{AtomicU64, Ordering};

/// First address, and size: 0 where there is no such code.
pub static CODE_HULL: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

pub fn set(start: u64, size: u64) {
    CODE_HULL[0].store(start, Ordering::Relaxed);
    CODE_HULL[1].store(size, Ordering::Relaxed);
}

pub fn contains(address: u64) -> bool {
    address.wrapping_sub(CODE_HULL[0].load(Ordering::Relaxed)) < CODE_HULL[1].load(Ordering::Relaxed)
}
