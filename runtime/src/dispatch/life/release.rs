//! Threads that are followed no further: they go on natively, or end.

use crate::buffer::RingWriter;
use crate::cache::links::UNDELIVERED;
use crate::context::numbers::FragmentId;
use crate::context::signals::PENDING_SIGNAL;
use crate::context::ThreadContext;
use crate::cpu::call_dispatch;
use crate::cpu::signal::deliver;
use crate::decode::places::name_of;
use crate::dispatch::apart::{away, ended_calls};
use crate::dispatch::signals::masks::take_mask;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{end_kind, event_kind, path_event_kind, release_reason};
use crate::signal::table::{table_of, ALL_BUT_FAULTS};
use crate::sys::calls::set_signal_mask;
use crate::sys::kernel::SigInfo;
use crate::thread::path_words;
use crate::thread::registry::{describe_end, write_event, writer_of};
use crate::thread::{path, region, THREADS};
use core::sync::atomic::Ordering;

/// Ends the process by SIGSEGV or SIGSYS, whatever the program asked for.
pub fn end_by(context: &mut ThreadContext, info: &SigInfo) -> ! {
    note_end(context, release_reason::FATAL_FAULT, end_kind::UNKNOWN);
    table_of(context).lock().restore_default(info.signo as u32);
    loop {
        deliver::raise_again(info);
        // Neither is blocked by this, and the default action is in place.
        set_signal_mask(ALL_BUT_FAULTS);
    }
}

/// The waiting signal is the caller's to deal with; what was unlinked for it is linked again.
pub fn take_pending(context: &mut ThreadContext) {
    context.pending_word().fetch_and(!PENDING_SIGNAL, Ordering::Relaxed);
    UNDELIVERED.fetch_sub(1, Ordering::SeqCst);
    if context.signals.unlinked_fragment != FragmentId::NONE {
        let id = core::mem::replace(&mut context.signals.unlinked_fragment, FragmentId::NONE);
        ENGINE.lock().cache.relink_after_interrupt(id);
    }
}

/// Lets the program's default action come: the fault is repeated natively.
pub fn end_by_default(context: &mut ThreadContext, mask: u64) -> ! {
    suspend_trust(context);
    note_end(context, release_reason::FATAL_FAULT, end_kind::UNKNOWN);
    deliver::release_native(context, mask)
}

/// The thread goes on natively from the context's pc, for ever.
pub fn release(context: &mut ThreadContext, reason: u16) -> ! {
    let mask = end_following(context, reason);
    deliver::release_native(context, mask)
}

/// As `release`; where the thread is the only one, nothing of the runtime is left in the process' signal actions.
pub fn release_all(context: &mut ThreadContext, reason: u16) -> ! {
    let shared = ENGINE.lock().shared;
    let is_alone = THREADS.lock().count_running(shared) == 1;
    let mask = end_following(context, reason);
    if is_alone {
        context.process.child_flags = 0;
        deliver::release_process(context, mask);
    }
    deliver::release_native(context, mask)
}

/// Native code is to run here, for ever.
pub fn suspend_trust(context: &ThreadContext) {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    engine.suspend_trust(&writer);
}

/// What comes before a release; the program's mask. All signals are blocked after it.
pub fn end_following(context: &mut ThreadContext, reason: u16) -> u64 {
    crate::dispatch::flow::rseq::settle(context);
    suspend_trust(context);
    note_end(context, reason, end_kind::RELEASED);
    call_dispatch::end(context);
    let mask = take_mask(context);
    set_signal_mask(u64::MAX);
    if context.is_signal_waiting() {
        deliver::raise_again(&context.signals.pending_info);
        take_pending(context);
    }
    deliver::raise_held(context);
    mask
}

/// Modes full and region: the thread's path, or its tags, end in front of the context's pc, as far as they are recorded.
pub fn end_path(engine: &Engine, writer: &RingWriter, context: &mut ThreadContext) {
    // Where it is to go on with the next block nothing was recorded since.
    if context.path.is_on && !context.path.is_due {
        path::go_on(context, writer);
        path_words::write_event(context, writer, path_event_kind::END, name_of(context.registers.pc), 0);
        path::flush(context, writer);
    }
    if context.path.has_tags {
        region::end(engine, context, writer);
    }
}

/// Records that the thread is followed no further.
pub fn note_end(context: &mut ThreadContext, reason: u16, end: u32) {
    let went_on_at = context.registers.pc;
    context.registers.pc = away::abandon(context).unwrap_or(went_on_at);
    let writer = writer_of(context, ENGINE.lock().shared);
    ended_calls::end_thread(context, &writer);
    let engine = ENGINE.lock();
    write_event(&writer, event_kind::RELEASED, name_of(context.registers.pc), [u64::from(reason), 0, 0]);
    end_path(&engine, &writer, context);
    describe_end(context, engine.shared, end);
    context.registers.pc = went_on_at;
}
