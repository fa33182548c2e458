//! Laying hot code out anew.
//!
//! Code is translated when it runs for the first time, so what runs all the time lies scattered among what ran once, and
//! the processor's caches for instructions hold little of it. So blocks that end with a call count the thread's calls down.
//! When none is left, the fragments that the thread ran often go out of use; they are translated again as they
//! run, hence close together and in the order in which they run. These count no calls down, so it costs nothing for long,
//! and comes again only when other code has become hot.

extern crate alloc;
use super::counting::{are_flags_dead_at_start, has_trap};
use super::Engine;
use crate::arch::x86_64::context::ThreadContext;
use crate::buffer::RingWriter;
use crate::cache::fragment::{ExitType, COUNTED_AT_EXITS, NONE};
use crate::cache::Fragment;
use crate::decode::{Block, Ending};
use crate::protocol::exit_kind;
use iced_x86::Instruction;

/// For so many fragments a thread makes twice as many calls before all of them are looked at, which then costs little.
const FRAGMENTS_LOOKED_AT: u64 = 1 << 16;

impl Engine {
    /// Whether a fragment of `block` is to count calls down: where flags are dead at its start.
    pub fn counts_calls_down(&self, block: &Block, kind: u8, are_dead_at_end: bool) -> bool {
        let is_call = matches!(kind, exit_kind::CALL | exit_kind::INDIRECT_CALL);
        is_call
            && self.is_counting()
            && self.shared.is_included(block.pc)
            && !block.is_writable
            && !has_trap(block, block.instructions.len())
            && are_flags_dead_at_start(block, are_dead_at_end)
    }

    /// Whether the same code at `pc` went out of use because it was hot, and if so, whether its conditional branch was
    /// taken more often than not.
    ///
    /// If it did and there is other code now, what led to it is cut off.
    pub fn find_hot(&mut self, writer: &RingWriter, pc: u64, code_hash: u64) -> Option<bool> {
        let id = self.cache.versions.find(pc)?;
        let last = *self.cache.fragment(id);
        if last.code_hash != code_hash {
            self.cut_off(writer, id, true);
            return None;
        }
        last.is_hot.then_some(last.is_mostly_taken)
    }

    /// Cuts a hot block where a hot fragment starts that ends with the same call. Returns how it ends now.
    ///
    /// The processor predicts that a function returns to the copy of the call that it was called from, but returns all
    /// come to one of them: a hot call must have one copy.
    pub fn leave_call_to_others(&self, block: &mut Block, ending: Ending) -> Ending {
        if !matches!(ending, Ending::Call(_) | Ending::IndirectCall) {
            return ending;
        }
        let end = block.end();
        let is_start = |instruction: &Instruction| {
            let pc = instruction.ip();
            let known = self.cache.by_pc.find(pc).or(self.cache.versions.find(pc));
            known.is_some_and(|id| self.cache.fragment(id).is_hot && self.cache.fragment(id).end() == end)
        };
        match block.instructions.iter().skip(1).position(is_start) {
            Some(before) => {
                block.truncate(before + 1);
                Ending::Limit
            }
            None => ending,
        }
    }

    /// How many calls the thread makes until hot code is looked for again.
    pub fn calls_to_relayout(&self) -> u32 {
        let calls = u64::from(self.shared.header().relayout_calls);
        let more = calls * self.cache.fragments.len() as u64 / FRAGMENTS_LOOKED_AT;
        (calls + more).min(i32::MAX as u64) as u32
    }

    /// Takes the fragments that the calling thread ran often out of use, so that they are translated again.
    pub fn retire_hot(&mut self, writer: &RingWriter, context: &ThreadContext) {
        let limit = u64::from(self.shared.header().relayout_executions);
        let mut executions = alloc::vec![0u64; self.cache.fragments.len()];
        for pad in self.cache.pads.as_slice() {
            executions[pad.source_fragment as usize] += executions_of(context, pad.counter);
        }
        for (id, from_pads) in (0u32..).zip(&executions) {
            let fragment = *self.cache.fragment(id);
            if !fragment.is_valid || fragment.is_hot {
                continue;
            }
            let executed = from_pads + self.executions_of_fragment(context, &fragment);
            if executed >= limit {
                let is_mostly_taken = self.taken(context, &fragment, executed) * 2 > executed;
                let fragment = self.cache.fragment_mut(id);
                fragment.is_hot = true;
                fragment.is_mostly_taken = is_mostly_taken;
                self.shared.add(crate::status_field!(relaid), 1);
                self.retire(writer, id);
                self.cache.bypass(id);
            }
        }
    }

    /// How often the thread ran a fragment, but for indirect branches, which their pads count.
    fn executions_of_fragment(&self, context: &ThreadContext, fragment: &Fragment) -> u64 {
        if fragment.count_before != COUNTED_AT_EXITS {
            return executions_of(context, fragment.counter);
        }
        let exits = fragment.first_exit..fragment.first_exit + u32::from(fragment.n_exits);
        exits.map(|id| executions_of(context, self.cache.exit(id).counter)).sum()
    }

    /// How often the thread took a fragment's conditional branch, of `executed` times.
    fn taken(&self, context: &ThreadContext, fragment: &Fragment, executed: u64) -> u64 {
        let (mut taken, mut not_taken) = (0, 0);
        for id in fragment.first_exit..fragment.first_exit + u32::from(fragment.n_exits) {
            let exit = self.cache.exit(id);
            match exit.kind {
                ExitType::Taken if exit.counter == NONE => taken = executed,
                ExitType::Taken => taken = executions_of(context, exit.counter),
                ExitType::NotTaken => not_taken = executions_of(context, exit.counter),
                _ => {}
            }
        }
        // Where the block counts both ways together, the way aside is a part of that.
        let is_counted_together = taken == executed;
        if is_counted_together {
            taken.saturating_sub(not_taken)
        } else {
            taken
        }
    }
}

fn executions_of(context: &ThreadContext, counter: u32) -> u64 {
    if counter == NONE {
        return 0;
    }
    // SAFETY: counters that were given out are inside the thread's mapped window.
    unsafe { context.counter(counter).read_volatile() }
}
