//! What the dispatcher does for the order of execution: paths (mode `full`) and tags (mode `region`).

use crate::buffer::RingWriter;
use crate::cache::exit::ExitType;
use crate::context::numbers::{ExitId, FragmentId};
use crate::context::ThreadContext;
use crate::instrument::{Engine, ENGINE};
use crate::thread::path_words;
use crate::thread::path_words::Gap;
use crate::thread::registry::writer_of;
use crate::thread::{path, region, thinning, THREADS};

/// Modes full and region: tells what waits of the thread's path, which left a block by exit `link` if that is one, or of its tags.
pub fn flush_due(context: &mut ThreadContext, link: ExitId) {
    if !context.path.is_on && !context.path.has_tags {
        return;
    }
    let engine = ENGINE.lock();
    if context.path.is_on {
        let is_between = is_between_blocks(&engine, link);
        let writer = writer_of(context, engine.shared);
        let tells_anew = if engine.shared.has_budget() {
            let is_known = |pc| engine.cache.by_pc.find(pc).or(engine.cache.versions.find(pc)).is_some();
            thinning::flush_due(context, &writer, is_between, !is_known(context.registers.pc))
        } else {
            path::flush_due(context, &writer, is_between)
        };
        if tells_anew {
            path::tell_state(context, &writer, context.registers.pc, &engine.path_log);
        }
    }
    if context.path.has_tags {
        region::flush_if_full(context, &writer_of(context, engine.shared));
    }
}

/// Begins what a new thread tells. `false`: there is no memory for it.
pub fn begin(engine: &Engine, writer: &RingWriter, context: &mut ThreadContext) -> bool {
    (context.path.is_on, context.path.began, context.path.start_pc) = (false, false, context.registers.pc);
    context.path.has_executed = false;
    context.path.has_tags = engine.records_tags();
    if context.path.has_tags {
        region::begin(context, engine.shared.header().busy_limit);
    }
    path_words::begin_accesses(context, engine.tells_accesses);
    !engine.records_order() || path::begin(context, writer, &engine.path_log)
}

/// Whether the thread's path is recorded, or not, as what is translated now tells of the order, or not: not if another thread has changed
/// the mode, and this one is about to learn of it.
pub fn is_of_mode(engine: &Engine, context: &ThreadContext) -> bool {
    (context.path.is_on, context.path.is_on && context.path.tells_accesses)
        == (engine.records_order(), engine.tells_accesses)
}

/// Whether the thread that left by exit `link` is in front of a block.
fn is_between_blocks(engine: &Engine, link: ExitId) -> bool {
    // What the size of a fragment or the state of the floating point unit divides is one block.
    let divides_block = |kind| matches!(kind, ExitType::FallThrough | ExitType::FloatState | ExitType::Native);
    link != ExitId::NONE && !divides_block(engine.cache.exit(link).kind)
}

/// The thread's path is due: it goes on here, if exit `link` led to the start of a block. Until then the thread executes
/// instruction by instruction (hold::goes_alone).
pub fn go_on_if_between(context: &mut ThreadContext, link: ExitId) {
    let engine = ENGINE.lock();
    if !is_between_blocks(&engine, link) {
        return;
    }
    context.path.is_due = false;
    let writer = writer_of(context, engine.shared);
    if engine.shared.may_tell_news() && path::go_on(context, &writer) {
        path::tell_state(context, &writer, context.registers.pc, &engine.path_log);
    }
}

/// Has the thread's path be recorded from the next block on, or no more from the context's pc on, as the engine has it. `false`:
/// there is no memory for it.
pub fn follow_mode(engine: &Engine, writer: &RingWriter, context: &mut ThreadContext) -> bool {
    if context.path.is_on && context.path.tells_accesses != engine.tells_accesses {
        // What is told beside the path is found by where that goes on.
        path::suspend(context, writer);
    }
    if !context.path.is_on {
        path_words::begin_accesses(context, engine.tells_accesses);
    }
    match (context.path.is_on, engine.records_order()) {
        (true, false) => path::suspend(context, writer),
        (false, true) => return path::resume(context, writer, &engine.path_log),
        _ => {}
    }
    true
}

/// Tells in the thread's path what changed since it last did, in front of the context's pc.
pub fn tell_changes(engine: &Engine, writer: &RingWriter, context: &mut ThreadContext) {
    let is_left_out = path_words::gap(context) == Gap::LeftOut;
    while let Some((kind, value)) = engine.path_log.change(context.path.changes_told).filter(|_| !is_left_out) {
        path_words::write_event(context, writer, kind, context.registers.pc, value);
        context.path.changes_told += 1;
    }
    path::note_that_it_told(context);
}

/// Whether jumps may lead into fragment `id` (mode full): all threads know of its code what their paths have to tell.
pub fn may_link_to(engine: &mut Engine, id: FragmentId) -> bool {
    let needed = engine.cache.fragment(id).changes_needed;
    let length = engine.path_log.length();
    engine.path_log.is_told(needed, || {
        // SAFETY: these are contexts of slots in use.
        let told = |context| unsafe { path::changes_told(context, length) };
        THREADS.lock().contexts().map(told).min().unwrap_or(length)
    })
}
