//! Where the memory of slabs comes from, and where it is written. As a rule that is where it runs: it may be written and executed.
//! Where the kernel gives no such memory (PR_SET_MDWE, a filter, a security module) a slab is a file that is mapped twice.
//!
//! Both mappings are shared: a fork's child would write into its parent's cache. It maps copies in their place, which its parent
//! made in front of the fork.

use crate::cpu::sys::number;
use crate::sys::calls::{check, close, limit_of, mmap, munmap, syscall, EACCES, EINVAL, EPERM};
use crate::sys::heap;
use crate::sys::kernel::{
    MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE,
};
use crate::sys::spare::with_mapping;
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

pub(super) fn views() -> impl Iterator<Item = (usize, u64, u64)> {
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

/// Maps a slab where it is written.
pub(super) fn map_to_write(file: u64, offset: u64, place: u64) -> bool {
    let flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
    // SAFETY: addresses of the heap that only this view uses.
    with_mapping(|| check(unsafe { map_file(file, offset, place, PROT_READ | PROT_WRITE, flags) })).is_ok()
}

/// A file of zeros in memory; `None` where there can be none.
pub(super) fn make_file(size_bytes: u64) -> Option<u64> {
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
pub(super) unsafe fn map_file(file: u64, offset: u64, start: u64, protection: u64, flags: u64) -> i64 {
    // SAFETY: forwarded from the caller.
    unsafe { syscall(number::MMAP, [start, SLAB_BYTES, protection, flags, file, offset]) }
}

pub const SLAB_BYTES: u64 = 16 << 20;
