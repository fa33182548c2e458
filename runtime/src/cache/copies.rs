//! Copies of the cache for a fork's child, where slabs are files that are shared.

use super::slabs::Slabs;
use super::views::SLAB_BYTES;
use super::views::{make_file, map_file, map_to_write, views};
use crate::sys::calls::{check, close, syscall};
use crate::sys::kernel::{MAP_FIXED, MAP_NORESERVE, MAP_SHARED, PROT_EXEC, PROT_READ};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// The descriptor of the file with a child's copies, and 1.
pub static CHILDS_FILE: AtomicU64 = AtomicU64::new(0);

/// Copies what is in use for a child that is about to be made; `false`: there is no file, or no memory for it. The lock of the cache is
/// held until `drop_copies`: children that other threads make have copies of their own.
pub fn make_copies(slabs: &Slabs) -> bool {
    let Some((last, ..)) = views().last() else {
        return true;
    };
    let Some(file) = make_file((last as u64 + 1) * SLAB_BYTES) else {
        return false;
    };
    CHILDS_FILE.store(file + 1, Ordering::Relaxed);
    let are_made = views().all(|(index, start, _)| {
        let parts = slabs.used_of(start);
        parts.into_iter().all(|part| copy(file, index as u64 * SLAB_BYTES, start, part))
    });
    if !are_made {
        drop_copies();
    }
    are_made
}

/// Writes a part of the slab at `start` into its copy, which begins at `offset`.
pub fn copy(file: u64, offset: u64, start: u64, part: Range<u64>) -> bool {
    const PWRITE64: u64 = 18;
    let mut at = part.start;
    while at < part.end {
        // SAFETY: reads a part of a slab.
        match check(unsafe { syscall(PWRITE64, [file, start + at, part.end - at, offset + at, 0, 0]) }) {
            Ok(written) if written != 0 => at += written,
            _ => return false,
        }
    }
    true
}

/// The copies are not needed any more, or were taken.
pub fn drop_copies() {
    if let Some(file) = CHILDS_FILE.swap(0, Ordering::Relaxed).checked_sub(1) {
        close(file);
    }
}

/// In a child: maps its copies in the place of its parent's slabs. `false`: the cache is the parent's, and may not be used.
pub fn take_copies() -> bool {
    let Some(file) = CHILDS_FILE.load(Ordering::Relaxed).checked_sub(1) else {
        return true;
    };
    let flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
    let are_mapped = views().all(|(index, start, place)| {
        let offset = index as u64 * SLAB_BYTES;
        // SAFETY: takes the place of a slab, which nobody runs in: the child is one thread, and that is here.
        let runs = check(unsafe { map_file(file, offset, start, PROT_READ | PROT_EXEC, flags) }).is_ok();
        runs && map_to_write(file, offset, place)
    });
    drop_copies();
    are_mapped
}
