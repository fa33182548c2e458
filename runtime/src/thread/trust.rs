//! Trusted code (instrument/change/trust.rs) and the threads that may write to it.

use super::registry::writer_of;
use super::THREADS;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::instrument::{Engine, ENGINE};

/// Trusts the pages of a fragment that was compared often, if no thread has its stack there, and all can take the fault.
pub fn trust_pages_of(engine: &mut Engine, writer: &RingWriter, id: FragmentId) {
    engine.trust_pages_of(writer, id, |range| {
        let threads = THREADS.lock();
        let mut contexts = threads.contexts();
        contexts.all(|context| {
            // SAFETY: the contexts of used places are mapped. Stack pointers change meanwhile, and are a hint; for what is
            // blocked see `announce` in instrument/change/trust.rs.
            let (is_blocked, stack) = unsafe {
                (
                    (&raw const (*context).signals.is_segv_blocked).read_volatile() != 0,
                    (&raw const (*context).registers).read().sp(),
                )
            };
            !is_blocked && !(range.start.raw()..range.end.raw()).contains(&stack)
        })
    });
}

/// As `guarded::write_program`, where that may be code that is trusted; whether all could be written. No lock held.
///
/// # Safety
/// As there.
pub unsafe fn write_program(context: &ThreadContext, address: u64, bytes: &[u8]) -> bool {
    // SAFETY: forwarded.
    let written = unsafe { guarded::write_program(address, bytes) };
    if written == bytes.len() {
        return true;
    }
    let start = AppPc::from_raw(address);
    let end = start.saturating_add(bytes.len() as u64);
    let mut engine = ENGINE.lock();
    if engine.ranges.trusted.within(start, end).is_empty() {
        return false;
    }
    let writer = writer_of(context, engine.shared);
    engine.end_trust(&writer, start, end, true);
    drop(engine);
    // SAFETY: forwarded.
    unsafe { guarded::write_program(address, bytes) == bytes.len() }
}
