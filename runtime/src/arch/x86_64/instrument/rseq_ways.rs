//! How a restartable sequence's blocks are left: what is counted there, and what the thread's path is told.
//!
//! Keeps to the rules of `rseq_code`.

use crate::context::layout::counter_offset;
use crate::context::numbers::{CounterId, ExitId};
use crate::cpu::displacements::{
    gs_path_cell, GS_RSEQ_COUNT, GS_RSEQ_LEFT, GS_RSEQ_PATH, GS_RSEQ_STATE, GS_RSEQ_UNDO, GS_RSEQ_WORD, GS_SPILL_INDEX,
    GS_SPILL_RAX, GS_SPILL_RCX, GS_SPILL_TARGET,
};
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::order::{emit_surprise_bytes, FullBuffer};
use crate::cpu::rseq::{RSEQ_LEAVING, RSEQ_WRITES_PATH, UNDO_INDEX, UNDO_RCX_RAX, UNDO_TARGET};
use crate::cpu::{INDEX, RAX, RCX, TARGET};
use crate::decode::Block;
use crate::instrument::exits::ExitList;
use crate::instrument::rseq_plan::{Goal, RseqPlan, Step, Way};
use crate::protocol::{PATH_DECISIONS_CELL, PATH_OTHER_DECISIONS_CELL, PATH_SURPRISES_CELL};
use iced_x86::ConditionCode;

/// Emits the ways out of a block that does not end its critical section.
pub struct WaysOut<'a, 'b> {
    pub emitter: &'a mut Emitter<'b>,
    pub exits: &'a mut ExitList,
    pub has_rotate: bool,
    /// A short branch did not reach: the fragment is not to be used.
    pub is_broken: bool,
}

impl WaysOut<'_, '_> {
    pub fn emit(&mut self, block: &Block, plan: &RseqPlan) {
        let Some(not_taken) = plan.not_taken else {
            self.way(plan.taken);
            return;
        };
        let index = plan.facts.n_copied;
        let branch = &block.instructions[index];
        if branch.is_jcc_short() || branch.is_jcc_near() {
            let place = self.emitter.jump_condition(branch.condition_code() as u8 - ConditionCode::o as u8);
            self.way(not_taken);
            self.emitter.bind(place);
            self.way(plan.taken);
            return;
        }
        // loop, loope, loopne, jrcxz, jecxz exist with an 8-bit displacement only.
        let bytes = block.bytes_of(index);
        self.emitter.bytes(&bytes[..bytes.len() - 1]);
        let place = self.emitter.address();
        self.emitter.bytes(&[0]);
        let aside = self.emitter.jump();
        self.is_broken |= !self.emitter.bind_short(place);
        self.way(plan.taken);
        self.emitter.bind(aside);
        self.way(not_taken);
    }

    fn way(&mut self, way: Way) {
        match way.goal {
            Goal::Outside | Goal::Enclosed => {}
            Goal::Beside => emit_note_left(self.emitter),
            Goal::BesideCall => {
                self.emitter.store_gs_immediate(GS_RSEQ_LEFT, 0);
                self.emitter.store_gs_immediate(GS_RSEQ_LEFT + 4, 0);
            }
        }
        let is_inside = way.goal == Goal::Enclosed;
        let exit = self.exits.next_id();
        let surprise = match way.step {
            Step::Implied => {
                emit_count(self.emitter, exit, way.counter);
                None
            }
            step => emit_step(self.emitter, exit, way.counter, step == Step::Surprise, self.has_rotate),
        };
        self.exits.emit_jump(self.emitter, way.kind, way.target, way.counter);
        if let Some(exit) = self.exits.as_mut_slice().last_mut() {
            exit.is_inside = is_inside;
        }
        if let Some(full) = surprise {
            self.exits.mark_surprise();
            self.is_broken |= !full.bind(self.emitter);
            unspill_step(self.emitter);
            if is_inside {
                emit_note_left(self.emitter);
            }
            ExitList::emit_stub_jump(self.emitter, exit);
        }
    }
}

/// Emits a note of what rseq_cs holds, for when the thread comes back to the critical section: if that is gone then, the kernel
/// would have aborted it.
pub fn emit_note_left(emitter: &mut Emitter) {
    spill(emitter);
    emitter.load_gs(RCX, GS_RSEQ_WORD);
    emitter.load_word(RCX, RCX);
    emitter.store_gs(GS_RSEQ_LEFT, RCX);
    unspill(emitter);
}

/// Emits `counter += 1` for an exit; nothing for `NONE`.
pub fn emit_count(emitter: &mut Emitter, exit: ExitId, counter: CounterId) {
    if counter == CounterId::NONE {
        return;
    }
    emitter.store_gs(GS_SPILL_INDEX, INDEX);
    emitter.store_gs_immediate(GS_RSEQ_UNDO, UNDO_INDEX);
    emitter.load_gs(INDEX, counter_offset(counter));
    emitter.store_gs(GS_RSEQ_COUNT, INDEX);
    emitter.store_gs_immediate(GS_RSEQ_STATE, exit.raw() | RSEQ_LEAVING);
    emitter.add_immediate(INDEX, 1);
    emitter.store_gs(counter_offset(counter), INDEX);
    emitter.load_gs(INDEX, GS_SPILL_INDEX);
    emitter.store_gs_immediate(GS_RSEQ_UNDO, 0);
}

/// As `emit_count`, of an exit that is a decision in the thread's path, or also a surprise: then the way for when the buffer is
/// full, still to be bound, with registers in their slots.
fn emit_step(
    emitter: &mut Emitter,
    exit: ExitId,
    counter: CounterId,
    is_surprise: bool,
    has_rotate: bool,
) -> Option<FullBuffer> {
    let (decisions, surprises) = (gs_path_cell(PATH_DECISIONS_CELL), gs_path_cell(PATH_SURPRISES_CELL));
    emitter.store_gs(GS_SPILL_TARGET, TARGET);
    emitter.store_gs(GS_SPILL_RCX, RCX);
    emitter.store_gs(GS_SPILL_RAX, RAX);
    emitter.store_gs_immediate(GS_RSEQ_UNDO, UNDO_RCX_RAX | UNDO_TARGET);
    emitter.load_gs(TARGET, surprises);
    emitter.store_gs(GS_RSEQ_PATH + 16, TARGET);
    emitter.load_gs(TARGET, gs_path_cell(PATH_OTHER_DECISIONS_CELL));
    emitter.store_gs(GS_RSEQ_PATH + 8, TARGET);
    emitter.load_gs(RCX, decisions);
    emitter.store_gs(GS_RSEQ_PATH, RCX);
    if counter != CounterId::NONE {
        emitter.load_gs(RAX, counter_offset(counter));
        emitter.store_gs(GS_RSEQ_COUNT, RAX);
    }
    emitter.store_gs_immediate(GS_RSEQ_STATE, exit.raw() | RSEQ_LEAVING | RSEQ_WRITES_PATH);
    if counter != CounterId::NONE {
        emitter.add_immediate(RAX, 1);
        emitter.store_gs(counter_offset(counter), RAX);
    }
    emitter.add_immediate(RCX, 1);
    emitter.store_gs(decisions, RCX);
    let full = is_surprise.then(|| emit_surprise_bytes(emitter, exit, has_rotate));
    unspill_step(emitter);
    full
}

fn unspill_step(emitter: &mut Emitter) {
    emitter.load_gs(TARGET, GS_SPILL_TARGET);
    unspill(emitter);
}

pub fn spill(emitter: &mut Emitter) {
    emitter.store_gs(GS_SPILL_RCX, RCX);
    emitter.store_gs(GS_SPILL_RAX, RAX);
    emitter.store_gs_immediate(GS_RSEQ_UNDO, UNDO_RCX_RAX);
}

pub fn unspill(emitter: &mut Emitter) {
    emitter.load_gs(RAX, GS_SPILL_RAX);
    emitter.load_gs(RCX, GS_SPILL_RCX);
    emitter.store_gs_immediate(GS_RSEQ_UNDO, 0);
}
