//! The two ways out of a fragment that ends with a conditional branch.

use super::counting::emit_count;
use super::path_code::emit_surprise;
use super::way_out::WayOut;
use crate::cache::fragment::{ExitType, NONE};
use crate::decode::flags;
use iced_x86::ConditionCode;

/// One of the two ways of a conditional branch: what counts it, and whether it may change flags for that.
#[derive(Clone, Copy)]
struct Way {
    kind: ExitType,
    target: u64,
    counter: u32,
    are_flags_dead: bool,
}

impl WayOut<'_, '_> {
    pub fn conditional(&mut self, target: u64, next: u64) {
        let branch = *self.block.instructions.last().unwrap_or(&iced_x86::Instruction::default());
        let is_taken_dead = flags::dead_at(&self.engine.ranges, self.block.pc, target);
        let is_next_dead = flags::dead_at(&self.engine.ranges, self.block.pc, next);
        let taken_counter = if self.is_taken_counted == Some(true) { NONE } else { self.counters.main };
        let next_counter = if self.is_taken_counted == Some(false) { NONE } else { self.counters.second };
        let taken = Way { kind: ExitType::Taken, target, counter: taken_counter, are_flags_dead: is_taken_dead };
        let not_taken =
            Way { kind: ExitType::NotTaken, target: next, counter: next_counter, are_flags_dead: is_next_dead };
        let mut condition = branch.condition_code();
        let Some(is_taken_straight) = self.is_taken_straight else {
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
        let (straight, aside) = if is_taken_straight { (taken, not_taken) } else { (not_taken, taken) };
        if is_taken_straight {
            condition = invert(condition);
        }
        let code = condition as u8 - ConditionCode::o as u8;
        if aside.counter == NONE && !self.records(aside) {
            self.exits.emit_condition(self.emitter, code, aside.kind, aside.target);
            self.edge(straight);
            return;
        }
        let place = self.emitter.jump_condition(code);
        self.edge(straight);
        self.emitter.set_cold(true);
        self.emitter.bind(place);
        self.edge(aside);
        self.emitter.set_cold(false);
    }

    fn edge(&mut self, way: Way) {
        emit_count(self.emitter, way.counter, way.are_flags_dead, self.is_lending);
        if let Some(path) = self.path.filter(|path| path.place.is_none()) {
            emit_count(self.emitter, path.cell, way.are_flags_dead, self.is_lending);
        }
        let surprise = self.is_surprise(way).then(|| {
            let exit = self.exits.next_id();
            emit_surprise(self.emitter, exit, self.is_lending, self.engine.has_rotate)
        });
        self.exits.emit_jump(self.emitter, way.kind, way.target, way.counter);
        if let Some(full) = surprise {
            self.exits.mark_surprise();
            self.is_broken |= !full.emit(self.emitter);
        }
    }

    fn is_surprise(&self, way: Way) -> bool {
        self.path.is_some_and(|path| path.is_taken_expected != (way.kind == ExitType::Taken))
    }

    /// Whether going this way takes code that records it.
    fn records(&self, way: Way) -> bool {
        self.is_surprise(way) || self.path.is_some_and(|path| path.place.is_none())
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
