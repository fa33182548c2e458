//! The blocks that tags are about (mode `region`): their numbers, and how often a thread executed each, and whereto.
//!
//! A block is what a fragment was translated from: from where it is entered to the next branch. What is translated again keeps
//! its number, so several fragments may have one. Runs under the runtime's lock, on the runtime's stack.

extern crate alloc;
use crate::cache::exit::ExitType;
use crate::cache::fragment::Fragment;
use crate::cache::PadId;
use crate::context::addresses::AppPc;
use crate::context::numbers::{BlockNumber, FragmentId};
use crate::context::ThreadContext;
use crate::instrument::change::relayout::executions_of;
use crate::instrument::Engine;
use crate::protocol::{edge_kind, exit_kind, REGION_BLOCKS};
use alloc::vec::Vec;

/// Where executions went that is not known: returns, and what ends with another's branch that has several ways.
pub const SOMEWHERE: AppPc = AppPc::LOWEST;

/// Numbered blocks: of each the fragment that was made last. Others follow by `Fragment::region_before`.
pub struct RegionBlocks {
    newest: Vec<FragmentId>,
}

impl RegionBlocks {
    pub const fn new() -> RegionBlocks {
        RegionBlocks { newest: Vec::new() }
    }

    /// Fragment `id` was made of block `number`.
    pub fn note(&mut self, number: BlockNumber, id: FragmentId) {
        match self.newest.get_mut(number.raw() as usize) {
            Some(newest) => *newest = id,
            None if number != BlockNumber::NONE => self.newest.push(id),
            None => {}
        }
    }
}

impl Engine {
    /// The number of the block that is about to be translated, `NONE` if it is not tagged; and the fragment that had it last.
    /// What is made is to be noted (`RegionBlocks::note`).
    pub fn number_block(&self, pc: AppPc, code_hash: u64, is_included: bool) -> (BlockNumber, FragmentId) {
        if !self.records_tags() || !is_included {
            return (BlockNumber::NONE, FragmentId::NONE);
        }
        let last = self.cache.versions.find(pc).map(|last| *self.cache.fragment(last));
        if let Some(last) = last.filter(|last| last.code_hash == code_hash && last.region_block != BlockNumber::NONE) {
            return (last.region_block, self.region_blocks.newest[last.region_block.raw() as usize]);
        }
        let number = self.region_blocks.newest.len();
        if number as u64 >= REGION_BLOCKS {
            self.shared.add(crate::status_field!(untagged_fragments), 1);
            return (BlockNumber::NONE, FragmentId::NONE);
        }
        (BlockNumber::from_raw(number as u32), FragmentId::NONE)
    }

    /// How often the thread executed block `number`, by where it went; in any order, an address several times.
    pub fn visit_ways(&self, context: &ThreadContext, number: BlockNumber, visit: &mut dyn FnMut(AppPc, u64)) {
        let mut id = self.region_blocks.newest[number.raw() as usize];
        while id != FragmentId::NONE {
            let fragment = *self.cache.fragment(id);
            self.visit_ways_of(context, id, &fragment, visit);
            id = fragment.region_before;
        }
    }

    fn visit_ways_of(
        &self,
        context: &ThreadContext,
        id: FragmentId,
        fragment: &Fragment,
        visit: &mut dyn FnMut(AppPc, u64),
    ) {
        if matches!(fragment.exit_kind, exit_kind::INDIRECT_JUMP | exit_kind::INDIRECT_CALL) {
            let mut pad = fragment.newest_pad;
            while pad != PadId::NONE {
                let known = *self.cache.pad(pad);
                visit(known.target, executions_of(context, known.counter));
                pad = known.before;
            }
            let kind = match fragment.exit_kind {
                exit_kind::INDIRECT_CALL => edge_kind::INDIRECT_CALL,
                _ => edge_kind::INDIRECT_JUMP,
            };
            for (edge, counter) in self.edges_of(kind, id) {
                visit(edge.target_pc, executions_of(context, counter));
            }
            return;
        }
        let executed = self.executions_of_fragment(context, fragment);
        if fragment.exit_kind != exit_kind::CONDITIONAL {
            let is_way = |kind: ExitType| matches!(kind, ExitType::Jump | ExitType::Call | ExitType::Syscall);
            let last = self.find_end(fragment);
            let way = self.cache.exits_of(&last).iter().find(|exit| is_way(exit.kind));
            visit(way.map_or(SOMEWHERE, |exit| exit.target), executed);
            return;
        }
        let taken = self.taken(context, fragment, executed).min(executed);
        for exit in self.cache.exits_of(fragment) {
            match exit.kind {
                ExitType::Taken => visit(exit.target, taken),
                ExitType::NotTaken => visit(exit.target, executed - taken),
                _ => {}
            }
        }
    }

    /// The fragment that a fragment's block ends with: where it was cut, others go on, which others come to as well.
    fn find_end(&self, fragment: &Fragment) -> Fragment {
        const MAX_PIECES: usize = 16;
        let mut last = *fragment;
        for _ in 0..MAX_PIECES {
            let is_cut = last.exit_kind == exit_kind::FALL_THROUGH;
            match is_cut.then(|| self.cache.by_pc.find(last.end())).flatten() {
                Some(next) => last = *self.cache.fragment(next),
                None => break,
            }
        }
        last
    }
}
