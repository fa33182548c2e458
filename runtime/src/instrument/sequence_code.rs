//! The copy of a restartable sequence's code, which the kernel may abort between any two instructions.
//!
//! An abort leaves no trace of where it came. So what is emitted here keeps to these rules:
//! - A register that is in a slot is named in `sequence_undo` from before it changes until after it is back.
//! - Flags do not change but by the program's instructions.
//! - `sequence_state` names the fragment that was entered last, or the exit that is being counted; `sequence_count`, what
//!   that exit's counter was, `sequence_path` what the thread's path was. What is aborted counts as stopped at its
//!   fragment's start.
//! - A thread comes in through an entry, which puts the shadow in the place of the program's descriptor, or finds it there.
//! - Behind the last instruction nothing is covered.

extern crate alloc;
use super::exits::ExitList;
use super::fragment::{hash, kind_of};
use super::instruction_map::MapBuilder;
use super::sequence_ways::{emit_count, emit_note_left, spill, unspill, WaysOut};
use super::{BuildError, Engine};
use crate::arch::x86_64::displacements::{GS_SEQUENCE_STATE, GS_SEQUENCE_WORD};
use crate::arch::x86_64::emit::Emitter;
use crate::arch::x86_64::{RAX, RCX};
use crate::buffer::RingWriter;
use crate::cache::fragment::{ExitType, Fragment, Habit, SpillState, COUNTED_AT_EXITS, NONE};
use crate::cache::sequences::Enclosure;
use crate::decode::{Block, Ending};
use crate::protocol::error_code;

/// Why there is no copy.
enum Failure {
    Full,
    /// An instruction that can't be there.
    Impossible,
    OutOfMemory,
}

impl Engine {
    /// Translates a block of a sequence; `is_last`: its last instruction.
    pub fn build_in_sequence(
        &mut self,
        writer: &RingWriter,
        block: &mut Block,
        ending: Ending,
        is_last: bool,
    ) -> Result<u32, BuildError> {
        while let Some(index) = self.cache.sequences.find(block.pc) {
            match self.build_in_enclosure(writer, block, ending, index, is_last) {
                Ok(id) => return Ok(id),
                Err(Failure::Full) => self.renew_enclosure(writer, index),
                Err(Failure::Impossible) => self.give_up_sequence(writer, index),
                Err(Failure::OutOfMemory) => {
                    self.shared.report_error(error_code::OUT_OF_MEMORY, [4, 0, 0, 0]);
                    return Err(BuildError::OutOfMemory);
                }
            }
        }
        self.build_block(writer, block, ending)
    }

    fn build_in_enclosure(
        &mut self,
        writer: &RingWriter,
        block: &Block,
        ending: Ending,
        index: u32,
        is_last: bool,
    ) -> Result<u32, Failure> {
        let enclosure = *self.cache.sequences.enclosure(index);
        if is_last && enclosure.has_last {
            return Err(Failure::Full);
        }
        // SAFETY: the lock is held.
        let mut emitter = unsafe { enclosure.emitter() }.ok_or(Failure::Full)?;
        let id = self.cache.fragments.len() as u32;
        let kind = kind_of(ending, self.has_rtm);
        let code_hash = hash(&block.code);
        self.find_hot(writer, block.pc, code_hash);
        let counters = self.plan_counters(block, ending, kind);
        let mut exits = ExitList::new(self.cache.exits.len(), self.cache.keeps_shadow);
        let mut map = MapBuilder::new(block, false);

        emitter.set_cold(true);
        let entry = emitter.address();
        emitter.store_gs_immediate(GS_SEQUENCE_STATE, id);
        let to_code = emitter.jump();
        emitter.set_cold(false);
        emitter.bind(to_code);
        // The map counts from the entry.
        let ahead = (emitter.address() - entry) as usize;
        map.mark(0, 0, SpillState::None);
        emit_entry(&mut emitter, &enclosure, exits.add_stub_only(ExitType::SequenceEntry, block.pc));
        let inner = emitter.address();
        emitter.store_gs_immediate(GS_SEQUENCE_STATE, id);

        let n_copied = block.instructions.len() - usize::from(ending != Ending::Limit);
        let n_here = if is_last { 0 } else { n_copied };
        self.copy(&mut emitter, &mut map, ahead, block, n_here)?;
        let exit_offset = (emitter.address() - entry) as u32;
        if is_last {
            emit_count(&mut emitter, exits.next_id(), counters.main);
            emitter.jump_to(enclosure.last_start(block.code.len()));
            // SAFETY: the lock is held, and there is no last instruction yet.
            let mut last = unsafe { enclosure.last_emitter(block.code.len()) };
            let last_ahead = (last.address() - entry) as usize;
            self.copy(&mut last, &mut map, last_ahead, block, n_copied)?;
            if last.address() != enclosure.covered_end {
                return Err(Failure::Impossible);
            }
            map.mark((last.address() - entry) as usize, block.size_bytes(), SpillState::None);
            exits.emit_jump(&mut last, ExitType::FallThrough, block.end(), counters.main);
            exits.emit_stubs_here(&mut last, |_, _| {});
            if last.overflowed() {
                return Err(Failure::Impossible);
            }
        } else {
            let end_offset = match ending {
                Ending::Limit => block.size_bytes(),
                _ => block.instructions[n_copied].ip() - block.pc,
            };
            map.mark(exit_offset as usize, end_offset, SpillState::None);
            let path = self.plan_path(block, ending, n_copied, false, NONE);
            let mut ways = WaysOut {
                engine: self,
                emitter: &mut emitter,
                exits: &mut exits,
                enclosure: &enclosure,
                path,
                is_broken: false,
            };
            ways.emit(block, ending, &counters);
            if ways.is_broken {
                return Err(Failure::Impossible);
            }
            exits.emit_stubs_here(&mut emitter, |emitter, exit| {
                if exit.is_inside {
                    emit_note_left(emitter);
                }
            });
        }
        if emitter.overflowed() {
            return Err(Failure::Full);
        }
        for exit in exits.as_mut_slice() {
            exit.fragment = id;
        }
        let code_version = self.version_of(block.pc, code_hash);
        let map_start = self.cache.map.extend(&map.entries);
        let first_exit = self.cache.exits.extend(exits.as_slice());
        let last_offset = block.instructions.last().map_or(0, |instruction| instruction.ip() - block.pc);
        let fragment = Fragment {
            app_pc: block.pc,
            cache_start: entry,
            plain_entry: entry,
            lending_entry: 0,
            call_entry: 0,
            verified_entry: 0,
            cache_size: (emitter.address() - entry) as u32,
            exit_offset,
            app_size: block.size_bytes() as u16,
            n_instructions: block.instructions.len() as u16,
            last_offset: last_offset as u16,
            exit_kind: kind,
            is_valid: true,
            count_before: if is_last { 0 } else { COUNTED_AT_EXITS },
            decides_before: COUNTED_AT_EXITS,
            code_version,
            changes_needed: 0,
            counter: counters.main,
            first_exit: first_exit.unwrap_or(0) as u32,
            n_exits: exits.as_slice().len() as u8,
            is_included: counters.is_counted(),
            map_start: map_start.unwrap_or(0) as u32,
            map_length: map.entries.len() as u16,
            interrupt_offset: NONE,
            interrupt_original: 0,
            interrupt_patch: 0,
            incoming: NONE,
            next_in_page: NONE,
            site: NONE,
            dropped_bytes: 0,
            takes_symbol: false,
            first_try: NONE,
            first_pad: NONE,
            n_tries: 0,
            is_compared: false,
            heat_bytes: 0,
            heated_at: 0,
            n_looks: 0,
            // Never laid out anew: it lies with the rest of its sequence.
            counts_heat: true,
            is_hot: true,
            habit: Habit::UNKNOWN,
            inner_offset: (inner - entry) as u16,
            behind_question: 0,
            region_block: NONE,
            region_before: NONE,
            newest_pad: NONE,
            is_lending: false,
            leader: NONE,
            rank: 0,
            led_entries: [0; 2],
            counted_entry: 0,
            loop_head: NONE,
            keeps_counter: false,
            kept_cell: NONE,
            main_sources: [NONE; 2],
            is_indirect_target: false,
            is_called: false,
            code_hash,
            hashed_size: block.size_bytes() as u16,
        };
        let is_kept = map_start.is_some() && first_exit.is_some() && self.cache.fragments.push(fragment).is_some();
        let sequences = &mut self.cache.sequences;
        if !is_kept
            || !sequences.commit(index, id, emitter.address(), false)
            || is_last && !sequences.commit(index, id, 0, true)
        {
            return Err(Failure::OutOfMemory);
        }
        self.publish(writer, block, id, kind, ending, &counters);
        Ok(id)
    }

    /// Emits the block's first `n` instructions.
    fn copy(
        &mut self,
        emitter: &mut Emitter,
        map: &mut MapBuilder,
        ahead: usize,
        block: &Block,
        n: usize,
    ) -> Result<(), Failure> {
        let mangler = self.mangler.as_mut().ok_or(Failure::Impossible)?;
        mangler.is_in_sequence = true;
        mangler.is_lending = false;
        let mut is_done = true;
        for (index, instruction) in block.instructions[..n].iter().enumerate() {
            let app_offset = instruction.ip() - block.pc;
            map.mark(ahead + emitter.position(), app_offset, SpillState::None);
            let mut mark = |position: usize, state: SpillState| map.mark(ahead + position, app_offset, state);
            is_done &=
                mangler.emit(emitter, instruction, block.bytes_of(index), &block.offsets[index], &mut mark).is_ok();
        }
        mangler.is_in_sequence = false;
        if is_done {
            Ok(())
        } else {
            Err(Failure::Impossible)
        }
    }
}

/// Emits what makes sure that the thread's rseq_cs holds the shadow, whose code this is; where it holds neither that nor the
/// program's descriptor, the exit `other` is taken.
fn emit_entry(emitter: &mut Emitter, enclosure: &Enclosure, other: u32) {
    spill(emitter);
    emitter.load_gs(RCX, GS_SEQUENCE_WORD);
    emitter.load_word(RCX, RCX);
    let is_empty = emitter.jump_rcx_zero();
    emitter.load_immediate(RAX, enclosure.address.wrapping_neg());
    emitter.add_registers(RCX, RCX, Some(RAX), 1, 0);
    let is_announced = emitter.jump_rcx_zero();
    emitter.load_immediate(RAX, enclosure.address.wrapping_sub(enclosure.shadow));
    emitter.add_registers(RCX, RCX, Some(RAX), 1, 0);
    let is_watched = emitter.jump_rcx_zero();
    emitter.bind_short(is_empty);
    unspill(emitter);
    ExitList::emit_stub_jump(emitter, other);
    emitter.bind_short(is_announced);
    emitter.load_gs(RCX, GS_SEQUENCE_WORD);
    emitter.load_immediate(RAX, enclosure.shadow);
    emitter.store_word(RCX, RAX);
    // From here on the kernel watches.
    emitter.bind_short(is_watched);
    unspill(emitter);
}
