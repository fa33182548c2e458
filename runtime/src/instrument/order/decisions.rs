//! What of a block's way out is recorded in its thread's path (mode `full`).

use crate::buffer::RingWriter;
use crate::cache::fragment::{Fragment, Habit};
use crate::context::addresses::AppPc;
use crate::context::numbers::CounterId;
use crate::cpu::instrument::counting::CountPlace;
use crate::cpu::instrument::counting::KEPT_DECISIONS;
use crate::decode::{Block, Ending};
use crate::instrument::Engine;
use crate::protocol::{PATH_DECISIONS_CELL, PATH_OTHER_DECISIONS_CELL};

/// How a block that ends with a decision records it.
#[derive(Clone, Copy)]
pub struct PathPlan {
    /// Where the decision is counted; `None`: on the ways out.
    pub place: Option<CountPlace>,
    /// The counter that counts it.
    pub cell: CounterId,
    /// Which way of a conditional branch is no surprise.
    pub is_taken_expected: bool,
}

/// What is known of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathFacts {
    /// The cell that may count it.
    pub cell: CounterId,
    /// Which way of a conditional branch is no surprise.
    pub is_taken_expected: bool,
}

impl PathPlan {
    /// `place` counts it in the block, or nothing does. `kept_cell`: what a register has all around the loop that the block is in
    /// (cpu::instrument::loops), or `NONE`.
    pub fn of(facts: PathFacts, place: Option<CountPlace>, kept_cell: CounterId) -> PathPlan {
        let PathFacts { cell, is_taken_expected } = facts;
        match kept_cell {
            CounterId::NONE => PathPlan { place, cell, is_taken_expected },
            kept => PathPlan { place: place.map(|place| place.kept_in(KEPT_DECISIONS)), cell: kept, is_taken_expected },
        }
    }
}

/// Gives out the two cells that decisions are counted in.
///
/// Each addition waits for the one before it in the same cell, as both go through memory. So blocks that follow each other, as
/// those that are translated one after the other mostly do, take turns.
pub struct DecisionCells {
    n_taken: u32,
}

impl DecisionCells {
    pub const fn new() -> DecisionCells {
        DecisionCells { n_taken: 0 }
    }

    /// The cell of the next decision.
    pub fn take(&mut self) -> CounterId {
        self.n_taken = self.n_taken.wrapping_add(1);
        match self.n_taken % 2 {
            0 => CounterId::of_cell(PATH_DECISIONS_CELL),
            _ => CounterId::of_cell(PATH_OTHER_DECISIONS_CELL),
        }
    }
}

impl Engine {
    /// What a path has to say of a block's end: `None` where that is no decision, or no path is recorded.
    pub fn path_facts(&mut self, block: &Block, ending: Ending) -> Option<PathFacts> {
        if !self.records_order() {
            return None;
        }
        let branch = block.last_pc();
        let is_taken_expected = match ending {
            Ending::Conditional(target) => self.is_taken_expected(branch, target),
            // Of a decision that has one way.
            Ending::Call(_) => true,
            Ending::Jump(target) if target <= branch => true,
            _ => return None,
        };
        Some(PathFacts { cell: self.decision_cells.take(), is_taken_expected })
    }

    /// Has paths expect what a fragment's conditional branch mostly did: other fragments that hold the branch expect the same, so
    /// they are translated again.
    pub fn expect_habit(&mut self, writer: &RingWriter, fragment: &Fragment, habit: Habit) {
        let branch = fragment.branch_pc();
        let Some(taken) = self.cache.taken_exit(fragment) else {
            return;
        };
        let target = taken.target;
        if !self.records_order() || habit.is_mostly_taken == self.is_taken_expected(branch, target) {
            return;
        }
        self.path_log.turn(branch);
        for id in self.fragments_within(branch, branch + 1) {
            self.retire_to_be_made_again(writer, id);
        }
    }

    /// Which way the conditional branch at `branch` is expected to go: backwards, unless it turned out that it does not.
    fn is_taken_expected(&self, branch: AppPc, target: AppPc) -> bool {
        (target <= branch) != self.path_log.is_unlike(branch)
    }
}
