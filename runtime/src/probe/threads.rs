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

/// The process that is probed. A fork's child, which has a copy of all this, is another one.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Says which process is probed. Its threads translate nothing, so they need no branch tables.
pub fn initialize(process: u32) {
    PROCESS.store(process, Ordering::Relaxed);
    THREADS.lock().branch_table_filled = 0;
}

/// Gives the calling thread a block, which gs leads to from now on. 0: there is none for it. All signals are blocked.
pub extern "C" fn claim() -> u32 {
    let pointer = thread_pointer();
    // In a fork's child locks may be held by threads that it does not have, and slots are its parent's.
    if pointer == 0 || getpid() != PROCESS.load(Ordering::Relaxed) {
        return 0;
    }
    // SAFETY: `shared` is set before any code leads here, and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let tid = gettid();
    let mut threads = THREADS.lock();
    let Some(context) = threads.take(shared) else { return 0 };
    context.tid = tid;
    threads.set_tid(context.slot, tid);
    // SAFETY: the block's own pages.
    unsafe { syscall(number::MADVISE, [context.self_address, PRIVATE_BYTES, MADV_WIPEONFORK.into(), 0, 0, 0]) };
    begin_slot(context, shared);
    own(context, pointer);
    1
}

fn own(context: &mut ThreadContext, pointer: u64) {
    context.probe.owner = pointer;
    enter_block(context);
}
