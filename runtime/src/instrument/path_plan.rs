//! What of a block's way out is recorded in its thread's path (mode `full`).

use super::counting::CountPlace;
use super::Engine;
use crate::buffer::RingWriter;
use crate::cache::fragment::{Fragment, Habit};
use crate::decode::{Block, Ending};

/// How a block that ends with a decision records it.
#[derive(Clone, Copy)]
pub struct PathPlan {
    /// Where the decision is counted; `None`: on the ways out.
    pub place: Option<CountPlace>,
    /// Which way of a conditional branch is no surprise.
    pub is_taken_expected: bool,
}

impl PathPlan {
    /// Of a decision that has one way.
    fn counting(block: &Block, n_copied: usize, are_dead_at_end: bool) -> PathPlan {
        PathPlan { place: Some(CountPlace::find(block, n_copied, are_dead_at_end)), is_taken_expected: true }
    }
}

impl Engine {
    /// Whether the order of execution is recorded.
    pub fn records_path(&self) -> bool {
        self.cache.keeps_shadow
    }

    /// `None` where the block's end is no decision, or no path is recorded.
    pub fn plan_path(&self, block: &Block, ending: Ending, n_copied: usize, are_dead_at_end: bool) -> Option<PathPlan> {
        if !self.records_path() {
            return None;
        }
        let branch = block.instructions.last()?.ip();
        match ending {
            Ending::Conditional(target) => Some(PathPlan {
                place: CountPlace::find_for_flags(block, n_copied),
                is_taken_expected: self.is_taken_expected(branch, target),
            }),
            Ending::Call(_) => Some(PathPlan::counting(block, n_copied, are_dead_at_end)),
            Ending::Jump(target) if target <= branch => Some(PathPlan::counting(block, n_copied, are_dead_at_end)),
            _ => None,
        }
    }

    /// Has paths expect what a fragment's conditional branch mostly did: other fragments that hold the branch expect the same, so
    /// they are translated again.
    pub fn expect_habit(&mut self, writer: &RingWriter, fragment: &Fragment, habit: Habit) {
        let branch = fragment.branch_pc();
        let Some(taken) = self.cache.taken_exit(fragment) else {
            return;
        };
        let target = taken.target;
        if !self.records_path() || habit.is_mostly_taken == self.is_taken_expected(branch, target) {
            return;
        }
        self.path_log.turn(branch);
        for id in self.fragments_within(branch, branch + 1) {
            if self.cache.fragment(id).is_valid {
                self.retire(writer, id);
                self.cache.bypass(id);
            }
        }
    }

    /// Which way the conditional branch at `branch` is expected to go: backwards, unless it turned out that it does not.
    fn is_taken_expected(&self, branch: u64, target: u64) -> bool {
        (target <= branch) != self.path_log.is_unlike(branch)
    }
}
