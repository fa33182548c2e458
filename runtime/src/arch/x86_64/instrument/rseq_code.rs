//! The copy of a restartable sequence's code, which the kernel may abort between any two instructions: a plan
//! (instrument/rseq_plan.rs) becomes code.
//!
//! An abort leaves no trace of where it came. So what is emitted here keeps to these rules:
//! - A register that is in a slot is named in `rseq.undo` from before it changes until after it is back.
//! - Flags do not change but by the program's instructions.
//! - `rseq.state` names the fragment that was entered last, or the exit that is being counted; `rseq.count`, what
//!   that exit's counter was, `rseq.path` what the thread's path was. What is aborted counts as stopped at its
//!   fragment's start.
//! - A thread comes in through an entry, which puts the shadow in the place of the program's descriptor, or finds it there.
//! - Behind the last instruction nothing is covered.

use crate::cache::exit::ExitType;
use crate::cache::rseq::Enclosure;
use crate::context::addresses::CachePc;
use crate::context::numbers::{ExitId, FragmentId};
use crate::cpu::displacements::{GS_RSEQ_STATE, GS_RSEQ_WORD};
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::rseq_ways::{emit_count, emit_note_left, spill, unspill, WaysOut};
use crate::cpu::spill::SpillState;
use crate::cpu::translate::Spare;
use crate::cpu::{RAX, RCX};
use crate::decode::Block;
use crate::instrument::exits::ExitList;
use crate::instrument::instruction_map::MapBuilder;
use crate::instrument::output::Output;
use crate::instrument::rseq_fragment::RseqEmitted;
use crate::instrument::rseq_plan::{EntryQuestion, RseqFailure, RseqPlan};
use crate::instrument::Engine;

impl Engine {
    /// Emits a planned block of a critical section.
    pub fn emit_in_enclosure(
        &mut self,
        block: &Block,
        plan: &RseqPlan,
        enclosure: &Enclosure,
        out: &mut Output,
    ) -> Result<RseqEmitted, RseqFailure> {
        let Output { emitter, exits, map } = &mut *out;
        let other = exits.add_stub_only(ExitType::RseqEntry, block.pc);
        let (entry, inner) = emit_start(emitter, &plan.question, plan.facts.id, other);
        map.mark(0, 0, SpillState::None);
        if plan.last_start.is_none() {
            self.copy(emitter, map, entry, block, plan)?;
        }
        let exit_offset = emitter.address() - entry;
        match plan.last_start {
            Some(start) => self.emit_last(block, plan, enclosure, start, entry, out)?,
            None => self.emit_ways_out(block, plan, entry, out)?,
        }
        Ok(RseqEmitted { entry, inner, exit_offset })
    }

    /// Emits the critical section's last instruction, which has a place of its own, at `start`.
    fn emit_last(
        &mut self,
        block: &Block,
        plan: &RseqPlan,
        enclosure: &Enclosure,
        start: CachePc,
        entry: CachePc,
        out: &mut Output,
    ) -> Result<(), RseqFailure> {
        let Output { emitter, exits, map } = out;
        let way = plan.taken;
        emit_count(emitter, exits.next_id(), way.counter);
        emitter.jump_to(start);
        // SAFETY: the lock is held, and there is no last instruction yet.
        let mut last = unsafe { enclosure.last_emitter(block.code.len()) };
        self.copy(&mut last, map, entry, block, plan)?;
        if last.address() != enclosure.covered_end {
            return Err(RseqFailure::Impossible);
        }
        map.mark((last.address() - entry) as usize, plan.exit_offset, SpillState::None);
        exits.emit_jump(&mut last, way.kind, way.target, way.counter);
        exits.emit_stubs_here(&mut last, |_, _| {});
        if last.overflowed() {
            return Err(RseqFailure::Impossible);
        }
        Ok(())
    }

    /// Emits the ways out of a block that is not the critical section's last one.
    fn emit_ways_out(
        &self,
        block: &Block,
        plan: &RseqPlan,
        entry: CachePc,
        out: &mut Output,
    ) -> Result<(), RseqFailure> {
        let Output { emitter, exits, map } = out;
        map.mark((emitter.address() - entry) as usize, plan.exit_offset, SpillState::None);
        let mut ways = WaysOut { emitter, exits, has_rotate: self.features.has_rotate, is_broken: false };
        ways.emit(block, plan);
        if ways.is_broken {
            return Err(RseqFailure::Impossible);
        }
        exits.emit_stubs_here(emitter, |emitter, exit| {
            if exit.is_inside {
                emit_note_left(emitter);
            }
        });
        Ok(())
    }

    /// Emits what of a block is copied. The map counts from `entry`.
    fn copy(
        &mut self,
        emitter: &mut Emitter,
        map: &mut MapBuilder,
        entry: CachePc,
        block: &Block,
        plan: &RseqPlan,
    ) -> Result<(), RseqFailure> {
        let mangler = self.mangler.as_mut().ok_or(RseqFailure::Impossible)?;
        let ahead = (emitter.address() - entry) as usize - emitter.position();
        let mut is_done = true;
        for index in 0..plan.facts.n_copied {
            let app_offset = block.pc_of(index) - block.pc;
            map.mark(ahead + emitter.position(), app_offset, SpillState::None);
            let mut mark = |position: usize, state: SpillState| map.mark(ahead + position, app_offset, state);
            is_done &= mangler.emit_of(emitter, block, index, Spare::Noted, &mut mark).is_ok();
        }
        is_done.then_some(()).ok_or(RseqFailure::Impossible)
    }
}

/// Emits the start of fragment `id`; `other` is the exit of those that have not announced the critical section so. Where it is
/// entered, and where it is from inside.
fn emit_start(emitter: &mut Emitter, question: &EntryQuestion, id: FragmentId, other: ExitId) -> (CachePc, CachePc) {
    emitter.set_cold(true);
    let entry = emitter.address();
    emitter.store_gs_immediate(GS_RSEQ_STATE, id.raw());
    let to_code = emitter.jump();
    emitter.set_cold(false);
    emitter.bind(to_code);
    emit_question(emitter, question, other);
    let inner = emitter.address();
    emitter.store_gs_immediate(GS_RSEQ_STATE, id.raw());
    (entry, inner)
}

/// Emits what makes sure that the thread's rseq_cs holds the shadow, whose code this is; where it holds neither that nor the
/// program's descriptor, the exit `other` is taken.
fn emit_question(emitter: &mut Emitter, question: &EntryQuestion, other: ExitId) {
    let EntryQuestion { announced, shadow } = *question;
    spill(emitter);
    emitter.load_gs(RCX, GS_RSEQ_WORD);
    emitter.load_word(RCX, RCX);
    let is_empty = emitter.jump_rcx_zero();
    emitter.load_immediate(RAX, announced.wrapping_neg());
    emitter.add_registers(RCX, RCX, Some(RAX), 1, 0);
    let is_announced = emitter.jump_rcx_zero();
    emitter.load_immediate(RAX, announced.wrapping_sub(shadow));
    emitter.add_registers(RCX, RCX, Some(RAX), 1, 0);
    let is_watched = emitter.jump_rcx_zero();
    emitter.bind_short(is_empty);
    unspill(emitter);
    ExitList::emit_stub_jump(emitter, other);
    emitter.bind_short(is_announced);
    emitter.load_gs(RCX, GS_RSEQ_WORD);
    emitter.load_immediate(RAX, shadow);
    emitter.store_word(RCX, RAX);
    // From here on the kernel watches.
    emitter.bind_short(is_watched);
    unspill(emitter);
}
