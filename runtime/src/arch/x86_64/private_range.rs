//! Where all threads' private blocks are: the way from an address to the thread whose block it is in.

use crate::context::ThreadContext;
use crate::protocol;
use core::sync::atomic::{AtomicU64, Ordering};

static PRIVATE_BASE: AtomicU64 = AtomicU64::new(0);
static PRIVATE_END: AtomicU64 = AtomicU64::new(0);

/// Says where all threads' private blocks are. Once, at the start.
pub fn set_private_range(base: u64, end: u64) {
    PRIVATE_BASE.store(base, Ordering::Relaxed);
    PRIVATE_END.store(end, Ordering::Relaxed);
}

pub fn private_base() -> u64 {
    PRIVATE_BASE.load(Ordering::Relaxed)
}

/// The context of the thread whose private block holds `address`: the signal handler knows its thread by its stack.
pub fn context_at(address: u64) -> Option<*mut ThreadContext> {
    let base = PRIVATE_BASE.load(Ordering::Relaxed);
    if base == 0 || !(base..PRIVATE_END.load(Ordering::Relaxed)).contains(&address) {
        return None;
    }
    Some((address - (address - base) % protocol::THREAD_STRIDE_BYTES) as *mut ThreadContext)
}
