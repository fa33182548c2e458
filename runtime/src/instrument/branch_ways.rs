//! The two ways out of a fragment that ends with a conditional branch.

use super::counters::Counters;
use super::counting::{emit_count, emit_keep, emit_kept_count};
use super::path_code::emit_surprise;
use super::path_plan::PathPlan;
use super::way_out::WayOut;
use crate::arch::x86_64::TARGET;
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

/// What is known of the branch at a block's end before code is emitted.
#[derive(Clone, Copy)]
pub struct BranchPlan {
    /// Which way goes straight on; `None`: both do.
    pub is_taken_straight: Option<bool>,
    /// That way leads to code that lies somewhere already, not behind this.
    pub leads_back: bool,
    /// Both ways are counted in the block, with the taken way's counter or the other one.
    pub is_taken_counted: Option<bool>,
    /// What of it the thread's path records.
    pub path: Option<PathPlan>,
}

impl BranchPlan {
    /// The counter of the taken way, or of the other one, beside what counts both.
    fn counter(&self, counters: &Counters, is_taken: bool) -> u32 {
        match is_taken {
            _ if self.is_taken_counted == Some(is_taken) => NONE,
            true => counters.main,
            false => counters.second,
        }
    }

    fn is_surprise(&self, is_taken: bool) -> bool {
        self.path.is_some_and(|path| path.is_taken_expected != is_taken)
    }

    /// Whether the branch itself can lead to where this way goes: nothing is to be counted or recorded on it.
    fn is_bare(&self, counters: &Counters, is_taken: bool) -> bool {
        let is_recorded = self.is_surprise(is_taken) || self.path.is_some_and(|path| path.place.is_none());
        self.counter(counters, is_taken) == NONE && !is_recorded
    }

    /// The way to which the branch itself leads, which is linked: aside, so that the other way goes straight on; or back, as each
    /// further jump that is taken costs a loop a cycle a turn. `None`: there is more to do on both.
    pub fn linked_way(&self, counters: &Counters) -> Option<bool> {
        let straight = self.is_taken_straight?;
        let goes_back = self.leads_back && self.is_bare(counters, straight);
        let way = if goes_back { straight } else { !straight };
        self.is_bare(counters, way).then_some(way)
    }
}

impl WayOut<'_, '_> {
    pub fn conditional(&mut self, target: u64, next: u64) {
        let branch = *self.block.instructions.last().unwrap_or(&iced_x86::Instruction::default());
        let is_taken_dead = flags::dead_at(&self.engine.ranges, self.block.pc, target);
        let is_next_dead = flags::dead_at(&self.engine.ranges, self.block.pc, next);
        let taken_counter = self.branch.counter(self.counters, true);
        let next_counter = self.branch.counter(self.counters, false);
        let taken = Way { kind: ExitType::Taken, target, counter: taken_counter, are_flags_dead: is_taken_dead };
        let not_taken =
            Way { kind: ExitType::NotTaken, target: next, counter: next_counter, are_flags_dead: is_next_dead };
        let Some(is_taken_straight) = self.branch.is_taken_straight else {
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
        let code_of = |is_taken| {
            let condition = if is_taken { branch.condition_code() } else { invert(branch.condition_code()) };
            condition as u8 - ConditionCode::o as u8
        };
        let ways = |is_taken| if is_taken { (taken, not_taken) } else { (not_taken, taken) };
        if let Some(is_taken) = self.branch.linked_way(self.counters) {
            let (way, other) = ways(is_taken);
            self.exits.emit_condition(self.emitter, code_of(is_taken), way.kind, way.target);
            if is_taken == is_taken_straight && self.branch.is_surprise(!is_taken) {
                let place = self.emitter.jump();
                self.cold_edge(place, other);
            } else {
                self.edge(other);
            }
            return;
        }
        let (straight, aside) = ways(is_taken_straight);
        let place = self.emitter.jump_condition(code_of(!is_taken_straight));
        self.edge(straight);
        self.cold_edge(place, aside);
    }

    /// The jump or branch with its displacement at `place` leads to what goes this way, elsewhere.
    fn cold_edge(&mut self, place: u64, way: Way) {
        self.emitter.set_cold(true);
        self.emitter.bind(place);
        self.edge(way);
        self.emitter.set_cold(false);
    }

    fn edge(&mut self, way: Way) {
        let is_kept = self.kept_cell != NONE;
        emit_count(self.emitter, way.counter, way.are_flags_dead, self.is_lending);
        if is_kept && way.counter != NONE && !way.are_flags_dead {
            // It went through r11.
            emit_keep(self.emitter, self.kept_cell, TARGET);
        }
        match self.branch.path.filter(|path| path.place.is_none()) {
            Some(path) if is_kept => emit_kept_count(self.emitter, path.cell, TARGET),
            Some(path) => emit_count(self.emitter, path.cell, way.are_flags_dead, self.is_lending),
            None => {}
        }
        let surprise = self.branch.is_surprise(way.kind == ExitType::Taken).then(|| {
            let exit = self.exits.next_id();
            emit_surprise(self.emitter, exit, self.is_lending, self.engine.has_rotate)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::counting::{CountPlace, CountWay};

    const PLAN: BranchPlan =
        BranchPlan { is_taken_straight: Some(true), leads_back: false, is_taken_counted: None, path: None };
    const COUNTED: Counters = Counters { first: 1, main: 1, second: 2, ..Counters::NONE };
    const NOT_COUNTED: Counters = Counters::NONE;

    #[test]
    fn the_branch_leads_aside_or_back() {
        assert_eq!(PLAN.linked_way(&NOT_COUNTED), Some(false));
        assert_eq!(BranchPlan { leads_back: true, ..PLAN }.linked_way(&NOT_COUNTED), Some(true));
        assert_eq!(BranchPlan { is_taken_counted: Some(false), ..PLAN }.linked_way(&COUNTED), Some(false));
        let back = BranchPlan { leads_back: true, is_taken_counted: Some(true), ..PLAN };
        assert_eq!(back.linked_way(&COUNTED), Some(true));
        assert_eq!(
            BranchPlan { is_taken_straight: Some(false), is_taken_counted: Some(false), ..back }.linked_way(&COUNTED),
            Some(false)
        );
    }

    #[test]
    fn what_has_more_to_do_has_code_of_its_own() {
        assert_eq!(PLAN.linked_way(&COUNTED), None);
        assert_eq!(BranchPlan { is_taken_counted: Some(true), ..PLAN }.linked_way(&COUNTED), None);
        assert_eq!(BranchPlan { is_taken_straight: None, ..PLAN }.linked_way(&NOT_COUNTED), None);
        let path = PathPlan { place: None, cell: 0, is_taken_expected: true };
        assert_eq!(BranchPlan { leads_back: true, path: Some(path), ..PLAN }.linked_way(&NOT_COUNTED), None);
    }

    #[test]
    fn surprises_are_recorded_beside_the_branch() {
        let place = CountPlace { before: 0, way: CountWay::Flags };
        let expected = |is_taken_expected| Some(PathPlan { place: Some(place), cell: 0, is_taken_expected });
        let back = BranchPlan { leads_back: true, ..PLAN };
        assert_eq!(BranchPlan { path: expected(true), ..back }.linked_way(&NOT_COUNTED), Some(true));
        assert_eq!(BranchPlan { path: expected(false), ..back }.linked_way(&NOT_COUNTED), Some(false));
    }
}
