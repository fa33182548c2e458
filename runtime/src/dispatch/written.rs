//! Writes to code that is trusted: those of the program's instructions and of its system calls.
//!
//! Runs in the target on the runtime's stack, in the dispatcher, no lock held.

use crate::arch::x86_64::context::ThreadContext;
use crate::arch::x86_64::hull;
use crate::instrument::ENGINE;
use crate::sys::arguments;
use crate::sys::kernel::{PROT_WRITE, SEGV_ACCERR, SIGSEGV};
use crate::thread::registry::writer_of;

/// Bits of a page fault's error code (Intel SDM, page-fault exceptions): a write by the program where something is mapped.
const WRITE: u64 = 7;

/// Whether the fault that waits to be delivered is none of the program's, but a write to code that was trusted until now: the
/// instruction is to be executed again.
pub fn settle_fault(context: &mut ThreadContext) -> bool {
    let info = context.fault_info;
    let is_write =
        info.signo as u32 == SIGSEGV && info.code == SEGV_ACCERR && context.fault_details[0] & WRITE == WRITE;
    if !is_write || context.is_fault_past != 0 {
        return false;
    }
    let address = info.address;
    let mut engine = ENGINE.lock();
    if engine.ranges.trusted.within(address, address + 1).is_empty() {
        // Another thread may have written there first, while this one was on its way here.
        let is_writable = engine.ranges.find(address).is_some_and(|range| range.protection & PROT_WRITE != 0);
        let n_ends = engine.trust.n_ends;
        let is_plain = engine.aliases.find(address).is_none() && !engine.ranges.are_writable();
        if !is_writable || !is_plain || context.trust_ends_seen == n_ends {
            return false;
        }
        context.trust_ends_seen = n_ends;
    } else {
        let writer = writer_of(context, engine.shared);
        engine.end_trust(&writer, address, address + 1, true);
    }
    drop(engine);
    // As if nothing had been.
    context.fault_details = context.details_before;
    context.note_step();
    true
}

/// Before a system call of the program's: what it names the kernel may write, now or as long as it waits.
pub fn note_arguments(context: &ThreadContext, call: u64, arguments: [u64; 6]) {
    if !arguments::written(call, arguments).any(hull::contains) {
        return;
    }
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    for address in arguments::written(call, arguments).filter(|address| hull::contains(*address)) {
        engine.leave_to_kernel(&writer, address);
    }
}

/// After a system call that failed because memory could not be written: whether that may have been because it was trusted.
/// It is not any more; the call is to be made again.
pub fn is_to_be_made_again(context: &ThreadContext) -> bool {
    let mut engine = ENGINE.lock();
    let is_why = !engine.ranges.trusted.is_empty();
    if is_why {
        let writer = writer_of(context, engine.shared);
        engine.end_trust(&writer, 0, u64::MAX, true);
    }
    is_why
}
