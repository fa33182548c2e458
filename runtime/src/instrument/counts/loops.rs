//! Which blocks are the heads and members of hot loops that count in registers (cpu::instrument::loops has how).

use crate::cache::fragment::Fragment;
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::cpu::decode::scratch;
use crate::cpu::instrument::loops::{may_keep_cell, may_keep_counter};
use crate::decode::{Block, Ending};
use crate::instrument::Engine;

/// How a fragment is part of a hot loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopPlan {
    /// The fragment at its head.
    pub head: FragmentId,
    /// The head's counter.
    pub counter: CounterId,
    /// A register has that counter all around the loop.
    pub is_kept: bool,
    /// The cell that another one has, or `NONE`.
    pub cell: CounterId,
}

/// What a hot block is to a loop, as far as it is known before it is planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// Nothing.
    No,
    /// It follows from a block of this loop, and is on the way back to its head.
    Member(LoopPlan),
    /// If it has a counter inside, it is a loop by itself (`is_one_block`), or the head of one.
    Head { is_one_block: bool, may_keep_counter: bool, may_keep_cell: bool },
}

impl LoopPlan {
    /// The loop that the block of fragment `id` is part of; `counter` counts it inside, `cell` its decision, or they are `NONE`.
    pub fn of(round: Round, id: FragmentId, counter: CounterId, cell: CounterId) -> Option<LoopPlan> {
        let (is_one_block, is_kept, may_keep_cell) = match round {
            Round::No => return None,
            Round::Member(plan) => return Some(plan),
            Round::Head { .. } if counter == CounterId::NONE => return None,
            Round::Head { is_one_block, may_keep_counter, may_keep_cell } => {
                (is_one_block, may_keep_counter, may_keep_cell)
            }
        };
        let cell = if is_kept && may_keep_cell { cell } else { CounterId::NONE };
        (is_kept || is_one_block).then_some(LoopPlan { head: id, counter, is_kept, cell })
    }
}

impl Engine {
    /// What a hot block is to a loop. `leader` leads to it, or is `NONE`.
    pub fn round_of(&self, block: &Block, ending: Ending, before: &Fragment, leader: ExitId, is_called: bool) -> Round {
        if block.is_writable || self.tells_blocks_apart() {
            return Round::No;
        }
        if leader != ExitId::NONE {
            return self.loop_of_leader(block, ending, leader).map_or(Round::No, Round::Member);
        }
        let is_one_block = matches!(ending, Ending::Conditional(to) | Ending::Jump(to) if to == block.pc);
        let is_ahead = |source: &FragmentId| {
            *source != FragmentId::NONE
                && scratch::leads_to(&self.ranges, block.pc, self.cache.fragment(*source).app_pc)
        };
        if !is_one_block && !before.main_sources.iter().any(is_ahead) {
            return Round::No;
        }
        Round::Head {
            is_one_block,
            may_keep_counter: !is_called && may_keep_counter(block, ending),
            may_keep_cell: may_keep_cell(block),
        }
    }

    /// The loop of the block in front of one that follows from it, if this one is on the way back to its head.
    fn loop_of_leader(&self, block: &Block, ending: Ending, leader: ExitId) -> Option<LoopPlan> {
        let exit = self.cache.exit(leader);
        let id = self.cache.fragment(exit.fragment).loop_head;
        if id == FragmentId::NONE {
            return None;
        }
        let head = self.cache.fragment(id);
        let is_member = head.keeps_counter
            && head.is_valid
            && !exit.is_surprise
            && may_keep_counter(block, ending)
            && (head.kept_cell == CounterId::NONE || may_keep_cell(block))
            && scratch::leads_to(&self.ranges, block.pc, head.app_pc);
        is_member.then_some(LoopPlan { head: id, counter: head.counter, is_kept: true, cell: head.kept_cell })
    }
}
