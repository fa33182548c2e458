//! Linking exits to fragments, and undoing it.
//!
//! A link is one aligned store over a jump, which other threads see at once or a little later;
//! either way is right, because the stub leads to the same place through the dispatcher.

extern crate alloc;
use super::fragment::NO_INTERRUPT;
use super::slab::Unit;
use super::views::writable;
use super::Cache;
use crate::cache::exit::{Entry, Exit, ExitType, PadId};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::cpu::emit::Emitter;
use crate::cpu::patching;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Signals that threads have taken and not yet delivered. While there are any, no exit is made to lead past the
/// dispatcher: a thread may be on its way out of a fragment that others run, too.
pub static UNDELIVERED: AtomicU32 = AtomicU32::new(0);

/// Makes a linkable branch lead to `target`.
fn set_displacement(patch: CachePc, target: CachePc) {
    // SAFETY: the displacement is the end of an aligned word of the cache, which the runtime may write there.
    unsafe {
        let word = writable(patch.raw() - patching::WORD_OFFSET) as *mut u64;
        patching::set_displacement(word, patch.raw(), target.raw());
    }
}

impl Cache {
    /// Makes an exit lead straight to a fragment. `false` if that needed memory and there was none.
    pub fn link(&mut self, exit_id: ExitId, fragment_id: FragmentId) -> bool {
        let exit = *self.exit(exit_id);
        if exit.linked_to != FragmentId::NONE
            || matches!(
                exit.kind,
                ExitType::Interrupted
                    | ExitType::FirstTry
                    | ExitType::NativeBranch
                    | ExitType::Release
                    | ExitType::Stale
                    | ExitType::Relayout
                    | ExitType::Region
                    | ExitType::RseqEntry
                    | ExitType::RseqAbort
            )
        {
            return true;
        }
        let is_led = exit.follower == fragment_id;
        if exit.follower != FragmentId::NONE && !is_led {
            // What is counted for its follower leads nowhere else.
            return true;
        }
        if !is_led {
            self.exit_mut(exit_id).misses = CounterId::NONE;
        }
        let goes_round = self.fragment(fragment_id).leader == ExitId::NONE && self.are_in_one_loop(&exit, fragment_id);
        let start = match exit.kind {
            ExitType::FloatState | ExitType::Native => Some(exit.stub),
            _ if is_led || goes_round => self.led_entry(fragment_id, exit.entry),
            _ if exit.skips_question => self.entry_behind_question(fragment_id, exit.entry),
            _ => self.entry(fragment_id, exit.entry),
        };
        let inner_offset = if exit.is_inside { self.fragment(fragment_id).inner_offset } else { 0 };
        let Some(start) = start.map(|start| start + u64::from(inner_offset)) else {
            return false;
        };
        let distance = (exit.patch + 4).distance_to(start);
        if distance == i64::from(distance as i32) {
            set_displacement(exit.patch, start);
        } else {
            let is_made = (exit.far_fragment, exit.far_target) == (fragment_id, start);
            let made = if is_made { Some(exit.far_jump) } else { self.make_far_jump(exit.patch, fragment_id, start) };
            let Some(jump) = made else {
                return false;
            };
            let exit = self.exit_mut(exit_id);
            (exit.far_jump, exit.far_target, exit.far_fragment) = (jump, start, fragment_id);
            set_displacement(exit.patch, jump);
        }
        // A signal handler counts itself first and then unlinks; asked after the store, one of both is seen.
        if UNDELIVERED.load(Ordering::SeqCst) != 0 {
            set_displacement(exit.patch, exit.stub);
        }
        let first = self.fragment(fragment_id).incoming;
        let exit = self.exit_mut(exit_id);
        exit.linked_to = fragment_id;
        exit.next_incoming = first;
        let is_call = exit.kind == ExitType::Call;
        let fragment = self.fragment_mut(fragment_id);
        fragment.incoming = exit_id;
        fragment.is_called |= is_call;
        self.n_links += 1;
        true
    }

    /// Whether an exit leaves a fragment of the hot loop that `fragment_id` is in, too, and has what is kept around it at hand: what
    /// writes a surprise loses that.
    pub fn are_in_one_loop(&self, exit: &Exit, fragment_id: FragmentId) -> bool {
        let head = self.fragment(fragment_id).loop_head;
        head != FragmentId::NONE && self.fragment(exit.fragment).loop_head == head && !exit.is_surprise
    }

    /// Where a fragment is entered so, made now if it is not there yet. `None`: that needed memory and there was none.
    fn entry(&mut self, fragment_id: FragmentId, entry: Entry) -> Option<CachePc> {
        let fragment = *self.fragment(fragment_id);
        match entry {
            Entry::Plain => Some(fragment.plain_entry),
            Entry::Lending if fragment.counted_entry != CachePc::NOWHERE => Some(fragment.counted_entry),
            Entry::Lending if fragment.lending_entry != CachePc::NOWHERE => Some(fragment.lending_entry),
            Entry::Lending => {
                let address = self.make_thunk(fragment.app_pc, fragment_id, |emitter| {
                    emitter.take_back_lent();
                    emitter.jump_anywhere(fragment.plain_entry);
                })?;
                self.fragment_mut(fragment_id).lending_entry = address;
                Some(address)
            }
            Entry::Call if fragment.call_entry != CachePc::NOWHERE => Some(fragment.call_entry),
            Entry::Call => {
                let further = self.entry(fragment_id, Entry::Lending)?;
                let keeps_shadow = self.keeps_shadow;
                let address = self.make_thunk(fragment.app_pc, fragment_id, |emitter| {
                    emitter.enter_by_call(keeps_shadow);
                    emitter.jump_anywhere(further);
                })?;
                self.fragment_mut(fragment_id).call_entry = address;
                Some(address)
            }
        }
    }

    /// Where its leaders enter a fragment, past what counts it, and a loop itself. `None`: as above.
    fn led_entry(&mut self, fragment_id: FragmentId, entry: Entry) -> Option<CachePc> {
        let fragment = *self.fragment(fragment_id);
        let code = fragment.cache_start + fragment.code_offset();
        let index = usize::from(entry != Entry::Plain);
        if fragment.led_entries[index] != CachePc::NOWHERE {
            return Some(fragment.led_entries[index]);
        }
        let address = self.enter_as(fragment_id, entry, code)?;
        self.fragment_mut(fragment_id).led_entries[index] = address;
        Some(address)
    }

    /// As `entry`, but that a fragment which asks whether it is tagged does not do so. Not by a call.
    pub fn entry_behind_question(&mut self, fragment_id: FragmentId, entry: Entry) -> Option<CachePc> {
        let fragment = *self.fragment(fragment_id);
        match fragment.behind_question {
            CachePc::NOWHERE => self.entry(fragment_id, entry),
            further => self.enter_as(fragment_id, entry, further),
        }
    }

    /// Where `code` of a fragment, which runs as that does, is entered as `entry` says; not by a call. `None`: as above.
    fn enter_as(&mut self, fragment_id: FragmentId, entry: Entry, code: CachePc) -> Option<CachePc> {
        let fragment = *self.fragment(fragment_id);
        match entry {
            Entry::Plain if fragment.is_lending => self.make_thunk(fragment.app_pc, fragment_id, |emitter| {
                emitter.lend();
                emitter.jump_anywhere(code);
            }),
            Entry::Lending if !fragment.is_lending => self.make_thunk(fragment.app_pc, fragment_id, |emitter| {
                emitter.take_back_lent();
                emitter.jump_anywhere(code);
            }),
            _ => Some(code),
        }
    }

    /// A jump to a fragment's entry `target`, in reach of the jump at `address`.
    fn make_far_jump(&mut self, address: CachePc, fragment_id: FragmentId, target: CachePc) -> Option<CachePc> {
        let room = self.slabs.room_for_jump(address)?;
        // SAFETY: nothing uses the room yet; the lock is held.
        let mut emitter = unsafe { room.emitter() };
        emitter.jump_anywhere(target);
        self.slabs.commit(room, emitter.position() as u64, 0, Unit::Thunk(fragment_id));
        Some(room.hot)
    }

    /// Code that leads to a fragment, near the code at `app_pc`. Returns where it is: in the cold part, as it leads from hot code to
    /// what is not hot, and would stand between two hot blocks that follow each other.
    fn make_thunk(
        &mut self,
        app_pc: AppPc,
        fragment_id: FragmentId,
        emit: impl FnOnce(&mut Emitter),
    ) -> Option<CachePc> {
        let room = self.slabs.room_near(app_pc)?;
        // SAFETY: nothing uses the room yet; the lock is held.
        let mut emitter = unsafe { room.emitter() };
        emitter.set_cold(true);
        emit(&mut emitter);
        self.slabs.commit(room, 0, emitter.cold_position() as u64, Unit::Thunk(fragment_id));
        Some(room.cold)
    }

    /// Makes an indirect branch try `pad` first; `None`: it goes straight on to the branch table. No signal needs to undo
    /// this: an indirect branch is interrupted in front of it, a pad at its end, and for other targets the table holds
    /// nothing as long as there is such a pad.
    pub fn try_first(&mut self, fragment_id: FragmentId, pad: Option<PadId>) {
        let exit = *self.exit(self.fragment(fragment_id).first_try);
        if exit.patch == CachePc::NOWHERE {
            // A branch that a thread came by before its code was given up.
            return;
        }
        set_displacement(exit.patch, pad.map_or(exit.stub, |id| self.pad(id).cache_start));
        self.fragment_mut(fragment_id).first_pad = pad.unwrap_or(PadId::NONE);
    }

    /// Makes an exit lead to its stub again.
    pub fn unlink_exit(&mut self, exit_id: ExitId) {
        let exit = *self.exit(exit_id);
        if exit.linked_to == FragmentId::NONE {
            return;
        }
        set_displacement(exit.patch, exit.stub);
        // Take it out of the target's list.
        let target = exit.linked_to;
        if self.fragment(target).incoming == exit_id {
            self.fragment_mut(target).incoming = exit.next_incoming;
        } else {
            let mut walk = self.fragment(target).incoming;
            while walk != ExitId::NONE {
                let next = self.exit(walk).next_incoming;
                if next == exit_id {
                    self.exit_mut(walk).next_incoming = exit.next_incoming;
                    break;
                }
                walk = next;
            }
        }
        let exit = self.exit_mut(exit_id);
        exit.linked_to = FragmentId::NONE;
        exit.next_incoming = ExitId::NONE;
        self.n_unlinks += 1;
    }

    /// Makes what leads to a fragment lead past what counts its executions, from now on.
    pub fn enter_behind_heat(&mut self, fragment_id: FragmentId) {
        let fragment = self.fragment_mut(fragment_id);
        let heat_bytes = core::mem::take(&mut fragment.heat_bytes);
        fragment.plain_entry = fragment.plain_entry + u64::from(heat_bytes);
        fragment.counts_heat = false;
        let mut incoming = Vec::new();
        let mut exit_id = self.fragment(fragment_id).incoming;
        while exit_id != ExitId::NONE {
            incoming.push(exit_id);
            exit_id = self.exit(exit_id).next_incoming;
        }
        for exit_id in incoming {
            self.restore_exit(exit_id);
        }
    }

    /// Puts what is on the list of `before`, which is out of use, on that of the fragment that came in its place: it leads to no
    /// code, but counted ways to the same.
    pub fn hand_over_incoming(&mut self, before: FragmentId, id: FragmentId) {
        while self.fragment(before).incoming != ExitId::NONE {
            let exit_id = self.fragment(before).incoming;
            let first = self.fragment(id).incoming;
            let exit = self.exit_mut(exit_id);
            let next = exit.next_incoming;
            exit.linked_to = id;
            exit.next_incoming = first;
            self.fragment_mut(before).incoming = next;
            self.fragment_mut(id).incoming = exit_id;
        }
    }

    /// Points all jumps to a fragment at their stubs. They stay on its list, until each is linked to what came in its place:
    /// if the code changes before, they are known to have counted ways to the old one.
    pub fn bypass(&self, fragment_id: FragmentId) {
        let mut exit_id = self.fragment(fragment_id).incoming;
        while exit_id != ExitId::NONE {
            let exit = self.exit(exit_id);
            set_displacement(exit.patch, exit.stub);
            exit_id = exit.next_incoming;
        }
    }

    /// Points the jumps of a fragment at their stubs, so that the next way out leads into the dispatcher; the lists stay,
    /// `relink_after_interrupt` restores. Called by the signal handler: stores only.
    pub fn interrupt(&self, fragment_id: FragmentId) {
        let fragment = self.fragment(fragment_id);
        for exit_id in fragment.exits() {
            let exit = self.exit(exit_id);
            if exit.patch != CachePc::NOWHERE && exit.kind != ExitType::FirstTry {
                set_displacement(exit.patch, exit.stub);
            }
        }
        self.set_interrupt_patch(fragment_id, fragment.interrupt_patch);
    }

    /// As `interrupt`, for the one exit of a pad.
    pub fn interrupt_pad(&self, pad_id: PadId) {
        let exit = self.exit(self.pad(pad_id).exit);
        set_displacement(exit.patch, exit.stub);
    }

    fn set_interrupt_patch(&self, fragment_id: FragmentId, value: u64) {
        let fragment = self.fragment(fragment_id);
        if fragment.interrupt_offset != NO_INTERRUPT {
            let address = fragment.cache_start + u64::from(fragment.interrupt_offset);
            // SAFETY: eight aligned bytes of the fragment: a whole instruction starts there, before and after.
            unsafe { AtomicU64::from_ptr(writable(address.raw()) as *mut u64) }.store(value, Ordering::SeqCst);
        }
    }

    /// Undoes `interrupt`: jumps lead where their exits are linked.
    pub fn relink_after_interrupt(&mut self, fragment_id: FragmentId) {
        let fragment = *self.fragment(fragment_id);
        for exit_id in fragment.exits() {
            self.restore_exit(exit_id);
        }
        self.set_interrupt_patch(fragment_id, fragment.interrupt_original);
        if UNDELIVERED.load(Ordering::SeqCst) != 0 {
            self.set_interrupt_patch(fragment_id, fragment.interrupt_patch);
        }
    }

    /// Has an exit's jump lead where the exit says, if it was interrupted: code that is written costs whoever executes it.
    pub fn restore_if_interrupted(&mut self, exit_id: ExitId) {
        let exit = self.exit(exit_id);
        if exit.patch == CachePc::NOWHERE {
            return;
        }
        // SAFETY: as in `set_displacement`.
        let is_interrupted = unsafe {
            let word = writable(exit.patch.raw() - patching::WORD_OFFSET) as *mut u64;
            patching::leads_to(word, exit.patch.raw(), exit.stub.raw())
        };
        if is_interrupted {
            self.restore_exit(exit_id);
        }
    }

    /// Makes an exit's jump lead where the exit says, if that is still in use.
    pub fn restore_exit(&mut self, exit_id: ExitId) {
        let linked_to = self.exit(exit_id).linked_to;
        if linked_to != FragmentId::NONE && self.fragment(linked_to).is_valid {
            self.unlink_exit(exit_id);
            self.link(exit_id, linked_to);
        }
    }
}
