//! Where translated code comes for a decision about its tag (mode `region`).
//!
//! Programs that always do something new come here very often, so what else the dispatcher does is left out where nothing else is
//! to be done.

use crate::cache::exit::ExitType;
use crate::context::addresses::CachePc;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::dispatch::life::detach;
use crate::instrument::{Engine, ENGINE};
use crate::thread::region;
use crate::thread::registry::writer_of;
use core::sync::atomic::Ordering;

/// Decides about the tag of fragment `id`, which is about to run.
pub fn decide(engine: &Engine, context: &ThreadContext, id: FragmentId) {
    let writer = writer_of(context, engine.shared);
    region::decide(engine, context, &writer, engine.cache.fragment(id).region_block);
}

/// Decides, if that is what the thread came for, and if it goes on right away: where. `None`: nothing was done.
pub fn decide_alone(context: &mut ThreadContext) -> Option<CachePc> {
    let engine = ENGINE.lock();
    let exit = *engine.cache.exit(context.gate.exit_id);
    let is_alone = exit.kind == ExitType::Region
        && context.pending_word().load(Ordering::Relaxed) == 0
        && context.signals.fault_pending == 0
        && context.rseq.aborted == 0
        && !context.registers.are_stepped()
        && !detach::is_asked(context);
    // Exits of other kinds may belong to no fragment.
    if !is_alone || !engine.cache.fragment(exit.fragment).is_valid {
        return None;
    }
    context.registers.pc = exit.target;
    decide(&engine, context, exit.fragment);
    // Should a signal come before it is there, the thread goes on in front of it.
    Some(engine.cache.fragment(exit.fragment).plain_entry)
}
