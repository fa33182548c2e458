//! Leaving a process that goes on without the runtime.
//!
//! The controller holds all threads by ptrace and lets them run until each has parked, its own state complete. One of them
//! gives back what belongs to the process as a whole; the controller does the rest.

use super::{release, stage};
use crate::cache::links::UNDELIVERED;
use crate::context::addresses::AppPc;
use crate::context::process::Sharing;
use crate::context::signals::PENDING_FETCHED;
use crate::context::signals::PENDING_LEAVE;
use crate::context::ThreadContext;
use crate::cpu::signal::deliver;
use crate::cpu::signal::interrupt::app_pc_at;
use crate::cpu::{call_dispatch, extended_state, parking};
use crate::dispatch::flow::rseq;
use crate::instrument::ENGINE;
use crate::protocol::{end_kind, ThreadState};
use crate::signal::table::SIGNALS;
use crate::sys::calls::{futex_wait, set_signal_mask};
use crate::sys::kernel::{SigStack, SIGTRAP, SS_AUTODISARM, SS_DISABLE};
use crate::thread::block::set_signal_stack;
use crate::thread::registry::writer_of;
use core::sync::atomic::Ordering;

static FOREVER: u32 = 0;

/// Whether the thread is to park. A process of its own in this memory is not: the controller holds the threads of one process,
/// and leaves it when no other is in its memory.
pub fn is_asked(context: &ThreadContext) -> bool {
    if context.process.sharing != Sharing::Thread {
        return false;
    }
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    if shared.is_detaching() {
        return true;
    }
    // The controller gave up: the gates need not be left any more.
    if context.signals.pending & PENDING_LEAVE != 0 {
        let before = context.pending_word().fetch_and(!(PENDING_LEAVE | PENDING_FETCHED), Ordering::Relaxed);
        if before & PENDING_FETCHED != 0 {
            UNDELIVERED.fetch_sub(1, Ordering::SeqCst);
        }
    }
    false
}

/// Waits for the controller, stopped. Comes back only if a signal is to be delivered first, or if the controller gave up. No
/// lock held, the context complete.
pub fn park(context: &mut ThreadContext) {
    let mask = set_signal_mask(u64::MAX);
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let ticket = shared.detaching();
    if context.is_signal_waiting() {
        set_signal_mask(mask);
        return;
    }
    rseq::leave(context);
    call_dispatch::end(context);
    deliver::raise_held(context);
    ENGINE.lock().suspend_trust(&writer_of(context, shared));
    release::note_end(context, shared.detach_reason(), end_kind::RELEASED);
    let is_inside_call = context.call.code != 0 && context.call.pc == context.registers.pc;
    let state = ThreadState {
        mask: context.program_mask(mask),
        context: context.self_address,
        stack_top: context.gate.stack_top,
        tid: context.tid,
        call_code: if is_inside_call { context.call.code } else { 0 },
        ..context.registers.state()
    };
    // Nobody could tell later: the code cache goes before the threads do.
    // SAFETY: arenas are read without a lock, as by the signal handler.
    extended_state::replace_last_x87(|pc| app_pc_at(unsafe { &ENGINE.peek().cache }, pc).map(AppPc::raw));
    parking::park(&state, &program_stack(context));
    set_signal_mask(u64::MAX);
    stage::follow(context, context.program_mask(mask), give_back);
    ENGINE.lock().resume_trust();
    set_signal_stack(context);
    super::execute::begin_slot_again(context);
    shared.forget_detaching(ticket);
    set_signal_mask(mask);
}

/// The program's alternate stack as sigaltstack takes it.
fn program_stack(context: &ThreadContext) -> SigStack {
    let stack = context.signals.stack;
    let is_disabled = if stack.size == 0 { SS_DISABLE } else { 0 };
    SigStack { flags: stack.flags & SS_AUTODISARM | is_disabled, ..stack }
}

/// The last that the runtime does for the process: all threads have parked, or run natively outside of it. SIGTRAP is still
/// the runtime's after it.
fn give_back() {
    {
        let signals = SIGNALS.lock();
        signals.restore_all_but(SIGTRAP);
        signals.take_without_stack(SIGTRAP);
    }
    let mut engine = ENGINE.lock();
    engine.tell_memory();
    engine.shared.stamp_last();
    // SAFETY: no thread comes back to the cache: each goes to its own code.
    unsafe { engine.cache.slabs.unmap_all() };
}

/// The end of the runtime in a process all of whose threads run natively: on a stack of the runtime's, by cpu::dispatch::leave.
pub extern "C" fn leave() -> ! {
    give_back();
    parking::park_bare();
    SIGNALS.lock().restore(SIGTRAP);
    loop {
        // The controller was killed, and nobody else knows where this thread came from.
        futex_wait(&raw const FOREVER, 0, u64::from(u32::MAX), false);
    }
}
