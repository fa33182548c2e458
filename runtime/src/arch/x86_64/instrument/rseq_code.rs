//! The copy of a restartable sequence's code, which the kernel may abort between any two instructions.
//!
//! An abort leaves no trace of where it came. So what is emitted here keeps to these rules:
//! - A register that is in a slot is named in `rseq.undo` from before it changes until after it is back.
//! - Flags do not change but by the program's instructions.
//! - `rseq.state` names the fragment that was entered last, or the exit that is being counted; `rseq.count`, what
//!   that exit's counter was, `rseq.path` what the thread's path was. What is aborted counts as stopped at its
//!   fragment's start.
//! - A thread comes in through an entry, which puts the shadow in the place of the program's descriptor, or finds it there.
//! - Behind the last instruction nothing is covered.

extern crate alloc;
use crate::buffer::RingWriter;
use crate::cache::exit::ExitType;
use crate::cache::fragment::{Fragment, COUNTED_AT_EXITS};
use crate::cache::rseq::Enclosure;
use crate::context::addresses::CachePc;
use crate::context::numbers::{ExitId, FragmentId};
use crate::cpu::displacements::{GS_RSEQ_STATE, GS_RSEQ_WORD};
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::rseq_ways::{emit_count, emit_note_left, spill, unspill, WaysOut};
use crate::cpu::spill::SpillState;
use crate::cpu::translate::Spare;
use crate::cpu::{RAX, RCX};
use crate::decode::{Block, Ending};
use crate::instrument::counts::counters::Counters;
use crate::instrument::exits::ExitList;
use crate::instrument::instruction_map::MapBuilder;
use crate::instrument::kinds::{hash, kind_of};
use crate::instrument::request::Request;
use crate::instrument::{BuildError, Engine};
use crate::protocol::error_code;

/// Why there is no copy.
enum Failure {
    Full,
    /// An instruction that can't be there.
    Impossible,
    OutOfMemory,
}

/// A fragment under construction in its enclosure.
struct Place<'a> {
    /// Where it is entered: the map counts from there.
    entry: CachePc,
    enclosure: Enclosure,
    counters: Counters,
    exits: &'a mut ExitList,
    map: &'a mut MapBuilder,
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
            match self.build_in_enclosure(writer, &request, block, ending, index, is_last) {
                Ok(id) => return Ok(id),
                Err(Failure::Full) => self.renew_enclosure(writer, index),
                Err(Failure::Impossible) => self.give_up_rseq(writer, index),
                Err(Failure::OutOfMemory) => {
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
        request: &Request,
        block: &Block,
        ending: Ending,
        index: u32,
        is_last: bool,
    ) -> Result<FragmentId, Failure> {
        let enclosure = *self.cache.rseqs.enclosure(index);
        if is_last && enclosure.has_last {
            return Err(Failure::Full);
        }
        // SAFETY: the lock is held.
        let mut emitter = unsafe { enclosure.emitter() }.ok_or(Failure::Full)?;
        let id = self.cache.next_fragment();
        let kind = kind_of(ending, self.features.has_transactions);
        let code_hash = hash(&block.code);
        self.find_hot(writer, block.pc, code_hash);
        let counters = self.plan_counters(request, block, ending, kind);
        let mut exits = ExitList::new(self.cache.next_exit(), self.cache.keeps_shadow);
        let mut map = MapBuilder::new(block, false);

        let other = exits.add_stub_only(ExitType::RseqEntry, block.pc);
        let (entry, inner, ahead) = emit_start(&mut emitter, &enclosure, id, other);
        map.mark(0, 0, SpillState::None);

        let n_copied = block.instructions.len() - usize::from(ending != Ending::Limit);
        let n_here = if is_last { 0 } else { n_copied };
        self.copy(&mut emitter, &mut map, ahead, block, n_here)?;
        let exit_offset = (emitter.address() - entry) as u32;
        let mut place = Place { entry, enclosure, counters, exits: &mut exits, map: &mut map };
        if is_last {
            self.emit_last(block, n_copied, &mut emitter, &mut place)?;
        } else {
            self.emit_ways_out(block, ending, n_copied, &mut emitter, &mut place)?;
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
        let fragment = Fragment {
            cache_start: entry,
            plain_entry: entry,
            cache_size: (emitter.address() - entry) as u32,
            exit_offset,
            exit_kind: kind,
            count_before: if is_last { 0 } else { COUNTED_AT_EXITS },
            code_version,
            first_exit: exits.first(),
            n_exits: exits.as_slice().len() as u8,
            map_start: map_start.unwrap_or(0) as u32,
            map_length: map.entries.len() as u16,
            inner_offset: (inner - entry) as u16,
            code_hash,
            ..describe(block, &counters)
        };
        let is_kept = map_start.is_some() && first_exit.is_some() && self.cache.fragments.push(fragment).is_some();
        let rseqs = &mut self.cache.rseqs;
        if !is_kept
            || !rseqs.commit(index, id, emitter.address(), false)
            || is_last && !rseqs.commit(index, id, CachePc::NOWHERE, true)
        {
            return Err(Failure::OutOfMemory);
        }
        self.publish(writer, block, id, kind, ending, &counters);
        Ok(id)
    }

    /// Emits the critical section's last instruction, which has a place of its own: it ends where the kernel watches no more.
    fn emit_last(&mut self, block: &Block, n: usize, emitter: &mut Emitter, place: &mut Place) -> Result<(), Failure> {
        let counter = place.counters.main;
        emit_count(emitter, place.exits.next_id(), counter);
        emitter.jump_to(place.enclosure.last_start(block.code.len()));
        // SAFETY: the lock is held, and there is no last instruction yet.
        let mut last = unsafe { place.enclosure.last_emitter(block.code.len()) };
        let ahead = (last.address() - place.entry) as usize;
        self.copy(&mut last, place.map, ahead, block, n)?;
        if last.address() != place.enclosure.covered_end {
            return Err(Failure::Impossible);
        }
        place.map.mark((last.address() - place.entry) as usize, block.size_bytes(), SpillState::None);
        place.exits.emit_jump(&mut last, ExitType::FallThrough, block.end(), counter);
        place.exits.emit_stubs_here(&mut last, |_, _| {});
        if last.overflowed() {
            return Err(Failure::Impossible);
        }
        Ok(())
    }

    /// Emits the ways out of a block that is not the critical section's last one.
    fn emit_ways_out(
        &mut self,
        block: &Block,
        ending: Ending,
        n_copied: usize,
        emitter: &mut Emitter,
        place: &mut Place,
    ) -> Result<(), Failure> {
        let end_offset = match ending {
            Ending::Limit => block.size_bytes(),
            _ => block.pc_of(n_copied) - block.pc,
        };
        place.map.mark((emitter.address() - place.entry) as usize, end_offset, SpillState::None);
        let path = self.path_facts(block, ending);
        let (exits, enclosure) = (&mut *place.exits, &place.enclosure);
        let mut ways = WaysOut { engine: self, emitter, exits, enclosure, path, is_broken: false };
        ways.emit(block, ending, &place.counters);
        if ways.is_broken {
            return Err(Failure::Impossible);
        }
        place.exits.emit_stubs_here(emitter, |emitter, exit| {
            if exit.is_inside {
                emit_note_left(emitter);
            }
        });
        Ok(())
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
        let mut is_done = true;
        for (index, instruction) in block.instructions[..n].iter().enumerate() {
            let app_offset = block.pc_of(index) - block.pc;
            map.mark(ahead + emitter.position(), app_offset, SpillState::None);
            let mut mark = |position: usize, state: SpillState| map.mark(ahead + position, app_offset, state);
            let (bytes, offsets) = (block.bytes_of(index), &block.offsets[index]);
            is_done &= mangler.emit(emitter, instruction, bytes, offsets, Spare::Noted, &mut mark).is_ok();
        }
        if is_done {
            Ok(())
        } else {
            Err(Failure::Impossible)
        }
    }
}

/// What is to be known of a block's copy in an enclosure, whatever it became.
fn describe(block: &Block, counters: &Counters) -> Fragment {
    Fragment {
        app_pc: block.pc,
        app_size: block.size_bytes() as u16,
        n_instructions: block.instructions.len() as u16,
        last_offset: (block.last_pc() - block.pc) as u16,
        counter: counters.main,
        is_included: counters.is_counted(),
        // Never laid out anew: it lies with the rest of its critical section.
        counts_heat: true,
        is_hot: true,
        hashed_size: block.size_bytes() as u16,
        ..Fragment::BLANK
    }
}

/// Emits the start of fragment `id`; `other` is the exit of those that have not announced the critical section so. Where it is
/// entered, where it is from inside, and how far behind the first of them the hot section has come: the map counts from there.
fn emit_start(
    emitter: &mut Emitter,
    enclosure: &Enclosure,
    id: FragmentId,
    other: ExitId,
) -> (CachePc, CachePc, usize) {
    emitter.set_cold(true);
    let entry = emitter.address();
    emitter.store_gs_immediate(GS_RSEQ_STATE, id.raw());
    let to_code = emitter.jump();
    emitter.set_cold(false);
    emitter.bind(to_code);
    let ahead = (emitter.address() - entry) as usize;
    emit_entry(emitter, enclosure, other);
    let inner = emitter.address();
    emitter.store_gs_immediate(GS_RSEQ_STATE, id.raw());
    (entry, inner, ahead)
}

/// Emits what makes sure that the thread's rseq_cs holds the shadow, whose code this is; where it holds neither that nor the
/// program's descriptor, the exit `other` is taken.
fn emit_entry(emitter: &mut Emitter, enclosure: &Enclosure, other: ExitId) {
    spill(emitter);
    emitter.load_gs(RCX, GS_RSEQ_WORD);
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
    emitter.load_gs(RCX, GS_RSEQ_WORD);
    emitter.load_immediate(RAX, enclosure.shadow);
    emitter.store_word(RCX, RAX);
    // From here on the kernel watches.
    emitter.bind_short(is_watched);
    unspill(emitter);
}
