//! Straight on behind a system call: where nothing waits, a thread that came to the dispatcher for it goes on where the gate would have led it.
//!
//! Nothing is looked up for that, and no lock is taken: the exit behind the call is linked, or leads to the dispatcher.

use crate::context::addresses::{AppPc, CachePc};
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::dispatch::apart::unfollowed;
use crate::dispatch::calls::results;
use crate::dispatch::life::room;
use crate::instrument::ENGINE;
use core::sync::atomic::Ordering;

/// Where the thread goes on, whose call is done and dealt with: at `address`, where the gate would have led it, 0 if that is not known.
/// `None`: the dispatcher has to see.
pub fn behind_call(context: &ThreadContext, address: u64, next: AppPc) -> Option<CachePc> {
    // Of a return from a handler, or a call that is to be made again, it would be elsewhere.
    let is_there = address != 0 && context.registers.pc == next && context.native.call_pc == AppPc::NOWHERE;
    (is_there && is_nothing_waiting(context) && is_nothing_asked(context) && room::is_none_made_since(context))
        .then(|| CachePc::from_raw(address))
}

/// Whether neither a signal waits nor anything that the thread began before.
fn is_nothing_waiting(context: &ThreadContext) -> bool {
    let stepping = &context.stepping;
    let is_in_pieces = stepping.native_exit | stepping.excursion_exit | stepping.foreign | stepping.is_in_probe != 0;
    let is_stepped =
        context.registers.are_stepped() || context.registers.are_foreign() || stepping.breakpoint_once != 0;
    let is_recorded_apart = context.path.is_on || context.path.has_tags || context.path.is_due;
    let is_late = context.capture.passed_pc != AppPc::NOWHERE || context.capture.delayed_until_ns != 0;
    context.pending_word().load(Ordering::Relaxed) == 0
        && context.signals.fault_pending == 0
        && !results::is_trapped(context)
        && !(is_in_pieces || is_stepped || is_recorded_apart || is_late)
        && context.rseq.aborted == 0
}

/// Whether the controller wants nothing of the thread.
fn is_nothing_asked(context: &ThreadContext) -> bool {
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let is_held = context.capture.stops != 0 || context.hold.step != 0 || shared.hold_ticket() != 0;
    let is_behind = context.hold.directives_done != shared.directive_count();
    context.process.sharing == Sharing::Thread
        && !(is_held || is_behind || shared.is_detaching())
        && !unfollowed::is_wanted(context, shared)
}
