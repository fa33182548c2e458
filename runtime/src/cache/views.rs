//! Where the memory of slabs comes from, and where it is written. As a rule that is where it runs: it may be written and executed.
//! Where the kernel gives no such memory (PR_SET_MDWE, a filter, a security module) a slab is a file that is mapped twice.
//!
//! Both mappings are shared: a fork's child would write into its parent's cache. It maps copies in their place, which its parent
//! made in front of the fork.

use super::slab::SLAB_BYTES;
use super::slabs::Slabs;
use crate::sys::calls::{check, close, limit_of, mmap, munmap, syscall, EACCES, EINVAL, EPERM};
use crate::sys::kernel::{
    MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE,
};
use crate::sys::spare::with_mapping;
use crate::sys::{heap, number};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A slab that is mapped twice.
struct View {
    /// Where it runs; 0: there is none.
    start: AtomicU64,
    /// Where it is written; 0: no addresses were taken yet.
    writable: AtomicU64,
}

/// So many there may be: a gigabyte of code.
const MAX_VIEWS: usize = 64;
static VIEWS: [View; MAX_VIEWS] = [const { View { start: AtomicU64::new(0), writable: AtomicU64::new(0) } }; MAX_VIEWS];
/// How many were ever used.
static N_VIEWS: AtomicUsize = AtomicUsize::new(0);
/// The descriptor of the file with a child's copies, and 1.
static CHILDS_FILE: AtomicU64 = AtomicU64::new(0);

fn views() -> impl Iterator<Item = (usize, u64, u64)> {
    let known = VIEWS.iter().take(N_VIEWS.load(Ordering::Acquire)).enumerate();
    known
        .map(|(index, view)| (index, view.start.load(Ordering::Acquire), view.writable.load(Ordering::Relaxed)))
        .filter(|(_, start, _)| *start != 0)
}

/// Where what lies at an address of the cache is written. Lock-free: called by the signal handler.
pub fn writable(address: u64) -> u64 {
    match views().find(|(_, start, _)| address.wrapping_sub(*start) < SLAB_BYTES) {
        Some((_, start, writable)) => address - start + writable,
        None => address,
    }
}

/// Maps a slab: at `start` or, without MAP_FIXED_NOREPLACE in `flags`, anywhere. `None`: that can't be done.
pub fn map(start: u64, flags: u64) -> Option<u64> {
    const ALL: u64 = PROT_READ | PROT_WRITE | PROT_EXEC;
    let plain = flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: replaces no mapping.
    match with_mapping(|| unsafe { mmap(start, SLAB_BYTES, ALL, plain) }) {
        Ok(address) => Some(address),
        Err(error) if matches!(error.0, EACCES | EPERM) => map_twice(start, flags),
        Err(_) => None,
    }
}

fn map_twice(start: u64, flags: u64) -> Option<u64> {
    let index = VIEWS.iter().position(|view| view.start.load(Ordering::Relaxed) == 0)?;
    let view = &VIEWS[index];
    if view.writable.load(Ordering::Relaxed) == 0 {
        view.writable.store(heap::reserve(SLAB_BYTES)?, Ordering::Relaxed);
    }
    let place = view.writable.load(Ordering::Relaxed);
    let file = make_file(SLAB_BYTES)?;
    let flags = flags | MAP_SHARED | MAP_NORESERVE;
    // SAFETY: replaces no mapping.
    let mapped = with_mapping(|| check(unsafe { map_file(file, 0, start, PROT_READ | PROT_EXEC, flags) })).ok();
    let address = mapped.filter(|_| map_to_write(file, 0, place));
    close(file);
    match (mapped, address) {
        (_, Some(address)) => {
            view.start.store(address, Ordering::Release);
            N_VIEWS.fetch_max(index + 1, Ordering::Release);
        }
        // SAFETY: just mapped, and of no use.
        (Some(useless), None) => unsafe { munmap(useless, SLAB_BYTES) },
        (None, None) => {}
    }
    address
}

/// Gives a slab's memory back.
///
/// # Safety
/// It was mapped by `map`, and nobody uses it any more.
pub unsafe fn unmap(start: u64) {
    // SAFETY: the caller's promise.
    unsafe { munmap(start, SLAB_BYTES) };
    if let Some((index, _, place)) = views().find(|(_, first, _)| *first == start) {
        VIEWS[index].start.store(0, Ordering::Release);
        // The addresses stay the runtime's.
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
        // SAFETY: addresses of the heap that only this view uses.
        let _ = with_mapping(|| unsafe { mmap(place, SLAB_BYTES, PROT_NONE, flags) });
    }
}

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
fn copy(file: u64, offset: u64, start: u64, part: Range<u64>) -> bool {
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

/// Maps a slab where it is written.
fn map_to_write(file: u64, offset: u64, place: u64) -> bool {
    let flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
    // SAFETY: addresses of the heap that only this view uses.
    with_mapping(|| check(unsafe { map_file(file, offset, place, PROT_READ | PROT_WRITE, flags) })).is_ok()
}

/// A file of zeros in memory; `None` where there can be none.
fn make_file(size_bytes: u64) -> Option<u64> {
    const MFD_CLOEXEC: u64 = 1;
    const MFD_EXEC: u64 = 0x10;
    const RLIMIT_FSIZE: u64 = 1;
    if limit_of(RLIMIT_FSIZE) < size_bytes {
        // It would get SIGXFSZ, which is not the program's.
        return None;
    }
    let name = c"clew-cache".as_ptr() as u64;
    // SAFETY: reads the name.
    let make = |flags| check(unsafe { syscall(number::MEMFD_CREATE, [name, flags, 0, 0, 0, 0]) });
    // Kernels before 6.3 do not know that a file may be executable.
    let made =
        make(MFD_CLOEXEC | MFD_EXEC).or_else(|error| if error.0 == EINVAL { make(MFD_CLOEXEC) } else { Err(error) });
    let file = made.ok()?;
    // SAFETY: sets the size of the runtime's own file.
    if check(unsafe { syscall(number::FTRUNCATE, [file, size_bytes, 0, 0, 0, 0]) }).is_err() {
        close(file);
        return None;
    }
    Some(file)
}

/// Maps a slab of `file`, from `offset` on.
///
/// # Safety
/// With MAP_FIXED what is there must be the runtime's own.
unsafe fn map_file(file: u64, offset: u64, start: u64, protection: u64, flags: u64) -> i64 {
    // SAFETY: forwarded from the caller.
    unsafe { syscall(number::MMAP, [start, SLAB_BYTES, protection, flags, file, offset]) }
}
