//! Laying hot code out anew.
//!
//! Code is translated when it runs for the first time, so what runs all the time lies scattered among what ran once, and
//! the processor's caches for instructions hold little of it. So a fragment counts how often a thread runs it. When that is
//! enough it goes out of use, and is translated once more as it runs: next to what became hot just before, straight along the
//! way that is taken most, and counting its heat no more.

use crate::buffer::RingWriter;
use crate::cache::exit::ExitType;
use crate::cache::fragment::{Habit, COUNTED_AT_EXITS};
use crate::cache::Fragment;
use crate::context::addresses::AppPc;
use crate::context::layout::HEAT_CELLS;
use crate::context::numbers::{CounterId, FragmentId};
use crate::context::ThreadContext;
use crate::cpu::instrument::counting::{are_flags_dead_at_start, has_trap};
use crate::cpu::sys::clock::ticks;
use crate::decode::{Block, Ending};
use crate::instrument::branch_way::BranchWay;
use crate::instrument::request::Arrival;
use crate::instrument::Engine;
use crate::protocol::exit_kind;

/// What ran so many times less often than it takes to be hot is on the way to be.
const WARM_SHARE: u32 = 8;
/// So many fragments may be looked at for each that was found to be hot.
const LOOKS_EACH_TIME: u32 = 512;
/// So often it is looked whether code that ran often is hot.
const MAX_LOOKS: u8 = 2;
/// Hot code runs once in so many cycles of the time stamp counter, on average.
const MAX_CYCLES_EACH: u64 = 10_000;
/// Fewer executions than this are too few to be timed.
const MIN_TIMED: u32 = 1024;
/// So many fragments that follow each other are found to be hot with the one in front of them, at most.
const MAX_SUCCESSORS: usize = 16;
/// So many fragments of a program count how often they run; of those that come later only heads of loops and functions do.
const ALL_COUNT: usize = 1 << 14;

impl Engine {
    /// Whether a fragment of `block` is to count how often it runs: where flags are dead at its start.
    ///
    /// In a large program counting everywhere costs more than it gains. Every loop goes backwards somewhere, and what lies
    /// between is found from there.
    pub fn counts_heat(&self, arrival: Arrival, block: &Block, ending: Ending, are_dead_at_end: bool) -> bool {
        let goes_back = matches!(ending, Ending::Jump(target) | Ending::Conditional(target) if target <= block.end());
        self.shared.header().relayout_executions != 0
            && (self.cache.fragments.len() < ALL_COUNT || arrival.is_from_afar() || goes_back)
            && !block.is_writable
            && !has_trap(block, block.count())
            && are_flags_dead_at_start(block, are_dead_at_end)
    }

    /// The fragment of the same code at `pc` that went out of use because it was hot.
    ///
    /// If there is other code now, what led to it is cut off.
    pub fn find_hot(&mut self, writer: &RingWriter, pc: AppPc, code_hash: u64) -> Option<Fragment> {
        let id = self.cache.versions.find(pc)?;
        let last = *self.cache.fragment(id);
        if last.code_hash != code_hash {
            self.note_gone(last.app_pc, last.end());
            self.cut_off(writer, id, true);
            return None;
        }
        last.is_hot.then_some(last)
    }

    /// Whether `way`, the straight one of a block's conditional branch, leads to code that is there already: to the block itself, or of a
    /// hot block to one that was laid out as well.
    pub fn leads_back(&self, block: &Block, ending: Ending, way: BranchWay, is_hot: bool) -> bool {
        let Ending::Conditional(target) = ending else {
            return false;
        };
        let straight = if way == BranchWay::Taken { target } else { block.end() };
        let is_laid_out = |id| self.cache.fragment(id).is_hot && self.cache.fragment(id).is_valid;
        straight == block.pc || is_hot && self.cache.by_pc.find(straight).is_some_and(is_laid_out)
    }

    /// Cuts a hot block where a hot fragment starts that ends with the same call. Returns how it ends now.
    ///
    /// The processor predicts that a function returns to the copy of the call that it was called from, but returns all
    /// come to one of them: a hot call must have one copy. Where the other one begins earlier, that one is cut, once it is
    /// translated again (`cut_other_calls`). Not where blocks are tagged: of that copy it could not be told which
    /// of them was executed.
    pub fn leave_call_to_others(&self, block: &mut Block, ending: Ending) -> Ending {
        if !matches!(ending, Ending::Call(_) | Ending::IndirectCall) || self.tells_blocks_apart() {
            return ending;
        }
        let end = block.end();
        let is_start = |index: usize| {
            let pc = block.pc_of(index);
            let known = self.cache.by_pc.find(pc).or(self.cache.versions.find(pc));
            known.is_some_and(|id| self.cache.fragment(id).is_hot && self.cache.fragment(id).end() == end)
        };
        match (1..block.count()).position(is_start) {
            Some(before) => {
                block.truncate(before + 1);
                Ending::Limit
            }
            None => ending,
        }
    }

    /// Takes other hot fragments with the call at the end of hot fragment `id` out of use. They begin in front of it, so they are cut
    /// there when they are translated again, by `leave_call_to_others`.
    pub fn cut_other_calls(&mut self, writer: &RingWriter, id: FragmentId) {
        let fragment = *self.cache.fragment(id);
        if !fragment.is_hot || !fragment.ends_with_call() || self.tells_blocks_apart() {
            return;
        }
        for other in self.fragments_within(fragment.app_pc, fragment.app_pc + 1) {
            let found = self.cache.fragment(other);
            let is_other_copy = found.is_hot && found.ends_with_call() && found.end() == fragment.end();
            if is_other_copy && found.app_pc < fragment.app_pc {
                self.retire_to_be_made_again(writer, other);
            }
        }
    }

    /// Whether returns to the call at the end of fragment `id` are to come to its landing, not to that of another fragment with the
    /// same call: the last one's, as what led into a loop is translated before the loop, but of hot fragments' one of theirs.
    pub fn is_landing_of_all(&self, id: FragmentId) -> bool {
        let fragment = self.cache.fragment(id);
        let other = self.cache.landings.find(fragment.end()).map(|other| self.cache.fragment(other));
        fragment.is_hot || !other.is_some_and(|other| other.is_hot && other.is_valid)
    }

    /// Says that the calling thread has not run a new fragment yet.
    pub fn begin_heat(&self, context: &ThreadContext, id: FragmentId) {
        let fragment = self.cache.fragment(id);
        if fragment.counts_heat || fragment.is_compared {
            let executions = match fragment.is_compared {
                true => self.executions_to_trust(fragment.app_pc),
                false => self.shared.header().relayout_executions as u16,
            };
            // SAFETY: the cell is in the thread's own block.
            unsafe { context.heat(id).write_volatile(executions.wrapping_neg()) };
        }
    }

    /// Takes fragment `hot`, which the calling thread found to be hot, out of use, so that it is translated again, and with it
    /// those that are on the way to be hot: what runs together is to lie together.
    pub fn retire_hot(&mut self, writer: &RingWriter, context: &ThreadContext, hot: FragmentId) {
        if !self.is_hot_now(hot) {
            self.look_again(context, hot);
            return;
        }
        self.retire_with_successors(writer, context, hot);
        // In a large program looking for the warm ones each time would cost more than it gains.
        let n = self.cache.fragments.len() as u32;
        self.looks_saved = self.looks_saved.saturating_add(LOOKS_EACH_TIME);
        if self.looks_saved < n {
            return;
        }
        self.looks_saved = 0;
        let limit = self.warm_executions();
        for id in (n.saturating_sub(HEAT_CELLS)..n).map(FragmentId::from_raw) {
            // Cells lie together, so most fragments need not be looked at.
            if heat(self, context, id) >= limit && self.cache.fragment(id).counts_heat {
                self.retire_with_successors(writer, context, id);
            }
        }
    }

    /// Whether a fragment that ran often did so of late. Where much code runs often and evenly, as in a compiler, laying it all out
    /// anew costs more than it gains.
    fn is_hot_now(&self, id: FragmentId) -> bool {
        let executions = self.shared.header().relayout_executions;
        let elapsed = ticks().wrapping_sub(self.cache.fragment(id).heated_at);
        elapsed < u64::from(executions) * MAX_CYCLES_EACH || executions < MIN_TIMED
    }

    /// Has a fragment that is not hot yet count its executions once more: it may have run seldom at first. Then never again, as
    /// counting costs, too; what it leads to or comes from may still find it.
    fn look_again(&mut self, context: &ThreadContext, id: FragmentId) {
        let fragment = self.cache.fragment_mut(id);
        fragment.heated_at = ticks();
        fragment.n_looks += 1;
        if fragment.n_looks < MAX_LOOKS {
            self.begin_heat(context, id);
        } else {
            self.cache.enter_behind_heat(id);
        }
    }

    /// So often ran what is on the way to be hot.
    fn warm_executions(&self) -> u32 {
        (self.shared.header().relayout_executions / WARM_SHARE).max(1)
    }

    /// Takes a fragment out of use, and those behind it that are on the way to be hot or can't tell by themselves.
    fn retire_with_successors(&mut self, writer: &RingWriter, context: &ThreadContext, id: FragmentId) {
        let warm = self.warm_executions();
        let mut waiting = [id; MAX_SUCCESSORS];
        let (mut n, mut next) = (1, 0);
        while next < n {
            let fragment = *self.cache.fragment(waiting[next]);
            next += 1;
            if !fragment.is_valid || fragment.is_hot {
                continue;
            }
            for exit_id in fragment.exits() {
                let successor = self.cache.exit(exit_id).linked_to;
                if successor == FragmentId::NONE || n == MAX_SUCCESSORS || waiting[..n].contains(&successor) {
                    continue;
                }
                let is_silent = !self.cache.fragment(successor).counts_heat;
                if is_silent || heat(self, context, successor) >= warm {
                    waiting[n] = successor;
                    n += 1;
                }
            }
        }
        // Before any goes out of use: what leads to it is linked no more then.
        let mut habits = [Habit::UNKNOWN; MAX_SUCCESSORS];
        for (habit, &one) in habits.iter_mut().zip(&waiting[..n]) {
            *habit = self.habit_of(context, self.cache.fragment(one), id);
        }
        for (&id, &habit) in waiting[..n].iter().zip(&habits) {
            let fragment = *self.cache.fragment(id);
            if !fragment.is_valid || fragment.is_hot {
                continue;
            }
            let main_sources = self.find_main_sources(context, &fragment);
            let hot = self.cache.fragment_mut(id);
            hot.is_hot = true;
            hot.habit = habit;
            hot.main_sources = main_sources;
            self.shared.add(crate::status_field!(relaid), 1);
            self.retire_to_be_made_again(writer, id);
            if fragment.exit_kind == exit_kind::CONDITIONAL {
                self.expect_habit(writer, &fragment, habit);
            }
        }
    }

    /// What the thread had a fragment's conditional branch do, when the fragment `hottest` had become hot.
    fn habit_of(&self, context: &ThreadContext, fragment: &Fragment, hottest: FragmentId) -> Habit {
        if self.is_counted(fragment) {
            let executed = self.executions_of_fragment(context, fragment);
            return Habit::of(self.taken(context, fragment, executed), executed);
        }
        let (mut taken, mut not_taken) = (0, 0);
        for id in fragment.exits() {
            let exit = self.cache.exit(id);
            match exit.kind {
                ExitType::Taken => taken = self.heat_of(context, exit.linked_to, hottest),
                ExitType::NotTaken => not_taken = self.heat_of(context, exit.linked_to, hottest),
                _ => {}
            }
        }
        Habit::of(u64::from(taken), u64::from(taken) + u64::from(not_taken))
    }

    /// How often the thread ran what an exit leads to, as far as it is known: 0 for what it never led to. The heat of `hottest` has
    /// come round to 0.
    fn heat_of(&self, context: &ThreadContext, id: FragmentId, hottest: FragmentId) -> u32 {
        match id {
            FragmentId::NONE => 0,
            _ if self.cache.fragment(id).is_hot => u32::MAX,
            _ if id == hottest => 1 + u32::from(self.shared.header().relayout_executions as u16),
            _ => 1 + heat(self, context, id),
        }
    }

    /// How often the thread ran a fragment.
    pub fn executions_of_fragment(&self, context: &ThreadContext, fragment: &Fragment) -> u64 {
        if fragment.count_before != COUNTED_AT_EXITS {
            return self.led_executions(context, fragment).wrapping_add(executions_of(context, fragment.counter));
        }
        let exits = fragment.exits();
        exits.map(|id| executions_of(context, self.cache.exit(id).counter)).sum()
    }

    /// How often the thread took a fragment's conditional branch, of `executed` times.
    pub fn taken(&self, context: &ThreadContext, fragment: &Fragment, executed: u64) -> u64 {
        let (mut taken, mut not_taken) = (0, 0);
        for id in fragment.exits() {
            let exit = self.cache.exit(id);
            match exit.kind {
                ExitType::Taken if exit.counter == CounterId::NONE => taken = executed,
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

/// How often the thread counted `counter`; 0 for `NONE`.
pub fn executions_of(context: &ThreadContext, counter: CounterId) -> u64 {
    if counter == CounterId::NONE {
        return 0;
    }
    // SAFETY: counters that were given out are inside the thread's mapped window.
    unsafe { context.counter(counter).read_volatile() }
}

/// How often the thread ran a fragment since that was made: 0 for what another thread made, until it ran that very often.
fn heat(engine: &Engine, context: &ThreadContext, id: FragmentId) -> u32 {
    let executions = u32::from(engine.shared.header().relayout_executions as u16);
    // SAFETY: the cell is in the thread's own block.
    let cell = unsafe { context.heat(id).read_volatile() };
    (u32::from(cell) + executions).saturating_sub(1 << 16)
}
