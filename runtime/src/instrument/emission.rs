//! A plan becomes code: entries, guards, the block's instructions with what is inserted between them, ways out, stubs.

use super::output::{IndirectWay, Output};
use super::plan::{Guard, Plan};
use super::{BuildError, Engine};
use crate::cache::exit::{Entry, ExitType};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::layout::heat_offset;
use crate::cpu::emit::{Emitter, BRANCH_BYTES, WORD_BYTES};
use crate::cpu::instrument::captures;
use crate::cpu::instrument::counting::{emit_count, emit_rewrite, may_stand_before};
use crate::cpu::instrument::loops::emit_entry;
use crate::cpu::instrument::staleness::emit_check;
use crate::cpu::instrument::tags::emit_question;
use crate::cpu::instrument::terminator::Terminator;
use crate::cpu::instrument::verification::emit_verified_entry;
use crate::cpu::spill::SpillState;
use crate::cpu::translate::{Added, Mangler, Spare};
use crate::decode::{Block, Ending};
use crate::protocol::error_code;

/// Where a fragment can be entered: addresses, 0 where it can't (see `cache::Fragment`).
#[derive(Clone, Copy, Default)]
pub struct Entries {
    pub plain: CachePc,
    pub lending: CachePc,
    pub call: CachePc,
    pub verified: CachePc,
    pub counted: CachePc,
}

/// What the emitted code is made of.
pub struct Emitted {
    pub start: CachePc,
    pub entries: Entries,
    /// Bytes of what counts its heat.
    pub heat_bytes: u8,
    /// Where it goes on behind the question whether it is tagged, or 0.
    pub behind_question: CachePc,
    /// Where what is captured begins, and where it goes on behind that; or 0.
    pub captures: (CachePc, CachePc),
    pub exit_offset: u64,
    /// Application offset of the last instruction.
    pub last_offset: u64,
    pub indirect: IndirectWay,
}

impl Engine {
    /// Emits a planned block.
    pub fn emit_plan(&mut self, block: &Block, plan: &Plan, out: &mut Output) -> Result<Emitted, BuildError> {
        let start = out.emitter.address();
        let entries = self.emit_entries(block, plan, out);
        let (mut heat_bytes, mut behind_question) = (0, CachePc::NOWHERE);
        let mut captured = (CachePc::NOWHERE, CachePc::NOWHERE);
        for guard in plan.guards.iter().flatten() {
            let before = out.emitter.address();
            self.emit_guard(*guard, block, plan, out)?;
            match guard {
                Guard::Compare { .. } => {}
                Guard::Heat => heat_bytes = (out.emitter.address() - before) as u8,
                Guard::Tag(_) => {
                    behind_question = if block.is_writable { CachePc::NOWHERE } else { out.emitter.address() }
                }
                Guard::Captures => captured = (before, out.emitter.address()),
                Guard::Room => {}
            }
        }
        let n_done = self.emit_instructions(block, plan, out)?;
        let is_unsupported = n_done < plan.facts.n_copied || plan.facts.ending == Ending::Unsupported;
        let last = if n_done < block.count() { block.pc_of(n_done) } else { block.last_pc() };
        let last_offset = last - block.pc;
        let exit_offset = out.emitter.position();
        let has_exit_instruction = n_done < block.count();
        out.map.mark(
            exit_offset,
            if has_exit_instruction { last_offset } else { block.size_bytes() },
            SpillState::None,
        );
        let mut terminator = Terminator::new(self, block, plan, out);
        if is_unsupported {
            terminator.release(last_offset);
        } else {
            terminator.emit(plan.facts.ending);
        }
        let (indirect, is_broken) = (terminator.indirect, terminator.is_broken);
        out.exits.emit_stubs(out.emitter);
        if is_broken || out.emitter.overflowed() || out.emitter.position() > u16::MAX as usize {
            return Err(no_room(self, block.pc));
        }
        let exit_offset = exit_offset as u64;
        Ok(Emitted {
            start,
            entries,
            heat_bytes,
            behind_question,
            captures: captured,
            exit_offset,
            last_offset,
            indirect,
        })
    }

    /// Emits the ways into the code that begin in front of it or elsewhere.
    fn emit_entries(&self, block: &Block, plan: &Plan, out: &mut Output) -> Entries {
        let Output { emitter, exits, map } = out;
        let is_lending = plan.is_lending;
        let mut entries = Entries::default();
        if is_lending {
            exits.entry = Entry::Lending;
            if plan.has_call_entry {
                entries.call = emitter.address();
                map.mark(emitter.position(), 0, SpillState::None);
                emitter.enter_by_call(self.cache.keeps_shadow);
            } else if plan.has_verified_entry {
                entries.verified = emit_verified_entry(emitter, exits, self.features, block.pc);
            }
            entries.lending = emitter.address();
            map.mark(emitter.position(), 0, SpillState::None);
        }
        let code = emitter.address();
        entries.plain = code;
        let is_led = plan.facts.is_led();
        let enters_apart = is_led || plan.in_loop.is_some();
        if !is_lending && !enters_apart {
            return entries;
        }
        emitter.set_cold(true);
        entries.plain = emitter.address();
        if is_lending {
            emitter.lend();
            entries.counted = if enters_apart { emitter.address() } else { CachePc::NOWHERE };
        }
        if is_led {
            emit_count(emitter, plan.body_counter, plan.are_dead_at_start, is_lending);
        }
        match &plan.in_loop {
            Some(one) if one.is_kept => emit_entry(emitter, one.counter, one.cell),
            Some(one) => emit_rewrite(emitter, one.counter, is_lending),
            None => {}
        }
        emitter.jump_to(code);
        emitter.set_cold(false);
        entries
    }

    fn emit_guard(&self, guard: Guard, block: &Block, plan: &Plan, out: &mut Output) -> Result<(), BuildError> {
        let Output { emitter, exits, map } = out;
        match guard {
            Guard::Compare { counts_trust } => {
                let stale = exits.add_stub_only(ExitType::Stale, block.pc);
                let mut hot = || (heat_offset(plan.facts.id), exits.add_stub_only(ExitType::Relayout, block.pc));
                let hot = counts_trust.then(&mut hot);
                let failed = emit_check(emitter, block, stale, hot);
                // A fault in front of the first entry is the comparison's, and goes on at that entry (cpu::signal::faults).
                map.mark(failed, 0, SpillState::None);
            }
            Guard::Heat => {
                map.mark(emitter.position(), 0, SpillState::None);
                exits.emit_heat(emitter, plan.facts.id, block.pc);
            }
            Guard::Tag(number) => {
                map.mark(emitter.position(), 0, SpillState::None);
                let exit = exits.add_stub_only(ExitType::Region, block.pc);
                if !emit_question(emitter, block, number, exit, plan.is_lending) {
                    return Err(BuildError::OutOfMemory);
                }
            }
            Guard::Captures => {
                map.mark(emitter.position(), 0, SpillState::None);
                let exit = exits.add_stub_only(ExitType::Capture, block.pc);
                if let Some(place) = self.captures.at(block.pc) {
                    captures::emit(emitter, place, block.pc, exit, self.shared.outlets());
                }
            }
            Guard::Room => {
                map.mark(emitter.position(), 0, SpillState::None);
                let exit = exits.add_stub_only(ExitType::Room, block.pc);
                emitter.emit_room_question(exit);
            }
        }
        Ok(())
    }

    /// Emits the block's instructions, but for what is left to the way out, with what is inserted. Returns how many: one that can't be
    /// translated ends them.
    fn emit_instructions(&mut self, block: &Block, plan: &Plan, out: &mut Output) -> Result<usize, BuildError> {
        let Output { emitter, map, .. } = out;
        let n_copied = plan.facts.n_copied;
        let spare = if plan.is_lending { Spare::Lent } else { Spare::Spilled };
        // The branch and what sets flags for it become one operation if nothing stands between.
        let is_followed_by_branch = plan.branch.linked_way(&plan.counters).is_some()
            && !plan.insertions.has(n_copied)
            && may_stand_before(block, n_copied.saturating_sub(1));
        let Some(mangler) = self.mangler.as_mut() else {
            return Err(BuildError::OutOfMemory);
        };
        for index in 0..n_copied {
            plan.insertions.emit(index, emitter, plan.is_lending);
            if index + 1 == n_copied && is_followed_by_branch {
                emitter.align(WORD_BYTES, block.bytes_of(index).len() as u64 + BRANCH_BYTES);
            }
            let app_offset = block.pc_of(index) - block.pc;
            map.mark(emitter.position(), app_offset, SpillState::None);
            let mut mark = |position: usize, state: SpillState| map.mark(position, app_offset, state);
            let change = plan.facts.changes.as_ref().and_then(|changes| changes.at(block.pc_of(index)));
            let added = change.map_or((&[][..], &[][..]), |change| (&change.before, &change.after));
            emit_added(mangler, emitter, added.0, &mut mark);
            let is_dropped = change.is_some_and(|change| change.is_dropped);
            let is_told = plan.facts.tells_accesses && !is_dropped;
            if is_told {
                mangler.tell_before(emitter, block, index);
            }
            if !is_dropped && mangler.emit_of(emitter, block, index, spare, &mut mark).is_err() {
                return Ok(index);
            }
            if is_told {
                mangler.tell_behind(emitter, block, index, &mut mark);
            }
            emit_added(mangler, emitter, added.1, &mut mark);
        }
        if plan.facts.ending != Ending::Unsupported {
            plan.insertions.emit(n_copied, emitter, plan.is_lending);
        }
        let last = (n_copied < block.count()).then(|| block.pc_of(n_copied));
        let change = last.and_then(|pc| plan.facts.changes.as_ref()?.at(pc));
        if let (Some(pc), Some(change)) = (last, change) {
            map.mark(emitter.position(), pc - block.pc, SpillState::None);
            let mut mark = |position: usize, state: SpillState| map.mark(position, pc - block.pc, state);
            emit_added(mangler, emitter, &change.before, &mut mark);
        }
        if let Some(pc) = last.filter(|_| plan.facts.tells_accesses) {
            map.mark(emitter.position(), pc - block.pc, SpillState::None);
            let mut mark = |position: usize, state: SpillState| map.mark(position, pc - block.pc, state);
            mangler.tell_ahead(emitter, block, &mut mark);
        }
        Ok(n_copied)
    }
}

/// Emits what is added to a block; registers are lent by none that anything is added to.
fn emit_added(mangler: &mut Mangler, emitter: &mut Emitter, added: &[Added], mark: &mut dyn FnMut(usize, SpillState)) {
    for one in added {
        one.emit(mangler, emitter, mark);
    }
}

/// The fragment does not fit where there is room.
fn no_room(engine: &Engine, pc: AppPc) -> BuildError {
    engine.shared.report_error(error_code::NO_SLAB, [pc.raw(), 1, 0, 0]);
    BuildError::OutOfMemory
}
