//! The runtime runs: said on the status page, and since when.

use crate::buffer::Shared;
use crate::cpu::sys::clock::ticks;
use crate::protocol::runtime_state;
use crate::sys::calls::monotonic_ns;
use core::sync::atomic::{AtomicU32, Ordering};

/// Notes when a process began, by both clocks.
pub fn stamp_start(shared: Shared) {
    shared.set(crate::status_field!(start_ns), monotonic_ns());
    shared.set(crate::status_field!(start_tsc), ticks());
    shared.stamp_last();
}

/// The runtime has begun.
pub fn tell_running(shared: Shared) {
    shared.look_for_controller();
    // SAFETY: the status page is mapped; the field is an aligned u32.
    unsafe { AtomicU32::from_ptr(&raw mut (*shared.status()).state) }.store(runtime_state::RUNNING, Ordering::Release);
}
