//! The runtime's own memory: arenas and small allocations out of one address-space reserve.
//!
//! The controller reserved the addresses (PROT_NONE); pages become usable as they are needed. Nothing is given back.
//! Not reachable from signal handlers or translated code, except for reading arenas.

use super::calls::mprotect;
use super::kernel::{PROT_READ, PROT_WRITE};
use super::lock::Lock;
use super::spare;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Pages are made usable in steps of this size.
const COMMIT_BYTES: u64 = 0x4_0000;

struct Reserve {
    next: u64,
    end: u64,
}

static RESERVE: Lock<Reserve> = Lock::new(Reserve { next: 0, end: 0 });
static USED_BYTES: AtomicU64 = AtomicU64::new(0);
/// Size of the whole reserve.
static RESERVE_BYTES: AtomicU64 = AtomicU64::new(0);
/// The size of reserve for which arenas state theirs; in another they get their part of it.
const NOMINAL_BYTES: u64 = 64 << 30;

/// Gives the heap its address space. Called once, before anything allocates.
pub fn initialize(base: u64, size_bytes: u64) {
    *RESERVE.lock() = Reserve { next: base, end: base + size_bytes };
    RESERVE_BYTES.store(size_bytes, Ordering::Relaxed);
}

/// Bytes made usable so far.
pub fn used_bytes() -> u64 {
    USED_BYTES.load(Ordering::Relaxed)
}

/// Takes the heap's locks for good: around a fork, so that the child's copy of it is whole.
pub fn hold() {
    #[cfg(not(test))]
    global::hold();
    core::mem::forget(RESERVE.lock());
}

/// Gives up what `hold` took.
///
/// # Safety
/// The calling thread called `hold`, or is the child of the thread that did.
pub unsafe fn let_go() {
    // SAFETY: as the caller says.
    unsafe { RESERVE.give_up() };
    #[cfg(not(test))]
    // SAFETY: as above.
    unsafe {
        global::let_go();
    }
}

/// Begins anew where a fork may have come in the midst of anything: what is in use stays, what was free is not used again.
///
/// # Safety
/// As for `Lock::renew`.
pub unsafe fn renew() {
    // SAFETY: as the caller says. The reserve is whole at any instruction.
    unsafe { RESERVE.renew() };
    #[cfg(not(test))]
    // SAFETY: as above.
    unsafe {
        global::renew();
    }
}

/// Takes address space, not usable yet; `None` when the reserve is used up.
fn take(size_bytes: u64) -> Option<u64> {
    let mut reserve = RESERVE.lock();
    let start = reserve.next;
    if reserve.end - start < size_bytes {
        return None;
    }
    reserve.next += size_bytes;
    Some(start)
}

/// Takes addresses that nobody else uses, not usable yet.
pub fn reserve(size_bytes: u64) -> Option<u64> {
    take(size_bytes)
}

fn commit(start: u64, size_bytes: u64) -> bool {
    USED_BYTES.fetch_add(size_bytes, Ordering::Relaxed);
    // SAFETY: the range was taken from the reserve and belongs to the caller alone.
    spare::with_mapping(|| unsafe { mprotect(start, size_bytes, PROT_READ | PROT_WRITE) }).is_ok()
}

/// An append-only array at a fixed address, so that readers need no lock. Writers hold the runtime's lock.
pub struct Arena<T: Copy> {
    base: AtomicU64,
    committed_bytes: AtomicU64,
    nominal_bytes: u64,
    length: AtomicUsize,
    items: PhantomData<T>,
}

impl<T: Copy> Arena<T> {
    /// An arena that may grow to `nominal_bytes` of address space, if the reserve has its nominal size.
    pub const fn new(nominal_bytes: u64) -> Arena<T> {
        Arena {
            base: AtomicU64::new(0),
            committed_bytes: AtomicU64::new(0),
            nominal_bytes,
            length: AtomicUsize::new(0),
            items: PhantomData,
        }
    }

    pub fn len(&self) -> usize {
        self.length.load(Ordering::Acquire)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for `n` more items. `false` when memory is used up.
    fn ensure(&self, n: usize) -> bool {
        let needed = ((self.len() + n) * size_of::<T>()) as u64;
        let committed = self.committed_bytes.load(Ordering::Relaxed);
        if needed <= committed {
            return true;
        }
        let scaled = u128::from(self.nominal_bytes) * u128::from(RESERVE_BYTES.load(Ordering::Relaxed));
        let reserved = ((scaled / u128::from(NOMINAL_BYTES)) as u64).next_multiple_of(COMMIT_BYTES);
        if needed > reserved {
            return false;
        }
        if self.base.load(Ordering::Relaxed) == 0 {
            match take(reserved) {
                Some(base) => self.base.store(base, Ordering::Release),
                None => return false,
            }
        }
        let target = needed.next_multiple_of(COMMIT_BYTES).min(reserved);
        if !commit(self.base.load(Ordering::Relaxed) + committed, target - committed) {
            return false;
        }
        self.committed_bytes.store(target, Ordering::Relaxed);
        true
    }

    /// Appends an item and returns its index; `None` when memory is used up. Under the runtime's lock.
    pub fn push(&mut self, item: T) -> Option<usize> {
        if !self.ensure(1) {
            return None;
        }
        let index = self.len();
        // SAFETY: `ensure` made room for item `index`; only the lock's holder appends.
        unsafe { self.pointer().add(index).write(item) };
        self.length.store(index + 1, Ordering::Release);
        Some(index)
    }

    /// Appends all items and returns the first one's index.
    pub fn extend(&mut self, items: &[T]) -> Option<usize> {
        if !self.ensure(items.len()) {
            return None;
        }
        let index = self.len();
        // SAFETY: as in `push`.
        unsafe { core::ptr::copy_nonoverlapping(items.as_ptr(), self.pointer().add(index), items.len()) };
        self.length.store(index + items.len(), Ordering::Release);
        Some(index)
    }

    fn pointer(&self) -> *mut T {
        self.base.load(Ordering::Acquire) as *mut T
    }

    /// All items so far.
    pub fn as_slice(&self) -> &[T] {
        let length = self.len();
        if length == 0 {
            return &[];
        }
        // SAFETY: the first `length` items were written before `length` was published.
        unsafe { core::slice::from_raw_parts(self.pointer(), length) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        let length = self.len();
        if length == 0 {
            return &mut [];
        }
        // SAFETY: as above; the arena is borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.pointer(), length) }
    }
}

#[cfg(not(test))]
mod global {
    use super::{commit, take, Lock, COMMIT_BYTES};
    use crate::protocol::PAGE_BYTES;
    use core::alloc::{GlobalAlloc, Layout};

    const CLASSES: usize = 40;

    struct Small {
        next: u64,
        end: u64,
        free: [u64; CLASSES],
    }

    /// Powers of two from 16 bytes, with a free list each.
    pub struct Heap {
        small: Lock<Small>,
    }

    impl Heap {
        pub const fn new() -> Heap {
            Heap { small: Lock::new(Small { next: 0, end: 0, free: [0; CLASSES] }) }
        }
    }

    fn class_of(layout: &Layout) -> usize {
        layout.size().max(layout.align()).max(16).next_power_of_two().trailing_zeros() as usize
    }

    // SAFETY: blocks are powers of two at least as large as size and alignment, aligned to their size up to a page
    // (larger alignments are not asked for by this crate), and given out once until they are freed.
    unsafe impl GlobalAlloc for Heap {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let class = class_of(&layout);
            if class >= CLASSES {
                return core::ptr::null_mut();
            }
            let mut small = self.small.lock();
            let head = small.free[class];
            if head != 0 {
                // SAFETY: a free block's first word is the link to the next one.
                small.free[class] = unsafe { *(head as *const u64) };
                return head as *mut u8;
            }
            let size = 1u64 << class;
            let mut start = small.next.next_multiple_of(size.min(PAGE_BYTES));
            if start + size > small.end {
                let chunk = size.max(COMMIT_BYTES).next_multiple_of(COMMIT_BYTES);
                match take(chunk) {
                    Some(base) if commit(base, chunk) => {
                        small.end = base + chunk;
                        start = base;
                    }
                    _ => return core::ptr::null_mut(),
                }
            }
            small.next = start + size;
            start as *mut u8
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            let class = class_of(&layout);
            let mut small = self.small.lock();
            // SAFETY: the block is the caller's no longer, and at least 16 bytes large.
            unsafe { *(pointer as *mut u64) = small.free[class] };
            small.free[class] = pointer as u64;
        }
    }

    #[global_allocator]
    static HEAP: Heap = Heap::new();

    pub fn hold() {
        core::mem::forget(HEAP.small.lock());
    }

    /// # Safety
    /// As for the reserve.
    pub unsafe fn renew() {
        // SAFETY: as the caller says.
        unsafe { HEAP.small.renew().write(Small { next: 0, end: 0, free: [0; CLASSES] }) };
    }

    /// # Safety
    /// As for the reserve.
    pub unsafe fn let_go() {
        // SAFETY: as the caller says.
        unsafe { HEAP.small.give_up() };
    }
}
