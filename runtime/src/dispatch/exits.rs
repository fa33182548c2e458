//! Exits of fragments that lead to the dispatcher: what each kind of them stands for, and what is to be counted no more where
//! a block's branch was not executed.
//!
//! Runs in the target, in the dispatcher. Where the thread goes on, and what is linked to it, is decided by its caller.

use super::{delivery, float_state, hold, in_place, indirect, regions, returns, sequences};
use crate::arch::x86_64::context::{ThreadContext, SITE_RETURN};
use crate::cache::fragment::ExitType;
use crate::cache::{Fragment, NONE};
use crate::decode::places::is_canonical;
use crate::instrument::pads::{add_to_counter, correct_early_counts, DynamicEdge};
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{edge_kind, release_reason};
use crate::thread::registry::writer_of;
use crate::thread::{open_calls, path, region, trust};

/// A direct exit without a link, or a stub that stands for something else. Returns the exit to link.
pub fn take_exit(context: &mut ThreadContext) -> u32 {
    let mut engine = ENGINE.lock();
    engine.shared.add(crate::status_field!(entries_exit), 1);
    let exit_id = context.exit_id;
    let exit = *engine.cache.exit(exit_id);
    context.rip = exit.target;
    if exit.misses != NONE {
        add_to_counter(context, exit.misses, 1);
    }
    if exit.is_surprise {
        path::write_long_surprise(context);
    }
    if matches!(exit.kind, ExitType::Interrupted | ExitType::Stale | ExitType::Relayout | ExitType::Region) {
        hold::stay_at_probe(context);
    }
    match exit.kind {
        ExitType::Jump | ExitType::Taken | ExitType::Call if !is_canonical(exit.target) => {
            drop(engine);
            indirect::refuse_direct(context, &exit);
            NONE
        }
        ExitType::Interrupted => {
            context.note_step();
            engine.cache.relink_after_interrupt(exit.fragment);
            uncount_block(&mut engine, context, exit.fragment, exit.target);
            NONE
        }
        ExitType::Release => {
            uncount_block(&mut engine, context, exit.fragment, exit.target);
            drop(engine);
            delivery::release(context, release_reason::UNSUPPORTED);
        }
        ExitType::Stale => {
            context.note_step();
            let writer = writer_of(context, engine.shared);
            engine.drop_stale(&writer, exit.fragment);
            NONE
        }
        ExitType::Relayout => {
            let writer = writer_of(context, engine.shared);
            context.note_step();
            if engine.cache.fragment(exit.fragment).is_compared {
                let id = exit.fragment;
                delivery::with_faults(context, |_| trust::trust_pages_of(&mut engine, &writer, id));
            } else {
                engine.retire_hot(&writer, context, exit.fragment);
            }
            NONE
        }
        ExitType::Region => {
            context.note_step();
            regions::decide(&engine, context, exit.fragment);
            NONE
        }
        ExitType::SequenceEntry => {
            context.note_step();
            drop(engine);
            sequences::enter(context);
            NONE
        }
        ExitType::SequenceAbort => {
            context.note_step();
            context.undo_sequence();
            context.sequence_aborted = 1;
            NONE
        }
        ExitType::FloatState => {
            let fragment = *engine.cache.fragment(exit.fragment);
            drop(engine);
            float_state::correct(context, &fragment);
            exit_id
        }
        ExitType::Elsewhere if exit.pad != NONE => {
            if exit.counter != NONE {
                add_to_counter(context, exit.counter, -1);
            }
            drop(engine);
            delivery::with_faults(context, |context| indirect::follow_indirect(context, exit.fragment, exit.target));
            NONE
        }
        ExitType::Native | ExitType::NativeBranch => {
            drop(engine);
            in_place::execute(context, exit_id)
        }
        ExitType::Elsewhere => {
            let writer = writer_of(context, engine.shared);
            let id = context.site & !SITE_RETURN;
            let source = *engine.cache.fragment(id);
            open_calls::return_to(context, &writer, source.branch_pc(), exit.target);
            engine.note_stray(&writer, context, id);
            NONE
        }
        ExitType::Pad if engine.cache.pad(exit.pad).is_dead && engine.cache.fragment(exit.fragment).takes_symbol => {
            drop(engine);
            delivery::with_faults(context, |context| {
                let mut engine = ENGINE.lock();
                let writer = writer_of(context, engine.shared);
                returns::take_dead_pad(&mut engine, &writer, context, &exit);
            });
            NONE
        }
        ExitType::Verified if !engine.cache.fragment(exit.fragment).is_valid => {
            // The code was replaced, and this thread's table still led to its entry.
            let source = indirect::source_of_site(&engine, context);
            drop(engine);
            if source != NONE {
                delivery::with_faults(context, |context| indirect::follow_indirect(context, source, exit.target));
            }
            NONE
        }
        ExitType::Pad if engine.cache.pad(exit.pad).is_dead => {
            // Its target was replaced by other code: the branch is counted anew, to what is there now.
            if exit.counter != NONE {
                add_to_counter(context, exit.counter, -1);
            }
            if let Some(symbol) = engine.cache.pad(exit.pad).symbol {
                path::unwrite_symbol(context, symbol);
            }
            drop(engine);
            delivery::with_faults(context, |context| indirect::follow_indirect(context, exit.fragment, exit.target));
            NONE
        }
        _ => exit_id,
    }
}

/// The block's branch was not executed: what ran of it before is counted as a part.
pub fn uncount_block(engine: &mut Engine, context: &ThreadContext, id: u32, stopped_at: u64) {
    let fragment = *engine.cache.fragment(id);
    correct_early_counts(&engine.cache, context, &fragment, stopped_at, -1);
    count_part(engine, context, id, stopped_at);
}

/// Counts the instructions of a fragment before `stopped_at`.
pub fn count_part(engine: &mut Engine, context: &ThreadContext, id: u32, stopped_at: u64) {
    let fragment = *engine.cache.fragment(id);
    if fragment.region_block != NONE && stopped_at != fragment.end() {
        region::note_stop(context, &writer_of(context, engine.shared), stopped_at);
    }
    // Behind its last instruction, which trapped, it has run as a whole.
    if stopped_at == fragment.app_pc || stopped_at == fragment.end() || !fragment.is_included {
        return;
    }
    let writer = writer_of(context, engine.shared);
    engine.count_edge(&writer, context, partial_edge(&fragment, id, stopped_at));
}

pub fn partial_edge(fragment: &Fragment, id: u32, stopped_at: u64) -> DynamicEdge {
    DynamicEdge { kind: edge_kind::PARTIAL, source_fragment: id, source_pc: fragment.app_pc, target_pc: stopped_at }
}
