//! Exits are linked to where they lead, once that is known.

use super::find::find_or_build;
use super::{paths, ways};
use crate::buffer::RingWriter;
use crate::cache::exit::ExitType;
use crate::context::numbers::{ExitId, FragmentId};
use crate::context::ThreadContext;
use crate::dispatch::signals::masks;
use crate::instrument::request::Arrival;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::error_code;
use crate::thread::registry::writer_of;

/// Coverage: a signal is delivered before the exit just taken could be linked, and this may be its only time.
pub fn note_first_exit(context: &mut ThreadContext, link: ExitId) {
    // SAFETY: `shared` is set before any thread runs and never changes.
    if link != ExitId::NONE && unsafe { ENGINE.peek() }.tells_links() {
        masks::with_faults(context, |context| note_exit(context, link));
    }
}

fn note_exit(context: &mut ThreadContext, link: ExitId) {
    let mut engine = ENGINE.lock();
    if engine.cache.exit(link).linked_to != FragmentId::NONE || engine.stops_at(context.registers.pc) {
        return;
    }
    let writer = writer_of(context, engine.shared);
    if let Ok(id) = find_or_build(&mut engine, &writer, context, context.registers.pc, Arrival::Other) {
        link_exit(&mut engine, &writer, context, link, id);
    }
}

/// Links an exit to fragment `id`, if that is where it leads and may be.
pub fn link_exit(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
    exit_id: ExitId,
    id: FragmentId,
) {
    let exit = *engine.cache.exit(exit_id);
    if exit.target != engine.cache.fragment(id).app_pc || !engine.cache.fragment(exit.fragment).is_valid {
        return;
    }
    if exit.follower != FragmentId::NONE && exit.follower != id {
        // It can lead to no other fragment.
        engine.retire_to_be_made_again(writer, exit.fragment);
        return;
    }
    if exit.linked_to == id {
        if !matches!(exit.kind, ExitType::FloatState | ExitType::Native) {
            // Interrupted for a signal.
            engine.cache.restore_if_interrupted(exit_id);
        }
        return;
    }
    if exit.linked_to != FragmentId::NONE {
        if engine.cache.fragment(exit.linked_to).is_valid {
            return;
        }
        // To what was laid out anew since.
        engine.cache.unlink_exit(exit_id);
    }
    if !paths::may_link_to(engine, id) {
        return;
    }
    if engine.tells_links() {
        engine.write_link(writer, exit_id, id);
    }
    engine.lead_if_possible(writer, exit_id, id);
    if !engine.cache.link(exit_id, id) {
        engine.shared.report_error(error_code::NO_SLAB, [context.registers.pc.raw(), 2, 0, 0]);
    }
    if exit.kind == ExitType::Pad {
        ways::leave_out_pad(engine, context, exit.pad);
    }
    let (links, unlinks) = (engine.cache.n_links, engine.cache.n_unlinks);
    engine.shared.set(crate::status_field!(links), links);
    engine.shared.set(crate::status_field!(unlinks), unlinks);
}
