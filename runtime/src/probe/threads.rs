//! Blocks and slots for threads that come to a probe.

use crate::context::layout::PRIVATE_BYTES;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::cpu::{enter_block, thread_pointer};
use crate::instrument::ENGINE;
use crate::sys::calls::{getpid, gettid, syscall};
use crate::sys::kernel::MADV_WIPEONFORK;
use crate::thread::registry::begin_slot;
use crate::thread::THREADS;
use core::sync::atomic::{AtomicU32, Ordering};

/// No thread pointer: it has no canonical address.
const NOBODY: u64 = 1 << 63;

/// The process that is probed. A fork's child, which has a copy of all this, is another one.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Says which process is probed. Its threads translate nothing, so they need no branch tables.
pub fn initialize(process: u32) {
    PROCESS.store(process, Ordering::Relaxed);
    THREADS.lock().branch_table_filled = 0;
}

/// What a claim says to a handler.
const HAS_ONE: u32 = 0;
const HAS_NONE: u32 = 1;
const ASKS_AGAIN: u32 = 2;

/// Gives the calling thread a block, which its handlers find from now on. All signals are blocked.
///
/// A thread without a thread pointer, as each first one is at its start, can't be told from another one by it: it asks each time.
pub extern "C" fn claim() -> u32 {
    // In a fork's child locks may be held by threads that it does not have, and slots are its parent's.
    if getpid() != PROCESS.load(Ordering::Relaxed) {
        return HAS_NONE;
    }
    let (pointer, tid) = (thread_pointer(), gettid());
    let Some(context) = find(tid).or_else(|| make(tid)) else { return HAS_NONE };
    context.probe.owner = if pointer == 0 { NOBODY } else { pointer };
    enter_block(context);
    if pointer == 0 {
        ASKS_AGAIN
    } else {
        HAS_ONE
    }
}

/// The block of a thread that has had one before.
fn find(tid: u32) -> Option<&'static mut ThreadContext> {
    let threads = THREADS.lock();
    let mut contexts = threads.contexts();
    // SAFETY: the context of a slot that is in use; if it is the calling thread's, nobody else uses it.
    contexts.find(|context| unsafe { (**context).tid } == tid).map(|context| unsafe { &mut *context })
}

/// A new one for a thread.
fn make(tid: u32) -> Option<&'static mut ThreadContext> {
    // SAFETY: `shared` is set before any code leads here, and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let mut threads = THREADS.lock();
    let context = threads.take(shared)?;
    context.tid = tid;
    threads.set_tid(context.slot, tid);
    // SAFETY: the block's own pages.
    unsafe { syscall(number::MADVISE, [context.self_address, PRIVATE_BYTES, MADV_WIPEONFORK.into(), 0, 0, 0]) };
    begin_slot(context, shared);
    Some(context)
}
