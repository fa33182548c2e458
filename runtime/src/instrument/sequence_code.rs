//! The copy of a restartable sequence's code, which the kernel may abort between any two instructions.
//!
//! An abort leaves no trace of where it came. So what is emitted here keeps to these rules:
//! - A register that is in a slot is named in `sequence_undo` from before it changes until after it is back.
//! - Flags do not change but by the program's instructions.
//! - `sequence_state` names the fragment that was entered last, or the exit that is being counted; `sequence_count`, what
//!   that exit's counter was. What is aborted counts as stopped at its fragment's start.
//! - A thread comes in through an entry, which puts the shadow in the place of the program's descriptor, or finds it there.
//! - Behind the last instruction nothing is covered.

extern crate alloc;
use super::exits::ExitList;
use super::fragment::{hash, kind_of, Counters, MapBuilder};
use super::{BuildError, Engine};
use crate::arch::x86_64::context::{
    gs_counter, GS_SEQUENCE_COUNT, GS_SEQUENCE_LEFT, GS_SEQUENCE_STATE, GS_SEQUENCE_UNDO, GS_SEQUENCE_WORD,
    GS_SPILL_INDEX, GS_SPILL_RAX, GS_SPILL_RCX, SEQUENCE_LEAVING, UNDO_INDEX, UNDO_RCX_RAX,
};
use crate::arch::x86_64::emit::Emitter;
use crate::arch::x86_64::{INDEX, RAX, RCX};
use crate::buffer::RingWriter;
use crate::cache::fragment::{ExitType, Fragment, Habit, SpillState, COUNTED_AT_EXITS, NONE};
use crate::cache::sequences::Enclosure;
use crate::decode::{Block, Ending};
use crate::protocol::error_code;
use iced_x86::ConditionCode;

/// Why there is no copy.
enum Failure {
    Full,
    /// An instruction that can't be there.
    Impossible,
    OutOfMemory,
}

/// One of the ways out.
struct Way {
    kind: ExitType,
    target: u64,
    counter: u32,
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
        let mut map =
            MapBuilder { entries: alloc::vec::Vec::with_capacity(block.instructions.len() + 8), is_lending: false };

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
            let way = Way { kind: ExitType::FallThrough, target: block.end(), counter: counters.main };
            emit_count(&mut emitter, exits.next_id(), way.counter);
            emitter.jump_to(enclosure.last_start(block.code.len()));
            // SAFETY: the lock is held, and there is no last instruction yet.
            let mut last = unsafe { enclosure.last_emitter(block.code.len()) };
            let last_ahead = (last.address() - entry) as usize;
            self.copy(&mut last, &mut map, last_ahead, block, n_copied)?;
            if last.address() != enclosure.covered_end {
                return Err(Failure::Impossible);
            }
            map.mark((last.address() - entry) as usize, block.size_bytes(), SpillState::None);
            exits.emit_jump(&mut last, way.kind, way.target, way.counter);
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
            self.emit_ways_out(&mut emitter, &mut exits, &enclosure, block, ending, &counters);
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
            is_included: counters.is_included(),
            map_start: map_start.unwrap_or(0) as u32,
            map_length: map.entries.len() as u16,
            interrupt_offset: NONE,
            interrupt_original: 0,
            interrupt_patch: 0,
            incoming: NONE,
            next_in_page: NONE,
            site: NONE,
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
            is_indirect_target: false,
            is_called: false,
            code_hash,
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

    fn emit_ways_out(
        &mut self,
        emitter: &mut Emitter,
        exits: &mut ExitList,
        enclosure: &Enclosure,
        block: &Block,
        ending: Ending,
        counters: &Counters,
    ) {
        let next = block.end();
        let straight = |kind, target| Way { kind, target, counter: counters.main };
        let Ending::Conditional(target) = ending else {
            let way = match ending {
                Ending::Jump(target) => straight(ExitType::Jump, target),
                _ => straight(ExitType::FallThrough, next),
            };
            self.emit_way(emitter, exits, enclosure, way);
            return;
        };
        let not_taken = Way { kind: ExitType::NotTaken, target: next, counter: counters.second };
        let index = block.instructions.len() - 1;
        let branch = &block.instructions[index];
        if branch.is_jcc_short() || branch.is_jcc_near() {
            let taken = emitter.jump_condition(branch.condition_code() as u8 - ConditionCode::o as u8);
            self.emit_way(emitter, exits, enclosure, not_taken);
            emitter.bind(taken);
        } else {
            // loop, loope, loopne, jrcxz, jecxz exist with an 8-bit displacement only.
            let bytes = block.bytes_of(index);
            emitter.bytes(&bytes[..bytes.len() - 1]);
            let taken = emitter.address();
            emitter.bytes(&[0]);
            let aside = emitter.jump();
            emitter.bind_short(taken);
            self.emit_way(emitter, exits, enclosure, straight(ExitType::Taken, target));
            emitter.bind(aside);
            self.emit_way(emitter, exits, enclosure, not_taken);
            return;
        }
        self.emit_way(emitter, exits, enclosure, straight(ExitType::Taken, target));
    }

    fn emit_way(&mut self, emitter: &mut Emitter, exits: &mut ExitList, enclosure: &Enclosure, way: Way) {
        emit_count(emitter, exits.next_id(), way.counter);
        let mut is_inside = enclosure.descriptor.contains(way.target);
        if is_inside {
            match self.find_beside_enclosure(way.target) {
                None => {}
                Some(Ending::Call(_) | Ending::IndirectCall) => {
                    // What is called is no part of the sequence: the kernel only clears the word there.
                    emitter.store_gs_immediate(GS_SEQUENCE_LEFT, 0);
                    emitter.store_gs_immediate(GS_SEQUENCE_LEFT + 4, 0);
                    is_inside = false;
                }
                Some(_) => {
                    emit_note_left(emitter);
                    is_inside = false;
                }
            }
        }
        exits.emit_jump(emitter, way.kind, way.target, way.counter);
        if let Some(exit) = exits.as_mut_slice().last_mut() {
            exit.is_inside = is_inside;
        }
    }
}

fn spill(emitter: &mut Emitter) {
    emitter.store_gs(GS_SPILL_RCX, RCX);
    emitter.store_gs(GS_SPILL_RAX, RAX);
    emitter.store_gs_immediate(GS_SEQUENCE_UNDO, UNDO_RCX_RAX);
}

fn unspill(emitter: &mut Emitter) {
    emitter.load_gs(RAX, GS_SPILL_RAX);
    emitter.load_gs(RCX, GS_SPILL_RCX);
    emitter.store_gs_immediate(GS_SEQUENCE_UNDO, 0);
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

/// Emits a note of what rseq_cs holds, for when the thread comes back to the sequence: if that is gone then, the kernel
/// would have aborted it.
fn emit_note_left(emitter: &mut Emitter) {
    spill(emitter);
    emitter.load_gs(RCX, GS_SEQUENCE_WORD);
    emitter.load_word(RCX, RCX);
    emitter.store_gs(GS_SEQUENCE_LEFT, RCX);
    unspill(emitter);
}

/// Emits `counter += 1` for an exit; nothing for `NONE`.
fn emit_count(emitter: &mut Emitter, exit: u32, counter: u32) {
    if counter == NONE {
        return;
    }
    emitter.store_gs(GS_SPILL_INDEX, INDEX);
    emitter.store_gs_immediate(GS_SEQUENCE_UNDO, UNDO_INDEX);
    emitter.load_gs(INDEX, gs_counter(counter));
    emitter.store_gs(GS_SEQUENCE_COUNT, INDEX);
    emitter.store_gs_immediate(GS_SEQUENCE_STATE, exit | SEQUENCE_LEAVING);
    emitter.add_immediate(INDEX, 1);
    emitter.store_gs(gs_counter(counter), INDEX);
    emitter.load_gs(INDEX, GS_SPILL_INDEX);
    emitter.store_gs_immediate(GS_SEQUENCE_UNDO, 0);
}
