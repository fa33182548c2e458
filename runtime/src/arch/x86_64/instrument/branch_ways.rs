//! The two ways out of a fragment that ends with a conditional branch.

use crate::cache::exit::ExitType;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::CounterId;
use crate::cpu::decode::flags;
use crate::cpu::instrument::counting::{emit_count, emit_keep, emit_kept_count};
use crate::cpu::instrument::order::emit_surprise;
use crate::cpu::instrument::terminator::Terminator;
use crate::cpu::TARGET;
use crate::instrument::branch_way::BranchWay;
use iced_x86::ConditionCode;

/// One of the two ways of a conditional branch: what counts it, and whether it may change flags for that.
#[derive(Clone, Copy)]
struct Way {
    kind: ExitType,
    target: AppPc,
    counter: CounterId,
    are_flags_dead: bool,
}

impl Terminator<'_, '_> {
    pub fn conditional(&mut self, target: AppPc, next: AppPc) {
        let branch = *self.block.instructions.last().unwrap_or(&iced_x86::Instruction::default());
        let is_taken_dead = flags::dead_at(&self.engine.ranges, self.block.pc, target);
        let is_next_dead = flags::dead_at(&self.engine.ranges, self.block.pc, next);
        let taken_counter = self.plan.branch.counter(&self.plan.counters, BranchWay::Taken);
        let next_counter = self.plan.branch.counter(&self.plan.counters, BranchWay::NotTaken);
        let taken = Way { kind: ExitType::Taken, target, counter: taken_counter, are_flags_dead: is_taken_dead };
        let not_taken =
            Way { kind: ExitType::NotTaken, target: next, counter: next_counter, are_flags_dead: is_next_dead };
        let Some(straight_way) = self.plan.branch.straight else {
            // loop, loope, loopne, jrcxz, jecxz exist with an 8-bit displacement only.
            let bytes = self.block.bytes_of(self.block.instructions.len() - 1);
            self.emitter.bytes(&bytes[..bytes.len() - 1]);
            let short = self.emitter.address();
            self.emitter.bytes(&[0]);
            let aside = self.emitter.jump();
            self.emitter.bind_short(short);
            self.edge(taken);
            self.emitter.bind(aside);
            self.edge(not_taken);
            return;
        };
        let code_of = |way| {
            let condition = branch.condition_code();
            let condition = if way == BranchWay::Taken { condition } else { invert(condition) };
            condition as u8 - ConditionCode::o as u8
        };
        let ways = |way| if way == BranchWay::Taken { (taken, not_taken) } else { (not_taken, taken) };
        if let Some(linked) = self.plan.branch.linked_way(&self.plan.counters) {
            let (way, other) = ways(linked);
            self.exits.emit_condition(self.emitter, code_of(linked), way.kind, way.target);
            if linked == straight_way && self.plan.branch.is_surprise(!linked) {
                let place = self.emitter.jump();
                self.cold_edge(place, other);
            } else {
                self.edge(other);
            }
            return;
        }
        let (straight, aside) = ways(straight_way);
        let place = self.emitter.jump_condition(code_of(!straight_way));
        self.edge(straight);
        self.cold_edge(place, aside);
    }

    /// The jump or branch with its displacement at `place` leads to what goes this way, elsewhere.
    fn cold_edge(&mut self, place: CachePc, way: Way) {
        self.emitter.set_cold(true);
        self.emitter.bind(place);
        self.edge(way);
        self.emitter.set_cold(false);
    }

    fn edge(&mut self, way: Way) {
        let is_kept = self.plan.kept_cell() != CounterId::NONE;
        emit_count(self.emitter, way.counter, way.are_flags_dead, self.plan.is_lending);
        if is_kept && way.counter != CounterId::NONE && !way.are_flags_dead {
            // It went through r11.
            emit_keep(self.emitter, self.plan.kept_cell(), TARGET);
        }
        match self.plan.branch.path.filter(|path| path.place.is_none()) {
            Some(path) if is_kept => emit_kept_count(self.emitter, path.cell, TARGET),
            Some(path) => emit_count(self.emitter, path.cell, way.are_flags_dead, self.plan.is_lending),
            None => {}
        }
        let surprise = self.plan.branch.is_surprise(BranchWay::of(way.kind == ExitType::Taken)).then(|| {
            let exit = self.exits.next_id();
            emit_surprise(self.emitter, exit, self.plan.is_lending, self.engine.features.has_rotate)
        });
        self.exits.emit_jump(self.emitter, way.kind, way.target, way.counter);
        if let Some(full) = surprise {
            self.exits.mark_surprise();
            self.is_broken |= !full.emit(self.emitter);
        }
    }
}

/// The opposite condition.
fn invert(condition: ConditionCode) -> ConditionCode {
    match condition {
        ConditionCode::o => ConditionCode::no,
        ConditionCode::no => ConditionCode::o,
        ConditionCode::b => ConditionCode::ae,
        ConditionCode::ae => ConditionCode::b,
        ConditionCode::e => ConditionCode::ne,
        ConditionCode::ne => ConditionCode::e,
        ConditionCode::be => ConditionCode::a,
        ConditionCode::a => ConditionCode::be,
        ConditionCode::s => ConditionCode::ns,
        ConditionCode::ns => ConditionCode::s,
        ConditionCode::p => ConditionCode::np,
        ConditionCode::np => ConditionCode::p,
        ConditionCode::l => ConditionCode::ge,
        ConditionCode::ge => ConditionCode::l,
        ConditionCode::le => ConditionCode::g,
        ConditionCode::g => ConditionCode::le,
        ConditionCode::None => ConditionCode::None,
    }
}
