//! From a decoded block to a fragment in the cache, and its record.

use super::counts::leaders::is_way;
use super::emission::Emitted;
use super::exits::ExitList;
use super::instruction_map::MapBuilder;
use super::output::Output;
use super::plan::Plan;
use super::request::Request;
use super::{BuildError, Engine};
use crate::buffer::RingWriter;
use crate::cache::exit::ExitType;
use crate::cache::fragment::{Fragment, Habit, NO_INTERRUPT};
use crate::cache::Unit;
use crate::context::addresses::CachePc;
use crate::context::numbers::FragmentId;
use crate::cpu::patching::interrupt_words;
use crate::cpu::sys::clock::ticks;
use crate::decode::{decode_block, Block, Ending};
use crate::protocol::{error_code, exit_kind};

impl Engine {
    /// Translates the block that is asked for.
    pub fn build(&mut self, writer: &RingWriter, request: Request) -> Result<FragmentId, BuildError> {
        let mut block = core::mem::take(&mut self.block);
        let result = match decode_block(&mut block, &self.ranges, request.pc) {
            Ok(_) if block.meets_breakpoint => Err(BuildError::Breakpoint),
            Ok(ending) => {
                if block.is_writable {
                    self.drop_overwritten(writer, &block);
                }
                self.build_around_rseqs(writer, request, &mut block, ending)
            }
            Err(reason) => Err(BuildError::NoCode(reason)),
        };
        self.block = block;
        result
    }

    /// Translates a decoded block.
    pub fn build_block(
        &mut self,
        writer: &RingWriter,
        request: Request,
        block: &mut Block,
        ending: Ending,
    ) -> Result<FragmentId, BuildError> {
        let Some(mut room) = self.cache.slabs.room_near(block.pc) else {
            self.shared.report_error(error_code::NO_SLAB, [block.pc.raw(), 0, 0, 0]);
            return Err(BuildError::OutOfMemory);
        };
        let facts = self.gather(writer, request, block, ending)?;
        let plan = Plan::of(block, facts);
        if plan.facts.is_hot() && !plan.facts.is_changed() && !plan.has_call_entry && !plan.has_verified_entry {
            room.leave_out(self.loop_padding(room.hot.raw(), block, &plan));
        }
        // SAFETY: nothing uses the room yet; the lock is held.
        let mut emitter = unsafe { room.emitter() };
        let mut exits = ExitList::new(self.cache.next_exit(), self.cache.keeps_shadow);
        let mut map = MapBuilder::new(block, plan.is_lending);
        let mut out = Output { emitter: &mut emitter, exits: &mut exits, map: &mut map };
        let emitted = self.emit_plan(block, &plan, &mut out)?;
        let (size, cold_size) = (emitter.position() as u64, emitter.cold_position() as u64);
        let fragment = self.keep(block, &plan, &emitted, &mut exits, &map, size)?;
        let id = plan.facts.id;
        self.region_blocks.note(plan.facts.region_block, id);
        self.note_captures(block.pc, id, emitted.captures);
        self.cache.slabs.commit(room, size, cold_size, Unit::Fragment(id));
        if emitted.entries.verified != CachePc::NOWHERE {
            self.cache.link(fragment.first_exit, id);
        }
        self.publish(writer, block, id, plan.facts.kind, plan.facts.ending, &plan.counters);
        if plan.facts.is_led() {
            self.lead(writer, plan.facts.leader, id);
        }
        Ok(id)
    }

    /// Keeps what is to be known of emitted code: the fragment, its exits, its instruction map.
    fn keep(
        &mut self,
        block: &Block,
        plan: &Plan,
        emitted: &Emitted,
        exits: &mut ExitList,
        map: &MapBuilder,
        size: u64,
    ) -> Result<Fragment, BuildError> {
        let facts = &plan.facts;
        for exit in exits.as_mut_slice() {
            exit.fragment = facts.id;
            if is_way(exit.kind) {
                exit.misses = plan.counters.misses(exit.kind == ExitType::NotTaken);
            }
        }
        let interrupted = exits.as_slice().iter().find(|exit| exit.kind == ExitType::Interrupted);
        let (interrupt_original, interrupt_patch) = match interrupted.zip(emitted.indirect.interrupt_at) {
            Some((exit, position)) => interrupt_words(emitted.start.raw() + position as u64, exit.stub.raw()),
            None => (0, 0),
        };
        let code_version = self.version_of(block.pc, facts.code_hash);
        let branch = block.pc + emitted.last_offset;
        let map_start = self.cache.map.extend(&map.entries);
        let first_exit = self.cache.exits.extend(exits.as_slice());
        let fragment = Fragment {
            cache_size: size as u32,
            code_version,
            first_exit: exits.first(),
            n_exits: exits.as_slice().len() as u8,
            map_start: map_start.unwrap_or(0) as u32,
            map_length: map.entries.len() as u16,
            interrupt_original,
            interrupt_patch,
            takes_symbol: facts.kind == exit_kind::RETURN && self.takes_symbol(branch),
            ..describe(block, plan, emitted)
        };
        if map_start.is_none() || first_exit.is_none() || self.cache.fragments.push(fragment).is_none() {
            self.shared.report_error(error_code::OUT_OF_MEMORY, [1, 0, 0, 0]);
            return Err(BuildError::OutOfMemory);
        }
        Ok(fragment)
    }
}

/// What is to be known of a fragment by its plan, and by where its code went.
fn describe(block: &Block, plan: &Plan, emitted: &Emitted) -> Fragment {
    let facts = &plan.facts;
    Fragment {
        app_pc: block.pc,
        cache_start: emitted.start,
        plain_entry: emitted.entries.plain,
        lending_entry: emitted.entries.lending,
        call_entry: emitted.entries.call,
        verified_entry: emitted.entries.verified,
        counted_entry: emitted.entries.counted,
        exit_offset: emitted.exit_offset as u32,
        app_size: block.size_bytes() as u16,
        n_instructions: block.count() as u16,
        last_offset: emitted.last_offset as u16,
        exit_kind: facts.kind,
        is_valid: !facts.request.is_once(),
        count_before: plan.count_before,
        decides_before: plan.decides_before,
        counter: plan.body_counter,
        is_included: plan.counters.is_counted(),
        interrupt_offset: emitted.indirect.interrupt_at.map_or(NO_INTERRUPT, |position| position as u32),
        site: emitted.indirect.site,
        dropped_bytes: if let Ending::Return(dropped) = facts.ending { dropped } else { 0 },
        first_try: emitted.indirect.first_try,
        is_compared: block.is_writable,
        is_hot: facts.is_hot(),
        counts_heat: facts.counts_heat,
        heat_bytes: emitted.heat_bytes,
        heated_at: ticks(),
        habit: facts.habit().unwrap_or(Habit::UNKNOWN),
        behind_question: emitted.behind_question,
        region_block: facts.region_block,
        region_before: facts.region_before,
        is_lending: plan.is_lending,
        leader: facts.leader,
        rank: facts.rank,
        loop_head: plan.in_loop.map_or(FragmentId::NONE, |one| one.head),
        keeps_counter: plan.in_loop.is_some_and(|one| one.is_kept),
        kept_cell: plan.kept_cell(),
        is_indirect_target: facts.is_indirect_target,
        is_called: facts.is_called,
        code_hash: facts.code_hash,
        hashed_size: facts.hashed_size,
        ..Fragment::BLANK
    }
}
