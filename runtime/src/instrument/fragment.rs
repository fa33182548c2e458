//! From a decoded block to a fragment in the cache, and its record.

use super::alignment::{BRANCH_BYTES, WORD_BYTES};
use super::branch_ways::BranchPlan;
use super::counting::{
    are_flags_dead_at_start, emit_count, emit_rewrite, is_taken_straight, may_stand_before, CountPlace,
};
use super::exits::{interrupt_words, ExitList};
use super::instruction_map::MapBuilder;
use super::leaders::is_way;
use super::region_code::emit_question;
use super::staleness::emit_check;
use super::verification::emit_verified_entry;
use super::way_out::WayOut;
use super::{Arrival, BuildError, Engine};
use crate::arch::x86_64::displacements::gs_heat;
use crate::arch::x86_64::INDEX;
use crate::buffer::RingWriter;
use crate::cache::fragment::{Entry, ExitType, Fragment, Habit, SpillState, COUNTED_AT_EXITS, NONE};
use crate::cache::Unit;
use crate::decode::{decode_block, flags, scratch, Block, Ending};
use crate::protocol::{error_code, exit_kind};
use crate::sys::calls::rdtsc;

impl Engine {
    /// Translates the block at `pc`.
    pub fn build(&mut self, writer: &RingWriter, pc: u64) -> Result<u32, BuildError> {
        let mut block = core::mem::take(&mut self.block);
        let result = match decode_block(&mut block, &self.ranges, pc) {
            Ok(_) if block.meets_breakpoint => Err(BuildError::Breakpoint),
            Ok(ending) => {
                if block.is_writable {
                    self.drop_overwritten(writer, &block);
                }
                self.build_around_sequences(writer, &mut block, ending)
            }
            Err(reason) => Err(BuildError::NoCode(reason)),
        };
        self.block = block;
        result
    }

    /// Translates a decoded block.
    pub fn build_block(&mut self, writer: &RingWriter, block: &mut Block, ending: Ending) -> Result<u32, BuildError> {
        let Some(mut room) = self.cache.slabs.room_near(block.pc) else {
            self.shared.report_error(error_code::NO_SLAB, [block.pc, 0, 0, 0]);
            return Err(BuildError::OutOfMemory);
        };
        let id = self.cache.fragments.len() as u32;
        let (code_hash, hashed_size) = (hash(&block.code), block.size_bytes() as u16);
        // Behind the hash, which says whether the code is the same.
        let ending = self.cut_at_stops(block, ending);
        let before = if self.builds_alone { None } else { self.find_hot(writer, block.pc, code_hash) };
        let is_hot = before.is_some();
        let habit = before.map(|before| before.habit);
        let whole = ending;
        let ending = if is_hot { self.leave_call_to_others(block, ending) } else { ending };
        let is_cut = ending != whole;
        let block = &*block;
        let kind = kind_of(ending, self.has_rtm);
        let is_taken_straight = is_taken_straight(block, habit);
        let leads_back = is_taken_straight.is_some_and(|is_taken| self.leads_back(block, ending, is_taken, is_hot));
        let mut counters = self.plan_counters(block, ending, kind);
        if is_hot {
            self.plan_misses(block, ending, is_cut, &mut counters);
        }
        let leader = before.map_or(NONE, |before| self.find_leader(block, ending, &before, &counters));
        let is_led = leader != NONE;
        counters.is_led = is_led;
        let n_copied = match ending {
            Ending::Limit | Ending::Fault => block.instructions.len(),
            Ending::TransactionBegin(_) if !self.has_rtm => block.instructions.len(),
            _ => block.instructions.len() - 1,
        };
        let counts_in_body = counters.main != NONE && !matches!(kind, exit_kind::CONDITIONAL | exit_kind::NONE);
        let are_dead_at_end = self.are_flags_dead_after(block, ending);
        let in_block = self.plan_in_block(block, ending, is_taken_straight, leads_back, habit, &counters);
        let place = match in_block {
            _ if is_led => None,
            Some((place, _)) => place,
            None => counts_in_body.then(|| CountPlace::find(block, n_copied, are_dead_at_end)),
        };
        let body_counter = in_block.map_or(counters.main, |(_, is_taken)| counters.count_both(is_taken));
        let in_loop = before.and_then(|before| {
            let counter = if place.is_some() { body_counter } else { NONE };
            self.plan_loop(id, block, ending, &before, leader, counter)
        });
        let is_kept = in_loop.is_some_and(|one| one.is_kept);
        let kept_cell = in_loop.map_or(NONE, |one| one.cell);
        let place = if is_kept { place.map(|place| place.kept_in(INDEX)) } else { place };
        let is_lending = is_kept || is_hot && self.lends(block, ending);
        let path = self.plan_path(block, ending, n_copied, are_dead_at_end, kept_cell);
        let path_place = path.and_then(|path| Some((path.place?, path.cell)));
        let branch = BranchPlan {
            is_taken_straight,
            leads_back,
            is_taken_counted: in_block.map(|(_, is_taken)| is_taken),
            path,
        };
        let is_indirect_target = before.is_some_and(|before| before.is_indirect_target);
        let is_called = self.arrival == Arrival::Call || before.is_some_and(|before| before.is_called);
        let has_other_entry = is_lending && (is_called || is_indirect_target && !self.is_counting());
        if is_hot && !has_other_entry {
            let places = [place, path.and_then(|path| path.place)];
            room.leave_out(self.loop_padding(room.hot, block, ending, &branch, places));
        }
        let in_loop = in_loop.filter(|one| one.is_kept || !has_other_entry);
        // SAFETY: nothing uses the room yet; the lock is held.
        let mut emitter = unsafe { room.emitter() };
        let start = room.hot;
        let mut exits = ExitList::new(self.cache.exits.len(), self.cache.keeps_shadow);
        let mut map = MapBuilder::new(block, is_lending);
        let (mut plain_entry, mut lending_entry, mut call_entry, mut verified_entry) = (start, 0, 0, 0);
        let mut counted_entry = 0;
        if is_lending {
            exits.entry = Entry::Lending;
            if is_called {
                call_entry = emitter.address();
                map.mark(emitter.position(), 0, SpillState::None);
                emitter.enter_by_call(self.cache.keeps_shadow);
            } else if is_indirect_target && !self.is_counting() {
                verified_entry = emit_verified_entry(&mut emitter, &mut exits, self.question, block.pc);
            }
            lending_entry = emitter.address();
            map.mark(emitter.position(), 0, SpillState::None);
            emitter.set_cold(true);
            plain_entry = emitter.address();
            emitter.lend();
            if is_led || in_loop.is_some() {
                counted_entry = emitter.address();
            }
            if is_led {
                emit_count(&mut emitter, body_counter, are_flags_dead_at_start(block, are_dead_at_end), true);
            }
            match in_loop {
                Some(one) if is_kept => one.emit_entry(&mut emitter),
                Some(one) => emit_rewrite(&mut emitter, one.counter, true),
                None => {}
            }
            emitter.jump_to(lending_entry);
            emitter.set_cold(false);
        } else if is_led {
            emitter.set_cold(true);
            plain_entry = emitter.address();
            emit_count(&mut emitter, body_counter, are_flags_dead_at_start(block, are_dead_at_end), false);
            emitter.jump_to(start);
            emitter.set_cold(false);
        } else if let Some(one) = in_loop {
            emitter.set_cold(true);
            plain_entry = emitter.address();
            emit_rewrite(&mut emitter, one.counter, false);
            emitter.jump_to(start);
            emitter.set_cold(false);
        }
        if block.is_writable {
            let stale = exits.add_stub_only(ExitType::Stale, block.pc);
            let hot = self.counts_trust().then(|| (gs_heat(id), exits.add_stub_only(ExitType::Relayout, block.pc)));
            let failed = emit_check(&mut emitter, block, stale, hot);
            // A fault in front of the first entry is the comparison's, and goes on at that entry (signal/faults.rs).
            map.mark(failed, 0, SpillState::None);
        }
        let (region_block, region_before) = self.number_block(block.pc, code_hash, counters.is_counted());
        let counts_heat = !is_hot && !self.builds_alone && self.counts_heat(block, ending, are_dead_at_end);
        if counts_heat {
            map.mark(emitter.position(), 0, SpillState::None);
            exits.emit_heat(&mut emitter, id, block.pc);
        }
        let heat_bytes = if counts_heat { emitter.address() - start } else { 0 } as u8;
        let mut behind_question = 0;
        if region_block != NONE {
            map.mark(emitter.position(), 0, SpillState::None);
            let exit = exits.add_stub_only(ExitType::Region, block.pc);
            if !emit_question(&mut emitter, block, region_block, exit, is_lending) {
                return Err(BuildError::OutOfMemory);
            }
            behind_question = if block.is_writable { 0 } else { emitter.address() };
        }
        // The branch and what sets flags for it become one operation if nothing stands between.
        let is_at_end = |place: Option<CountPlace>| place.is_some_and(|place| place.before == n_copied);
        let is_followed_by_branch = branch.linked_way(&counters).is_some()
            && !is_at_end(place)
            && !is_at_end(path.and_then(|path| path.place))
            && may_stand_before(block, n_copied.saturating_sub(1));
        let mut is_unsupported = ending == Ending::Unsupported;
        let mut n_done = n_copied;
        for index in 0..n_copied {
            if let Some(place) = place.filter(|place| place.before == index) {
                place.emit(&mut emitter, body_counter, is_lending);
            }
            if let Some((place, cell)) = path_place.filter(|(place, _)| place.before == index) {
                place.emit(&mut emitter, cell, is_lending);
            }
            let instruction = &block.instructions[index];
            if index + 1 == n_copied && is_followed_by_branch {
                emitter.align(WORD_BYTES, instruction.len() as u64 + BRANCH_BYTES);
            }
            let app_offset = instruction.ip() - block.pc;
            map.mark(emitter.position(), app_offset, SpillState::None);
            let Some(mangler) = self.mangler.as_mut() else {
                return Err(BuildError::OutOfMemory);
            };
            mangler.is_lending = is_lending;
            let offsets = &block.offsets[index];
            let mut mark = |position: usize, state: SpillState| map.mark(position, app_offset, state);
            if mangler.emit(&mut emitter, instruction, block.bytes_of(index), offsets, &mut mark).is_err() {
                is_unsupported = true;
                n_done = index;
                break;
            }
        }
        let last = block.instructions.get(n_done).or(block.instructions.last());
        let last_offset = last.map_or(0, |instruction| instruction.ip() - block.pc);
        if let Some(place) = place.filter(|place| place.before == n_copied && !is_unsupported) {
            place.emit(&mut emitter, body_counter, is_lending);
        }
        if let Some((place, cell)) = path_place.filter(|(place, _)| place.before == n_copied && !is_unsupported) {
            place.emit(&mut emitter, cell, is_lending);
        }
        let exit_offset = emitter.position();
        let has_exit_instruction = n_done < block.instructions.len();
        let end_offset = if has_exit_instruction { last_offset } else { block.size_bytes() };
        map.mark(emitter.position(), end_offset, SpillState::None);

        let mut builder = WayOut {
            engine: self,
            block,
            emitter: &mut emitter,
            exits: &mut exits,
            map: &mut map,
            counters: &counters,
            branch,
            interrupt_at: None,
            is_broken: false,
            site: NONE,
            first_try: NONE,
            fragment: id,
            kept_cell,
            is_lending,
            is_hot,
        };
        if is_unsupported {
            builder.release(last_offset);
        } else {
            builder.emit(ending);
        }
        let (interrupt_at, is_broken) = (builder.interrupt_at, builder.is_broken);
        let (site, first_try) = (builder.site, builder.first_try);
        let interrupt_exit = exits.as_slice().iter().position(|exit| exit.kind == ExitType::Interrupted);
        exits.emit_stubs(&mut emitter);
        if is_broken || emitter.overflowed() || emitter.position() > u16::MAX as usize {
            self.shared.report_error(error_code::NO_SLAB, [block.pc, 1, 0, 0]);
            return Err(BuildError::OutOfMemory);
        }
        for exit in exits.as_mut_slice() {
            exit.fragment = id;
            if is_way(exit.kind) {
                exit.misses = counters.misses(exit.kind == ExitType::NotTaken);
            }
        }
        let size = emitter.position() as u64;
        let is_included = counters.is_counted();
        let (interrupt_original, interrupt_patch) = match interrupt_exit.zip(interrupt_at) {
            Some((index, position)) => interrupt_words(start + position as u64, exits.as_slice()[index].stub),
            None => (0, 0),
        };
        let code_version = self.version_of(block.pc, code_hash);
        let map_start = self.cache.map.extend(&map.entries);
        let first_exit = self.cache.exits.extend(exits.as_slice());
        let fragment = Fragment {
            app_pc: block.pc,
            cache_start: start,
            plain_entry,
            lending_entry,
            call_entry,
            verified_entry,
            cache_size: size as u32,
            exit_offset: exit_offset as u32,
            app_size: block.size_bytes() as u16,
            n_instructions: block.instructions.len() as u16,
            last_offset: last_offset as u16,
            exit_kind: kind,
            is_valid: !self.builds_alone,
            count_before: if is_led { 0 } else { place.map_or(COUNTED_AT_EXITS, |place| place.before as u16) },
            decides_before: path_place.map_or(COUNTED_AT_EXITS, |(place, _)| place.before as u16),
            code_version,
            changes_needed: 0,
            counter: body_counter,
            first_exit: first_exit.unwrap_or(0) as u32,
            n_exits: exits.as_slice().len() as u8,
            is_included,
            map_start: map_start.unwrap_or(0) as u32,
            map_length: map.entries.len() as u16,
            interrupt_offset: interrupt_at.map_or(NONE, |position| position as u32),
            interrupt_original,
            interrupt_patch,
            incoming: NONE,
            next_in_page: NONE,
            site,
            dropped_bytes: if let Ending::Return(dropped) = ending { dropped } else { 0 },
            takes_symbol: kind == exit_kind::RETURN && self.records_path() && self.strays(block.pc + last_offset),
            first_try,
            first_pad: NONE,
            n_tries: 0,
            is_compared: block.is_writable,
            is_hot,
            counts_heat,
            heat_bytes,
            heated_at: rdtsc(),
            n_looks: 0,
            habit: habit.unwrap_or(Habit::UNKNOWN),
            inner_offset: 0,
            behind_question,
            region_block,
            region_before,
            newest_pad: NONE,
            is_lending,
            leader,
            rank: self.rank_behind(leader, before.as_ref()),
            led_entries: [0; 2],
            counted_entry,
            loop_head: in_loop.map_or(NONE, |one| one.head),
            keeps_counter: is_kept,
            kept_cell,
            main_sources: [NONE; 2],
            is_indirect_target,
            is_called,
            code_hash,
            hashed_size,
        };
        if map_start.is_none() || first_exit.is_none() || self.cache.fragments.push(fragment).is_none() {
            self.shared.report_error(error_code::OUT_OF_MEMORY, [1, 0, 0, 0]);
            return Err(BuildError::OutOfMemory);
        }
        self.region_blocks.note(region_block, id);
        let cold_size = emitter.cold_position() as u64;
        self.cache.slabs.commit(room, size, cold_size, Unit::Fragment(id));
        if verified_entry != 0 {
            self.cache.link(fragment.first_exit, id);
        }
        self.publish(writer, block, id, kind, ending, &counters);
        if is_led {
            self.lead(writer, leader, id);
        }
        Ok(id)
    }

    /// Whether r10 and r11 are to be lent in a hot block.
    fn lends(&self, block: &Block, ending: Ending) -> bool {
        let is_plain_way = !matches!(
            ending,
            Ending::Syscall
                | Ending::TransactionBegin(_)
                | Ending::Fault
                | Ending::Native
                | Ending::NativeBranch(_)
                | Ending::Unsupported
        );
        is_plain_way
            && !block.is_writable
            && !block.instructions.iter().any(scratch::names_lent_register)
            && scratch::lends_at(&self.ranges, block.pc)
    }

    /// Whether the flags of `inc` are dead once the block's last copied instruction is done.
    fn are_flags_dead_after(&self, block: &Block, ending: Ending) -> bool {
        match ending {
            Ending::Jump(target) | Ending::Call(target) => flags::dead_at(&self.ranges, block.pc, target),
            Ending::Limit => flags::dead_at(&self.ranges, block.pc, block.end()),
            _ => false,
        }
    }
}

/// FNV-1a.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The exit kind of the record.
pub fn kind_of(ending: Ending, has_rtm: bool) -> u8 {
    match ending {
        Ending::Limit | Ending::Native => exit_kind::FALL_THROUGH,
        Ending::Jump(_) => exit_kind::JUMP,
        Ending::Conditional(_) => exit_kind::CONDITIONAL,
        Ending::Call(_) => exit_kind::CALL,
        Ending::IndirectJump => exit_kind::INDIRECT_JUMP,
        Ending::NativeBranch(kind) => kind,
        Ending::IndirectCall => exit_kind::INDIRECT_CALL,
        Ending::Return(_) => exit_kind::RETURN,
        Ending::Syscall => exit_kind::SYSCALL,
        Ending::TransactionBegin(_) if has_rtm => exit_kind::JUMP,
        Ending::TransactionBegin(_) | Ending::Fault | Ending::Unsupported => exit_kind::NONE,
    }
}
