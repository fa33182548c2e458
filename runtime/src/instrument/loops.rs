//! Hot loops that count in registers.
//!
//! A counter in memory is read right behind where it was written: some processors take five cycles or more for that each turn. So the
//! block at the head of a hot loop has its counter in r10 as well, which is lent, adds to that, and stores it: memory has the
//! true count all the time, and nothing waits for it. Whoever comes to a block of the loop from elsewhere enters it where r10 is
//! loaded (`Fragment::counted_entry`); the blocks of the loop enter each other past that (cache/links.rs). Members of the loop
//! beside its head follow from what leads to them (instrument/leaders.rs), so they count nothing of their own, and leave r10
//! alone. Nothing else counts for the thread meanwhile: who leaves the loop, for a signal or the dispatcher, comes back by
//! an entry. In the same way r11 has the cell that counts the loop's decisions (mode `full`).
//!
//! Where the program names the registers, a loop of one block is entered by a store to its counter at least
//! (`counting::emit_rewrite`).

use super::counting::emit_keep;
use super::{Arrival, Engine};
use crate::arch::x86_64::emit::Emitter;
use crate::arch::x86_64::{INDEX, TARGET};
use crate::cache::fragment::{Fragment, NONE};
use crate::decode::in_place::uses_gs_memory;
use crate::decode::{scratch, Block, Ending};
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

impl Engine {
    /// The loop that a hot block is part of. `id` will be its fragment; `counter` counts it inside, or `leader` leads to it.
    pub fn plan_loop(
        &mut self,
        id: u32,
        block: &Block,
        ending: Ending,
        before: &Fragment,
        leader: u32,
        counter: u32,
    ) -> Option<LoopPlan> {
        if block.is_writable || self.records_regions() {
            return None;
        }
        if leader != NONE {
            return self.loop_of_leader(block, ending, leader);
        }
        if counter == NONE {
            return None;
        }
        let goes_round = matches!(ending, Ending::Conditional(target) | Ending::Jump(target) if target == block.pc);
        let is_ahead = |source: &u32| {
            *source != NONE && scratch::leads_to(&self.ranges, block.pc, self.cache.fragment(*source).app_pc)
        };
        let is_head = goes_round || before.main_sources.iter().any(is_ahead);
        let is_called = before.is_called || self.arrival == Arrival::Call;
        let is_kept = is_head && !is_called && may_keep_counter(block, ending);
        let has_cell = is_kept && self.records_path() && may_keep_cell(block);
        let cell = if has_cell { self.take_cell() } else { NONE };
        (is_kept || goes_round).then_some(LoopPlan { head: id, counter, is_kept, cell })
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
