//! What of the address space is the runtime's: for the program nothing is there.
//!
//! Reads what is published and never moves; takes no lock.

extern crate alloc;
use crate::cache::slab::SLAB_BYTES;
use crate::instrument::ENGINE;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

static START: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Says where the controller mapped the runtime. Once, at the start.
pub fn initialize(start: u64, end: u64) {
    START.store(start, Ordering::Relaxed);
    END.store(end, Ordering::Relaxed);
}

/// Whether the runtime has its code, its tables or a slab there.
pub fn is_hidden(address: u64) -> bool {
    // SAFETY: slabs are published by an atomic and never move.
    let slabs = unsafe { &ENGINE.peek().cache.slabs };
    (START.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)).contains(&address) || slabs.contains(address)
}

/// All of it, by address.
pub fn ranges() -> Vec<Range<u64>> {
    // SAFETY: as above.
    let slabs = unsafe { &ENGINE.peek().cache.slabs };
    let mut ranges: Vec<_> = slabs.starts().map(|start| start..start + SLAB_BYTES).collect();
    ranges.push(START.load(Ordering::Relaxed)..END.load(Ordering::Relaxed));
    ranges.sort_unstable_by_key(|range| range.start);
    ranges
}
