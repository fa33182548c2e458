//! Lays spare mappings, once a program maps so much that it may come to the limit (sys/spare.rs).

use super::calls::mprotect;
use super::heap;
use super::kernel::PROT_READ;
use super::spare::{BASE, LEFT, PAGES};
use crate::protocol::PAGE_BYTES;
use core::sync::atomic::{AtomicU32, Ordering};

/// A program that maps so often may come to the limit.
pub const MANY_CALLS: u32 = 512;

pub static CALLS: AtomicU32 = AtomicU32::new(0);

/// The program makes a call that may take a mapping.
pub fn note_call() {
    if CALLS.load(Ordering::Relaxed) < MANY_CALLS && CALLS.fetch_add(1, Ordering::Relaxed) + 1 == MANY_CALLS {
        lay();
    }
}

pub fn lay() {
    let Some(base) = heap::reserve(u64::from(PAGES) * 2 * PAGE_BYTES) else {
        return;
    };
    BASE.store(base, Ordering::Relaxed);
    for index in 0..u64::from(PAGES) {
        // SAFETY: pages of the runtime's that hold nothing.
        if unsafe { mprotect(base + index * 2 * PAGE_BYTES, PAGE_BYTES, PROT_READ) }.is_ok() {
            LEFT.store(index as u32 + 1, Ordering::Release);
        }
    }
}
