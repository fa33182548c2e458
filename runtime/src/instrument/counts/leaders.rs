//! Fragments that need no counter, since what leads to them counts already.
//!
//! Of hot code mostly one way or two lead to a block: out of the blocks before it. The fragments of these, its *leaders*, count
//! how often the way is taken, so the fragment behind, their *follower*, is entered by those exits past what counts it. All others
//! who come to it enter it where it is counted. So each execution of a trace through hot code is counted once where it begins and
//! where it goes aside. What follows from what is a matter of ranks: a leader has a lower one, so there are no circles.
//!
//! A leader's exit does not always lead there: when it is taken by way of its stub, as before it is linked and whenever a signal
//! waits, the dispatcher counts a *miss* (dispatch/flow/exits.rs). An exit never leads to two followers, and once it has had one it leads
//! nowhere else: where that goes out of use, so does the leader, when it next comes there (dispatch/flow/linking.rs).

use super::counters::Counters;
use crate::buffer::RingWriter;
use crate::cache::exit::ExitType;
use crate::cache::Fragment;
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::context::ThreadContext;
use crate::cpu::instrument::counting::has_trap;
use crate::decode::{Block, Ending};
use crate::instrument::change::relayout::executions_of;
use crate::instrument::request::Arrival;
use crate::instrument::Engine;

/// Where other ways may come together with that of the first leader a fragment ranks so much behind that: they may come from further.
const STEP: u8 = 8;
/// So far it has to be gone back, at most, to say how often a fragment ran.
const MAX_RANK: u8 = 64;
/// Sources are main ones if all others lead to a fragment once in so many times.
const SELDOM: u64 = 8;
/// Of so many exits that lead to a fragment it is looked which ones do most, out of so many branches.
const MAX_EXITS: usize = 64;
const MAX_SOURCES: usize = 8;

impl Engine {
    /// Whether executions may follow from others: not where blocks are tagged, which have cells of their own.
    fn has_leaders(&self) -> bool {
        self.counts() && !self.tells_blocks_apart()
    }

    /// The exit that leads to `block`, about to be translated again as it is hot, so that it needs no counter; or `NONE`.
    pub fn find_leader(
        &self,
        arrival: Arrival,
        block: &Block,
        ending: Ending,
        before: &Fragment,
        counters: &Counters,
    ) -> ExitId {
        let Arrival::Exit(id) = arrival else {
            return ExitId::NONE;
        };
        let exit = self.cache.exit(id);
        let leads = exit.misses != CounterId::NONE
            && exit.follower == FragmentId::NONE
            && exit.linked_to == FragmentId::NONE
            && exit.target == block.pc
            && self.cache.fragment(exit.fragment).is_valid
            && self.cache.fragment(exit.fragment).rank <= MAX_RANK - STEP
            && self.cache.landings.find(block.pc).is_none();
        let is_counted = counters.main != CounterId::NONE
            && counters.is_included()
            && (counters.second != CounterId::NONE || !matches!(ending, Ending::Conditional(_)));
        let is_alone = !before.is_called && !before.is_indirect_target && !block.is_writable;
        if leads && is_counted && is_alone && !has_trap(block, block.count()) {
            id
        } else {
            ExitId::NONE
        }
    }

    /// Counters of misses for a hot block's ways out, if one may be a leader. `is_cut`: it ends in front of code that it had in it.
    pub fn plan_misses(&mut self, block: &Block, ending: Ending, is_cut: bool, counters: &mut Counters) {
        if !self.has_leaders() || !counters.is_included() || counters.main == CounterId::NONE || block.is_writable {
            return;
        }
        let (targets, n) = match ending {
            Ending::Conditional(target) if counters.second != CounterId::NONE => ([target, block.end()], 2),
            Ending::Jump(target) => ([target; 2], 1),
            Ending::Limit if !block.ends_with_stored_pointer() => ([block.end(); 2], 1),
            _ => return,
        };
        let may_lead = targets.map(|pc| pc != block.pc && self.may_be_led_to(pc, block.last_pc(), is_cut));
        if may_lead[..n].contains(&true) && self.take_counters(n as u32) != CounterId::NONE {
            counters.n_misses = n as u8;
            counters.may_lead = may_lead;
        }
    }

    /// Whether a hot block's way to `pc` may be a leader: to what has one already, or to what is about to be translated again as it is
    /// hot, if much of its executions came from the branch at `branch` or it was a part of the block (`is_cut`).
    fn may_be_led_to(&self, pc: AppPc, branch: AppPc, is_cut: bool) -> bool {
        if let Some(id) = self.cache.by_pc.find(pc) {
            return self.cache.fragment(id).leader != ExitId::NONE;
        }
        let Some(last) = self.cache.versions.find(pc).map(|id| self.cache.fragment(id)) else {
            return false;
        };
        let is_source =
            |source: &FragmentId| *source != FragmentId::NONE && self.cache.fragment(*source).branch_pc() == branch;
        last.is_hot && (is_cut || last.main_sources.iter().any(is_source))
    }

    /// Has an exit lead to a fragment past what counts it from now on, and tells it.
    pub fn lead(&mut self, writer: &RingWriter, exit_id: ExitId, id: FragmentId) {
        self.cache.exit_mut(exit_id).follower = id;
        self.write_link(writer, exit_id, id);
    }

    /// As `lead`, of an exit that is about to be linked to fragment `id`, if it can be a leader of that, too.
    pub fn lead_if_possible(&mut self, writer: &RingWriter, exit_id: ExitId, id: FragmentId) {
        let exit = self.cache.exit(exit_id);
        let (source, fragment) = (self.cache.fragment(exit.fragment), self.cache.fragment(id));
        let is_free =
            exit.misses != CounterId::NONE && exit.follower == FragmentId::NONE && exit.linked_to == FragmentId::NONE;
        let has_kept = !fragment.keeps_counter || self.cache.are_in_one_loop(exit, id);
        if is_free && has_kept && fragment.leader != ExitId::NONE && source.rank < fragment.rank {
            self.lead(writer, exit_id, id);
        }
    }

    /// The one or two fragments from which nearly all executions of `fragment` came in the calling thread, or `NONE`.
    pub fn find_main_sources(&self, context: &ThreadContext, fragment: &Fragment) -> [FragmentId; 2] {
        if !self.has_leaders() || !fragment.is_included {
            return [FragmentId::NONE; 2];
        }
        let executed = self.executions_of_fragment(context, fragment);
        let mut sources = [(FragmentId::NONE, AppPc::NOWHERE, 0); MAX_SOURCES];
        let mut n = 0;
        let mut exit_id = fragment.incoming;
        for _ in 0..MAX_EXITS {
            if exit_id == ExitId::NONE {
                break;
            }
            let exit = self.cache.exit(exit_id);
            let (times, branch) = (self.times_taken(context, exit_id), self.cache.fragment(exit.fragment).branch_pc());
            match sources[..n].iter_mut().find(|source| source.1 == branch) {
                Some(source) => source.2 += times,
                None if n < MAX_SOURCES => {
                    sources[n] = (exit.fragment, branch, times);
                    n += 1;
                }
                None => {}
            }
            exit_id = exit.next_incoming;
        }
        sources[..n].sort_unstable_by_key(|source| core::cmp::Reverse(source.2));
        let is_most = |times: u64| executed.saturating_sub(times) * SELDOM <= executed;
        match (sources[0], sources[1]) {
            (first, _) if is_most(first.2) => [first.0, FragmentId::NONE],
            (first, second) if is_most(first.2 + second.2) => [first.0, second.0],
            _ => [FragmentId::NONE; 2],
        }
    }

    /// How often the thread took an exit that may be a leader; 0 of others.
    fn times_taken(&self, context: &ThreadContext, exit_id: ExitId) -> u64 {
        let exit = self.cache.exit(exit_id);
        let fragment = self.cache.fragment(exit.fragment);
        if !is_way(exit.kind) || !fragment.is_included {
            return 0;
        }
        let executed = self.executions_of_fragment(context, fragment);
        match exit.kind {
            ExitType::Taken => self.taken(context, fragment, executed),
            ExitType::NotTaken => executed.saturating_sub(self.taken(context, fragment, executed)),
            _ => executed,
        }
    }

    /// How often the thread came to a fragment by its first leader.
    pub fn led_executions(&self, context: &ThreadContext, fragment: &Fragment) -> u64 {
        if fragment.leader == ExitId::NONE {
            return 0;
        }
        let misses = executions_of(context, self.cache.exit(fragment.leader).misses);
        self.times_taken(context, fragment.leader).wrapping_sub(misses)
    }

    /// The rank of what has this exit for its first leader, given what it was before.
    pub fn rank_behind(&self, leader: ExitId, before: Option<&Fragment>) -> u8 {
        if leader == ExitId::NONE {
            return 0;
        }
        let exit = self.cache.exit(leader);
        let source = self.cache.fragment(exit.fragment);
        let goes_back = exit.target <= source.branch_pc();
        let is_joined = goes_back || before.is_some_and(|before| before.main_sources[1] != FragmentId::NONE);
        source.rank + if is_joined { STEP } else { 1 }
    }
}

/// Whether an exit may be a leader.
pub fn is_way(kind: ExitType) -> bool {
    matches!(kind, ExitType::Jump | ExitType::Taken | ExitType::NotTaken | ExitType::FallThrough)
}
