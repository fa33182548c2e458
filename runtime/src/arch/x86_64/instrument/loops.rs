//! Hot loops that count in registers.
//!
//! A counter in memory is read right behind where it was written: some processors take five cycles or more for that each turn. So the
//! block at the head of a hot loop has its counter in r10 as well, which is lent, adds to that, and stores it: memory has the
//! true count all the time, and nothing waits for it. Whoever comes to a block of the loop from elsewhere enters it where r10 is
//! loaded (`Fragment::counted_entry`); the blocks of the loop enter each other past that (cache/links.rs). Members of the loop
//! beside its head follow from what leads to them (instrument/counts/leaders.rs), so they count nothing of their own, and leave r10
//! alone. Nothing else counts for the thread meanwhile: who leaves the loop, for a signal or the dispatcher, comes back by
//! an entry. In the same way r11 has the cell that counts the loop's decisions (mode `full`).
//!
//! Where the program names the registers, a loop of one block is entered by a store to its counter at least
//! (`counting::emit_rewrite`).

use crate::cache::fragment::{Fragment, NONE};
use crate::cpu::decode::in_place::uses_gs_memory;
use crate::cpu::decode::scratch;
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::counting::emit_keep;
use crate::cpu::{INDEX, TARGET};
use crate::decode::{Block, Ending};
use crate::instrument::Engine;
use iced_x86::{Code, Instruction};

/// How a fragment is part of a hot loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopPlan {
    /// The fragment at its head.
    pub head: u32,
    /// The head's counter.
    pub counter: u32,
    /// r10 has that counter all around the loop.
    pub is_kept: bool,
    /// What r11 has, or `NONE`.
    pub cell: u32,
}

impl LoopPlan {
    /// Emits what those do who come to a block of the loop from elsewhere, r10 and r11 being lent. Flags are kept.
    pub fn emit_entry(&self, emitter: &mut Emitter) {
        emit_keep(emitter, self.counter, INDEX);
        if self.cell != NONE {
            emit_keep(emitter, self.cell, TARGET);
        }
    }
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
    pub fn of(round: Round, id: u32, counter: u32, cell: u32) -> Option<LoopPlan> {
        let (is_one_block, is_kept, may_keep_cell) = match round {
            Round::No => return None,
            Round::Member(plan) => return Some(plan),
            Round::Head { .. } if counter == NONE => return None,
            Round::Head { is_one_block, may_keep_counter, may_keep_cell } => {
                (is_one_block, may_keep_counter, may_keep_cell)
            }
        };
        let cell = if is_kept && may_keep_cell { cell } else { NONE };
        (is_kept || is_one_block).then_some(LoopPlan { head: id, counter, is_kept, cell })
    }
}

impl Engine {
    /// What a hot block is to a loop. `leader` leads to it, or is `NONE`.
    pub fn round_of(&self, block: &Block, ending: Ending, before: &Fragment, leader: u32, is_called: bool) -> Round {
        if block.is_writable || self.tells_blocks_apart() {
            return Round::No;
        }
        if leader != NONE {
            return self.loop_of_leader(block, ending, leader).map_or(Round::No, Round::Member);
        }
        let is_one_block = matches!(ending, Ending::Conditional(to) | Ending::Jump(to) if to == block.pc);
        let is_ahead = |source: &u32| {
            *source != NONE && scratch::leads_to(&self.ranges, block.pc, self.cache.fragment(*source).app_pc)
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
    fn loop_of_leader(&self, block: &Block, ending: Ending, leader: u32) -> Option<LoopPlan> {
        let exit = self.cache.exit(leader);
        let id = self.cache.fragment(exit.fragment).loop_head;
        if id == NONE {
            return None;
        }
        let head = self.cache.fragment(id);
        let is_member = head.keeps_counter
            && head.is_valid
            && !exit.is_surprise
            && may_keep_counter(block, ending)
            && (head.kept_cell == NONE || may_keep_cell(block))
            && scratch::leads_to(&self.ranges, block.pc, head.app_pc);
        is_member.then_some(LoopPlan { head: id, counter: head.counter, is_kept: true, cell: head.kept_cell })
    }
}

/// Whether a block leaves r10 to the runtime, and needs it for nothing itself.
fn may_keep_counter(block: &Block, ending: Ending) -> bool {
    matches!(ending, Ending::Conditional(_) | Ending::Jump(_) | Ending::Limit)
        && !block.instructions.iter().any(|one| scratch::names_lent_register(one) || uses_gs_memory(one))
}

/// Whether it needs r11 for nothing, either: what lies far from the cache is accessed through it.
fn may_keep_cell(block: &Block) -> bool {
    let may_be_far =
        |one: &Instruction| one.is_ip_rel_memory_operand() && !matches!(one.code(), Code::Lea_r64_m | Code::Lea_r32_m);
    !block.instructions.iter().any(may_be_far)
}
