//! Writes to code that is trusted: those of the program's instructions and of its system calls.
//!
//! Runs in the target on the runtime's stack, in the dispatcher, no lock held.

use crate::arch::code_span;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::context::WRITE_ERROR;
use crate::cpu::sys::number;
use crate::decode::trusted::page_start;
use crate::dispatch::calls::vectors::read_pieces;
use crate::instrument::ENGINE;
use crate::sys::arguments;
use crate::sys::kernel::{SEGV_ACCERR, SIGSEGV};
use crate::thread::registry::writer_of;

/// Whether the fault that waits to be delivered is none of the program's, but a write to code that was trusted until now: the
/// program goes on as if nothing had been.
pub fn settle_fault(context: &mut ThreadContext) -> bool {
    let info = context.signals.fault_info;
    let is_write = info.signo as u32 == SIGSEGV
        && info.code == SEGV_ACCERR
        && context.signals.fault_details[0] & WRITE_ERROR == WRITE_ERROR;
    if !is_write {
        return false;
    }
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    let written = AppPc::from_raw(info.address);
    engine.end_trust(&writer, written, written.saturating_add(1), true);
    // It may also have been trusted until another thread wrote there, or made it something else, while this one was on its
    // way here. A fault of the program's comes again.
    let n_ends = engine.trust.n_ends;
    if core::mem::replace(&mut context.stepping.trust_ends_seen, n_ends) == n_ends {
        return false;
    }
    drop(engine);
    context.signals.fault_details = context.signals.details_before;
    // Out of a restartable sequence it goes on where that is aborted, as if it had been interrupted.
    context.signals.is_fault_past = 0;
    context.note_step();
    true
}

/// Before a system call of the program's: what it names the kernel may write, now or as long as it waits.
pub fn note_arguments(context: &ThreadContext, call: u64, arguments: [u64; 6]) {
    if !arguments::written(call, arguments).any(code_span::contains) {
        return;
    }
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    for address in arguments::written(call, arguments).filter(|address| code_span::contains(*address)) {
        engine.leave_to_kernel(&writer, AppPc::from_raw(address));
    }
}

/// After a system call that failed because memory could not be written: whether what it reached by a second pointer was
/// trusted. It never will be again; the call is to be made once more.
pub fn is_to_be_made_again(context: &mut ThreadContext) -> bool {
    if ENGINE.lock().ranges.trusted.is_empty() {
        return false;
    }
    let Some((vector, length)) = vector_of(context) else {
        return false;
    };
    let mut is_why = false;
    for (start, size) in read_pieces(context, vector, length) {
        let mut engine = ENGINE.lock();
        let start = AppPc::from_raw(start);
        if let Some(page) = engine.ranges.trusted.within(start, start.saturating_add(size)).first().copied() {
            let writer = writer_of(context, engine.shared);
            engine.leave_to_kernel(&writer, page_start(page));
            is_why = true;
        }
    }
    is_why
}

/// Where the vector of what a call writes is, and how many pieces it has (struct iovec).
fn vector_of(context: &mut ThreadContext) -> Option<(u64, u64)> {
    /// struct msghdr: the vector and its length.
    const VECTOR_OFFSET: u64 = 16;
    let [_, second, third, ..] = context.registers.call_arguments();
    match context.call.number & 0xffff_ffff {
        number::READV | number::PREADV | number::PREADV2 | number::PROCESS_VM_READV => Some((second, third)),
        // The two lie as a piece does.
        number::RECVMSG => read_pieces(context, second.wrapping_add(VECTOR_OFFSET), 1).first().copied(),
        _ => None,
    }
}
