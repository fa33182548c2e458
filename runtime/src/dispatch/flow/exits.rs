//! Exits of fragments that lead to the dispatcher: what each kind of them stands for, and what is to be counted no more where
//! a block's branch was not executed.
//!
//! Runs in the target, in the dispatcher. Where the thread goes on, and what is linked to it, is decided by its caller.

use super::parts::uncount_block;
use super::{indirect, regions, returns, rseq};
use crate::cache::exit::{Exit, ExitType};
use crate::cache::PadId;
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::context::ThreadContext;
use crate::cpu::context::BranchSource;
use crate::cpu::decode::addresses::is_canonical;
use crate::cpu::dispatch::float_state;
use crate::cpu::dispatch::in_place;
use crate::dispatch::apart::{captures, hold};
use crate::dispatch::life::release;
use crate::dispatch::signals::masks;
use crate::instrument::indirect::pads::add_to_counter;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::release_reason;
use crate::sys::lock::Guard;
use crate::thread::registry::writer_of;
use crate::thread::{open_calls, path, trust};

/// A direct exit without a link, or a stub that stands for something else. Returns the exit to link.
pub fn take_exit(context: &mut ThreadContext) -> ExitId {
    let mut engine = ENGINE.lock();
    engine.shared.add(crate::status_field!(entries_exit), 1);
    let exit_id = context.gate.exit_id;
    let exit = *engine.cache.exit(exit_id);
    context.registers.pc = exit.target;
    if exit.misses != CounterId::NONE {
        add_to_counter(context, exit.misses, 1);
    }
    if exit.is_surprise {
        path::write_long_surprise(context);
    }
    if exit.kind.is_in_front() {
        hold::stay_at_probe(context);
    }
    if exit.kind.stays_in_front() {
        context.note_step();
    }
    match exit.kind {
        ExitType::Jump | ExitType::Taken | ExitType::Call if !is_canonical(exit.target) => {
            drop(engine);
            indirect::refuse_direct(context, &exit);
            ExitId::NONE
        }
        ExitType::Interrupted => {
            engine.cache.relink_after_interrupt(exit.fragment);
            captures::note_left(&engine, context, exit.fragment, exit.target);
            uncount_block(&mut engine, context, exit.fragment, exit.target);
            ExitId::NONE
        }
        ExitType::Release => {
            uncount_block(&mut engine, context, exit.fragment, exit.target);
            drop(engine);
            release::release(context, release_reason::UNSUPPORTED);
        }
        ExitType::Stale => {
            let writer = writer_of(context, engine.shared);
            engine.drop_stale(&writer, exit.fragment);
            ExitId::NONE
        }
        ExitType::Relayout => {
            note_hot(&mut engine, context, exit.fragment);
            ExitId::NONE
        }
        ExitType::Region => {
            regions::decide(&engine, context, exit.fragment);
            ExitId::NONE
        }
        ExitType::Capture => {
            drop(engine);
            captures::take(context, &exit);
            ExitId::NONE
        }
        ExitType::Room => {
            path::flush(context, &writer_of(context, engine.shared));
            ExitId::NONE
        }
        ExitType::RseqEntry => {
            drop(engine);
            rseq::enter(context);
            ExitId::NONE
        }
        ExitType::RseqAbort => {
            context.undo_rseq();
            context.rseq.aborted = 1;
            ExitId::NONE
        }
        ExitType::FloatState => {
            let fragment = *engine.cache.fragment(exit.fragment);
            drop(engine);
            float_state::correct(context, &fragment);
            exit_id
        }
        ExitType::Native | ExitType::NativeBranch => {
            drop(engine);
            in_place::execute(context, exit_id)
        }
        ExitType::Elsewhere | ExitType::Pad | ExitType::Verified => take_branch_exit(engine, context, exit_id, &exit),
        _ => exit_id,
    }
}

/// An exit behind an indirect branch or a return. Returns the exit to link.
fn take_branch_exit(
    mut engine: Guard<'_, Engine>,
    context: &mut ThreadContext,
    exit_id: ExitId,
    exit: &Exit,
) -> ExitId {
    let is_dead = exit.pad != PadId::NONE && engine.cache.pad(exit.pad).is_dead;
    match exit.kind {
        ExitType::Elsewhere if exit.pad != PadId::NONE => {
            uncount_exit(context, exit);
            drop(engine);
            follow(context, exit.fragment, exit.target)
        }
        ExitType::Elsewhere => {
            return_elsewhere(&mut engine, context, exit.target);
            ExitId::NONE
        }
        ExitType::Pad if is_dead && engine.cache.fragment(exit.fragment).takes_symbol => {
            drop(engine);
            masks::with_faults(context, |context| {
                let mut engine = ENGINE.lock();
                let writer = writer_of(context, engine.shared);
                returns::take_dead_pad(&mut engine, &writer, context, exit);
            });
            ExitId::NONE
        }
        ExitType::Verified if !engine.cache.fragment(exit.fragment).is_valid => {
            // The code was replaced, and this thread's table still led to its entry.
            let source = indirect::source_of_site(&engine, context);
            drop(engine);
            follow(context, source, exit.target)
        }
        ExitType::Pad if is_dead => {
            // Its target was replaced by other code: the branch is counted anew, to what is there now.
            uncount_exit(context, exit);
            if let Some(symbol) = engine.cache.pad(exit.pad).symbol {
                path::unwrite_symbol(context, symbol);
            }
            drop(engine);
            follow(context, exit.fragment, exit.target)
        }
        _ => exit_id,
    }
}

/// What leads to the exit has counted that it was taken, and it is not.
fn uncount_exit(context: &ThreadContext, exit: &Exit) {
    if exit.counter != CounterId::NONE {
        add_to_counter(context, exit.counter, -1);
    }
}

/// The indirect branch at the end of fragment `source` leads to `target`, by another way than it came; nothing if `source` is `NONE`.
/// Returns the exit to link: none.
fn follow(context: &mut ThreadContext, source: FragmentId, target: AppPc) -> ExitId {
    if source != FragmentId::NONE {
        masks::with_faults(context, |context| indirect::follow_indirect(context, source, target));
    }
    ExitId::NONE
}

/// The thread found a fragment to be hot; or, of code that is compared, that it never differed.
fn note_hot(engine: &mut Engine, context: &mut ThreadContext, id: FragmentId) {
    let writer = writer_of(context, engine.shared);
    if engine.cache.fragment(id).is_compared {
        masks::with_faults(context, |_| trust::trust_pages_of(engine, &writer, id));
    } else {
        engine.retire_hot(&writer, context, id);
    }
}

/// A return came to a landing, and the open calls have another address on top.
fn return_elsewhere(engine: &mut Engine, context: &mut ThreadContext, target: AppPc) {
    let writer = writer_of(context, engine.shared);
    let BranchSource::Return(id) = context.gate.branch_source() else {
        return;
    };
    let branch = engine.cache.fragment(id).branch_pc();
    open_calls::return_to(context, &writer, branch, target);
    engine.note_stray(&writer, context, id);
}
