//! What of the address space is the runtime's: for the program nothing is there.
//!
//! Slabs give way to what the program maps (dispatch/life/room.rs). What the controller mapped can't: it is shown as reserved where a
//! program looks for free addresses, and can't be mapped over. Calls that name memory in which a part is hidden do to the rest what
//! they do natively around what is not mapped.
//!
//! Reads what is published and never moves; takes no lock.

extern crate alloc;
use crate::cache::views::SLAB_BYTES;
use crate::instrument::ENGINE;
use crate::sys::proc_text;
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

/// What can't give way.
pub fn fixed() -> Range<u64> {
    START.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)
}

/// Whether any of what can't give way is in `range`.
pub fn is_fixed_within(range: &Range<u64>) -> bool {
    overlap(&fixed(), range)
}

/// Whether any of the slab at `start` is in `range`.
pub fn is_slab_within(start: u64, range: &Range<u64>) -> bool {
    overlap(&(start..start + SLAB_BYTES), range)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Whether the runtime has its code, its tables or a slab there.
pub fn is_hidden(address: u64) -> bool {
    // SAFETY: slabs are published by an atomic and never move.
    let slabs = unsafe { &ENGINE.peek().cache.slabs };
    fixed().contains(&address) || slabs.contains(address)
}

/// Whether any of `range` is hidden.
pub fn is_within(range: &Range<u64>) -> bool {
    // SAFETY: as above.
    let slabs = unsafe { &ENGINE.peek().cache.slabs };
    is_fixed_within(range) || slabs.starts().any(|start| is_slab_within(start, range))
}

/// All of it, by address.
pub fn ranges() -> Vec<Range<u64>> {
    // SAFETY: as above.
    let slabs = unsafe { &ENGINE.peek().cache.slabs };
    let mut ranges: Vec<_> = slabs.starts().map(|start| start..start + SLAB_BYTES).collect();
    ranges.push(fixed());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges
}

/// What of `range` is not hidden.
pub fn visible_parts(range: &Range<u64>) -> Vec<Range<u64>> {
    proc_text::visible_parts(range, &ranges())
}
