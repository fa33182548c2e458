//! Blocks and slots for threads that come to a probe, of the process that is probed and of its forks' children.
//!
//! These have copies of all that is private, whatever state that was in, and the same shared memory. So slots are taken without a lock, in
//! the shared memory alone, and each has a block of its own, at addresses that no other slot's has. The blocks of a parent are zeros
//! in its child (MADV_WIPEONFORK): a thread there asks for one of its own.

use crate::buffer::Shared;
use crate::context::layout::PRIVATE_BYTES;
use crate::context::ThreadContext;
use crate::cpu::private_range::private_base;
use crate::cpu::probe::claim::set_claim;
use crate::cpu::sys::number;
use crate::cpu::{enter_block, thread_pointer};
use crate::instrument::captures::other_calls::OtherCalls;
use crate::instrument::ENGINE;
use crate::protocol::{slot_state, PAGE_BYTES, THREAD_STRIDE_BYTES};
use crate::sys::calls::{getpid, gettid, mmap, syscall};
use crate::sys::heap;
use crate::sys::kernel::{MADV_WIPEONFORK, MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PROT_READ, PROT_WRITE};
use crate::thread::block;
use crate::thread::registry::{begin_slot, thread_name};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// No thread pointer: it has no canonical address.
const NOBODY: u64 = 1 << 63;

/// A word that is 0 in a fork's child until it has made locks and heap its own; all of its page is wiped there.
static MARK: AtomicU64 = AtomicU64::new(0);
/// And the lock of the stack on which threads come here is in the same page.
const LOCK_OFFSET: u64 = 64;
const OWN: u32 = 1;
const BEING_MADE: u32 = 2;

/// What a claim says to a handler.
const HAS_ONE: u32 = 0;
const HAS_NONE: u32 = 1;
const ASKS_AGAIN: u32 = 2;

/// Has handlers call `claim`, and prepares for forks. `false`: there is no memory for that.
pub fn initialize() -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    let Some(page) = heap::reserve(PAGE_BYTES) else { return false };
    // SAFETY: the page is nobody else's.
    let is_made = unsafe {
        mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE, flags).is_ok()
            && syscall(number::MADVISE, [page, PAGE_BYTES, MADV_WIPEONFORK.into(), 0, 0, 0]) == 0
    };
    if is_made {
        MARK.store(page, Ordering::Relaxed);
        mark().store(OWN, Ordering::Relaxed);
        set_claim(claim, page + LOCK_OFFSET);
    }
    is_made
}

fn mark() -> &'static AtomicU32 {
    // SAFETY: the page is mapped before any code leads here, and stays.
    unsafe { AtomicU32::from_ptr(MARK.load(Ordering::Relaxed) as *mut u32) }
}

/// Gives the calling thread a block, which its handlers find from now on. All signals but those of traps are blocked.
///
/// A thread without a thread pointer, as each first one is at its start, can't be told from another one by it: it asks each time.
extern "C" fn claim() -> u32 {
    // SAFETY: `shared` is set before any code leads here, and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let (pointer, tid, process) = (thread_pointer(), gettid(), getpid());
    own_process();
    let Some(context) = find(shared, tid, process).or_else(|| make(shared, tid, process)) else { return HAS_NONE };
    context.probe.owner = if pointer == 0 { NOBODY } else { pointer };
    enter_block(context);
    if pointer == 0 {
        ASKS_AGAIN
    } else {
        HAS_ONE
    }
}

/// In a fork's child: locks are nobody's, and the heap begins anew, before any thread needs them.
fn own_process() {
    loop {
        match mark().compare_exchange(0, BEING_MADE, Ordering::AcqRel, Ordering::Acquire) {
            Err(OWN) => return,
            Err(_) => core::hint::spin_loop(),
            Ok(_) => break,
        }
    }
    // SAFETY: no thread of this process has come here before, so none uses a lock.
    unsafe {
        heap::renew();
        // What the parent's calls keep may be in any state.
        (&raw mut (*ENGINE.renew()).captures.other_calls).write(OtherCalls::new());
    }
    mark().store(OWN, Ordering::Release);
}

fn block_address(slot: u32) -> u64 {
    private_base() + u64::from(slot) * THREAD_STRIDE_BYTES
}

/// The block of a thread that has had one before.
fn find(shared: Shared, tid: u32, process: u32) -> Option<&'static mut ThreadContext> {
    let used = slots_used(shared).load(Ordering::Acquire).min(shared.header().max_threads.into()) as u32;
    let is_own = |index: &u32| {
        let slot = shared.slot(*index);
        // SAFETY: the slot is mapped, the fields aligned.
        unsafe {
            AtomicU32::from_ptr(&raw mut (*slot).state).load(Ordering::Acquire) == slot_state::RUNNING
                && (&raw const (*slot).tid).read_volatile() == tid
                && (&raw const (*slot).process).read_volatile() == process
        }
    };
    // SAFETY: the block of a slot that is the calling thread's.
    (0..used).find(is_own).map(|index| unsafe { &mut *(block_address(index) as *mut ThreadContext) })
}

fn slots_used(shared: Shared) -> &'static AtomicU64 {
    // SAFETY: the status page is mapped for the life of the runtime, the field aligned.
    unsafe { AtomicU64::from_ptr(&raw mut (*shared.status()).slots_used) }
}

/// A new one for a thread.
fn make(shared: Shared, tid: u32, process: u32) -> Option<&'static mut ThreadContext> {
    let index = (0..shared.header().max_threads).find(|index| {
        // SAFETY: the slot is mapped, the field aligned.
        let state = unsafe { AtomicU32::from_ptr(&raw mut (*shared.slot(*index)).state) };
        state.compare_exchange(slot_state::FREE, slot_state::TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })?;
    slots_used(shared).fetch_max(u64::from(index) + 1, Ordering::AcqRel);
    let (slot, address) = (shared.slot(index), block_address(index));
    // SAFETY: the slot is mapped, the field aligned.
    let state = unsafe { AtomicU32::from_ptr(&raw mut (*slot).state) };
    let context = block::map_bare(address, shared).then(|| block::make(address, index, shared)).flatten();
    let Some(context) = context else {
        state.store(slot_state::FREE, Ordering::Release);
        return None;
    };
    (context.tid, context.probe.process) = (tid, process);
    // SAFETY: the block's own pages; the slot is mapped, and this thread's own.
    unsafe {
        syscall(number::MADVISE, [address, PRIVATE_BYTES, MADV_WIPEONFORK.into(), 0, 0, 0]);
        (&raw mut (*slot).process).write_volatile(process);
    }
    begin_slot(context, shared);
    // SAFETY: the slot is mapped, and this thread's own. It may be gone before anybody asks what it is called.
    unsafe { (&raw mut (*slot).name).write_volatile(thread_name()) };
    state.store(slot_state::RUNNING, Ordering::Release);
    Some(context)
}
