//! What of a block's way out is recorded in its thread's path (mode `full`).

use super::counting::CountPlace;
use super::Engine;
use crate::arch::x86_64::TARGET;
use crate::buffer::RingWriter;
use crate::cache::fragment::{Fragment, Habit, NONE};
use crate::decode::{Block, Ending};
use crate::protocol::{mode, PATH_DECISIONS_CELL, PATH_OTHER_DECISIONS_CELL};

/// How a block that ends with a decision records it.
#[derive(Clone, Copy)]
pub struct PathPlan {
    /// Where the decision is counted; `None`: on the ways out.
    pub place: Option<CountPlace>,
    /// The counter that counts it.
    pub cell: u32,
    /// Which way of a conditional branch is no surprise.
    pub is_taken_expected: bool,
}

impl Engine {
    /// Whether the order of execution is recorded now: what is translated tells of it.
    pub fn records_path(&self) -> bool {
        self.cache.keeps_shadow
    }

    /// Whether it can be, if not now.
    pub fn may_record_path(&self) -> bool {
        matches!(self.shared.header().mode, mode::COUNTS | mode::FULL)
    }

    /// `None` where the block's end is no decision, or no path is recorded. `kept_cell`: what r11 has all around the loop
    /// that the block is in (instrument/loops.rs), or `NONE`.
    pub fn plan_path(
        &mut self,
        block: &Block,
        ending: Ending,
        n_copied: usize,
        are_dead_at_end: bool,
        kept_cell: u32,
    ) -> Option<PathPlan> {
        if !self.records_path() {
            return None;
        }
        let branch = block.instructions.last()?.ip();
        // Of a decision that has one way.
        let counting = || (Some(CountPlace::find(block, n_copied, are_dead_at_end)), true);
        let (place, is_taken_expected) = match ending {
            Ending::Conditional(target) => {
                (CountPlace::find_for_flags(block, n_copied), self.is_taken_expected(branch, target))
            }
            Ending::Call(_) => counting(),
            Ending::Jump(target) if target <= branch => counting(),
            _ => return None,
        };
        if kept_cell != NONE {
            return Some(PathPlan {
                place: place.map(|place| place.kept_in(TARGET)),
                cell: kept_cell,
                is_taken_expected,
            });
        }
        Some(PathPlan { place, cell: self.take_cell(), is_taken_expected })
    }

    /// Which of the two cells is to count a block's decision.
    pub fn take_cell(&mut self) -> u32 {
        // Each addition waits for the one before it in the same cell, as both go through memory. So blocks that follow each
        // other, as these that are translated one after the other mostly do, take turns.
        self.decides_in_other = !self.decides_in_other;
        if self.decides_in_other {
            PATH_OTHER_DECISIONS_CELL as u32
        } else {
            PATH_DECISIONS_CELL as u32
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
            self.retire_to_be_made_again(writer, id);
        }
    }

    /// Which way the conditional branch at `branch` is expected to go: backwards, unless it turned out that it does not.
    fn is_taken_expected(&self, branch: u64, target: u64) -> bool {
        (target <= branch) != self.path_log.is_unlike(branch)
    }
}
