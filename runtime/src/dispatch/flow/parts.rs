//! Blocks that did not run to their end: counted as a part.

use crate::cache::Fragment;
use crate::context::addresses::AppPc;
use crate::context::numbers::{BlockNumber, FragmentId};
use crate::context::ThreadContext;
use crate::instrument::indirect::pads::{correct_early_counts, DynamicEdge};
use crate::instrument::Engine;
use crate::protocol::edge_kind;
use crate::thread::region;
use crate::thread::registry::writer_of;

/// The block's branch was not executed: what ran of it before is counted as a part.
pub fn uncount_block(engine: &mut Engine, context: &ThreadContext, id: FragmentId, stopped_at: AppPc) {
    let fragment = *engine.cache.fragment(id);
    correct_early_counts(&engine.cache, context, &fragment, stopped_at, -1);
    count_part(engine, context, id, stopped_at);
}

/// Counts the instructions of a fragment before `stopped_at`.
pub fn count_part(engine: &mut Engine, context: &ThreadContext, id: FragmentId, stopped_at: AppPc) {
    let fragment = *engine.cache.fragment(id);
    if fragment.region_block != BlockNumber::NONE && stopped_at != fragment.end() {
        region::note_stop(context, &writer_of(context, engine.shared), stopped_at);
    }
    // Behind its last instruction, which trapped, it has run as a whole.
    if stopped_at == fragment.app_pc || stopped_at == fragment.end() || !fragment.is_included {
        return;
    }
    let writer = writer_of(context, engine.shared);
    engine.count_edge(&writer, context, partial_edge(&fragment, id, stopped_at));
}

pub fn partial_edge(fragment: &Fragment, id: FragmentId, stopped_at: AppPc) -> DynamicEdge {
    DynamicEdge { kind: edge_kind::PARTIAL, source_fragment: id, source_pc: fragment.app_pc, target_pc: stopped_at }
}
