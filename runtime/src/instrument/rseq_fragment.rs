//! From a block of a critical section to a fragment in its enclosure: request, facts, plan, code and record, as elsewhere
//! (instrument/fragment.rs).

use super::exits::ExitList;
use super::facts::Facts;
use super::instruction_map::MapBuilder;
use super::kinds::kind_of;
use super::output::Output;
use super::request::Request;
use super::rseq_plan::{first_way, Goal, RseqFacts, RseqFailure, RseqPlan};
use super::{BuildError, Engine};
use crate::buffer::RingWriter;
use crate::cache::fragment::Fragment;
use crate::cache::rseq::Enclosure;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::FragmentId;
use crate::decode::{decode_block, Block, Ending};
use crate::protocol::error_code;

/// Where a fragment's code went in its enclosure.
pub struct RseqEmitted {
    /// Where it is entered from outside, and where from inside.
    pub entry: CachePc,
    pub inner: CachePc,
    /// Cache offset at which its own code ends and the way out begins.
    pub exit_offset: u64,
}

impl Engine {
    /// Translates a block of a critical section; `is_last`: its last instruction.
    pub fn build_in_rseq(
        &mut self,
        writer: &RingWriter,
        request: Request,
        block: &mut Block,
        ending: Ending,
        is_last: bool,
    ) -> Result<FragmentId, BuildError> {
        while let Some(index) = self.cache.rseqs.find(block.pc) {
            match self.build_in_enclosure(writer, request, block, ending, index, is_last) {
                Ok(id) => return Ok(id),
                Err(RseqFailure::Full) => self.renew_enclosure(writer, index),
                Err(RseqFailure::Impossible) => self.give_up_rseq(writer, index),
                Err(RseqFailure::OutOfMemory) => {
                    self.shared.report_error(error_code::OUT_OF_MEMORY, [4, 0, 0, 0]);
                    return Err(BuildError::OutOfMemory);
                }
            }
        }
        self.build_block(writer, request, block, ending)
    }

    fn build_in_enclosure(
        &mut self,
        writer: &RingWriter,
        request: Request,
        block: &Block,
        ending: Ending,
        index: u32,
        is_last: bool,
    ) -> Result<FragmentId, RseqFailure> {
        let enclosure = *self.cache.rseqs.enclosure(index);
        if is_last && enclosure.has_last {
            return Err(RseqFailure::Full);
        }
        // SAFETY: the lock is held.
        let mut emitter = unsafe { enclosure.emitter() }.ok_or(RseqFailure::Full)?;
        let facts = self.gather_in_rseq(writer, request, block, ending, &enclosure, is_last);
        let plan = RseqPlan::of(block, facts, &enclosure);
        let mut exits = ExitList::new(self.cache.next_exit(), self.cache.keeps_shadow);
        let mut map = MapBuilder::new(block, false);
        let mut out = Output { emitter: &mut emitter, exits: &mut exits, map: &mut map };
        let emitted = self.emit_in_enclosure(block, &plan, &enclosure, &mut out)?;
        if emitter.overflowed() {
            return Err(RseqFailure::Full);
        }
        let end = emitter.address();
        self.keep_in_enclosure(block, &plan, &emitted, &mut exits, &map, end)?;
        let id = plan.facts.id;
        let rseqs = &mut self.cache.rseqs;
        if !rseqs.commit(index, id, end, false) || is_last && !rseqs.commit(index, id, CachePc::NOWHERE, true) {
            return Err(RseqFailure::OutOfMemory);
        }
        self.publish(writer, block, id, plan.facts.kind, ending, &plan.facts.counters);
        Ok(id)
    }

    /// Gathers what is known of a block of a critical section.
    fn gather_in_rseq(
        &mut self,
        writer: &RingWriter,
        request: Request,
        block: &Block,
        ending: Ending,
        enclosure: &Enclosure,
        is_last: bool,
    ) -> RseqFacts {
        let kind = kind_of(ending, self.features.has_transactions);
        let facts = Facts::of(self.cache.next_fragment(), request, block, ending, kind);
        // Nothing is laid out anew here; but what led to other code is cut off.
        self.find_hot(writer, block.pc, facts.code_hash);
        let counters = self.plan_counters(&request, block, ending, kind);
        let path = self.path_facts(block, ending);
        let goals = [first_way(block, ending).1, block.end()].map(|target| self.goal_of(enclosure, target));
        RseqFacts { of_block: Facts { counters, path, ..facts }, is_last, goals }
    }

    /// What is at `target`, to which a way out of `enclosure` leads.
    fn goal_of(&self, enclosure: &Enclosure, target: AppPc) -> Goal {
        if !enclosure.descriptor.contains(target) {
            return Goal::Outside;
        }
        let mut block = Block::new();
        match decode_block(&mut block, &self.ranges, target) {
            Ok(Ending::Limit | Ending::Jump(_) | Ending::Conditional(_)) => Goal::Enclosed,
            Ok(_) if block.count() > 1 => Goal::Enclosed,
            Ok(Ending::Call(_) | Ending::IndirectCall) => Goal::BesideCall,
            Ok(_) | Err(_) => Goal::Beside,
        }
    }

    /// Keeps what is to be known of emitted code, which goes up to `end`: the fragment, its exits, its instruction map.
    fn keep_in_enclosure(
        &mut self,
        block: &Block,
        plan: &RseqPlan,
        emitted: &RseqEmitted,
        exits: &mut ExitList,
        map: &MapBuilder,
        end: CachePc,
    ) -> Result<(), RseqFailure> {
        for exit in exits.as_mut_slice() {
            exit.fragment = plan.facts.id;
        }
        let code_version = self.version_of(block.pc, plan.facts.code_hash);
        let map_start = self.cache.map.extend(&map.entries);
        let first_exit = self.cache.exits.extend(exits.as_slice());
        let fragment = Fragment {
            cache_size: (end - emitted.entry) as u32,
            code_version,
            first_exit: exits.first(),
            n_exits: exits.as_slice().len() as u8,
            map_start: map_start.unwrap_or(0) as u32,
            map_length: map.entries.len() as u16,
            ..describe(block, plan, emitted)
        };
        if map_start.is_none() || first_exit.is_none() || self.cache.fragments.push(fragment).is_none() {
            return Err(RseqFailure::OutOfMemory);
        }
        Ok(())
    }
}

/// What is to be known of a fragment by its plan, and by where its code went.
fn describe(block: &Block, plan: &RseqPlan, emitted: &RseqEmitted) -> Fragment {
    let facts = &plan.facts;
    Fragment {
        app_pc: block.pc,
        cache_start: emitted.entry,
        plain_entry: emitted.entry,
        inner_offset: (emitted.inner - emitted.entry) as u16,
        exit_offset: emitted.exit_offset as u32,
        app_size: block.size_bytes() as u16,
        n_instructions: block.count() as u16,
        last_offset: (block.last_pc() - block.pc) as u16,
        exit_kind: facts.kind,
        count_before: plan.count_before,
        counter: facts.counters.main,
        is_included: facts.counters.is_counted(),
        // Never laid out anew: it lies with the rest of its critical section.
        counts_heat: true,
        is_hot: true,
        code_hash: facts.code_hash,
        hashed_size: facts.hashed_size,
        ..Fragment::BLANK
    }
}
