//! Fragments that need no counter, since what leads to them counts already.
//!
//! Of hot code mostly one way leads to a block: the one out of the block before it. The fragment of that, the *leader*, counts
//! how often the way is taken, so the fragment behind, its *follower*, is entered by that exit past what counts it. All others
//! who come to it enter it where it is counted. So each execution of a trace through hot code is counted once where it begins and
//! where it goes aside.
//!
//! The leader's exit does not always lead there: when it is taken by way of its stub, as before it is linked and whenever a signal
//! waits, the dispatcher counts a *miss* (dispatch/exits.rs). An exit never leads to two followers, and once it has had one it leads
//! nowhere else.

use super::counters::Counters;
use super::counting::has_trap;
use super::relayout::executions_of;
use super::{Arrival, Engine};
use crate::arch::x86_64::context::ThreadContext;
use crate::buffer::RingWriter;
use crate::cache::fragment::{ExitType, NONE};
use crate::cache::Fragment;
use crate::decode::float_state::stored_pointer;
use crate::decode::{Block, Ending};
use crate::protocol::edge_kind;

/// So many fragments follow one from the other, at most: so far it has to be gone back to say how often one ran.
const MAX_DEPTH: u8 = 32;
/// A source is the main one if all others lead to a fragment once in so many times.
const SELDOM: u64 = 8;
/// Of so many exits that lead to a fragment it is looked which one does most, out of so many branches.
const MAX_EXITS: usize = 64;
const MAX_SOURCES: usize = 8;

/// What a fragment's record says of its leader.
pub struct Lead {
    pub fragment: u32,
    /// protocol::edge_kind
    pub way: u8,
}

impl Engine {
    /// Whether executions may follow from others: not where blocks are tagged, which have cells of their own.
    fn has_leaders(&self) -> bool {
        self.is_counting() && !self.records_regions()
    }

    /// The exit that leads to `block`, about to be translated again as it is hot, so that it needs no counter; or `NONE`.
    pub fn find_leader(&self, block: &Block, ending: Ending, before: &Fragment, counters: &Counters) -> u32 {
        let Arrival::Exit(id) = self.arrival else {
            return NONE;
        };
        let exit = self.cache.exit(id);
        let leads = exit.misses != NONE
            && exit.follower == NONE
            && exit.linked_to == NONE
            && exit.target == block.pc
            && self.cache.fragment(exit.fragment).is_valid
            && self.cache.fragment(exit.fragment).leader_depth < MAX_DEPTH;
        let is_counted = counters.main != NONE
            && counters.is_included()
            && (counters.second != NONE || !matches!(ending, Ending::Conditional(_)));
        let is_alone = !before.is_called && !before.is_indirect_target && !block.is_writable;
        let may_follow = leads && is_counted && is_alone && !has_trap(block, block.instructions.len());
        if may_follow && self.is_led_from(block.pc, exit.fragment) {
            id
        } else {
            NONE
        }
    }

    /// Counters of misses for a hot block's ways out, if one leads to hot code that is about to be translated again and was come to
    /// from here.
    pub fn plan_misses(&mut self, block: &Block, ending: Ending, counters: &mut Counters) {
        if !self.has_leaders() || !counters.is_included() || counters.main == NONE || block.is_writable {
            return;
        }
        let Some(branch) = block.instructions.last() else {
            return;
        };
        let (targets, n) = match ending {
            Ending::Conditional(target) if counters.second != NONE => ([target, block.end()], 2),
            Ending::Jump(target) => ([target; 2], 1),
            Ending::Limit if stored_pointer(branch).is_none() => ([block.end(); 2], 1),
            _ => return,
        };
        let branch = branch.ip();
        let leads =
            |pc: &u64| *pc != block.pc && self.cache.by_pc.find(*pc).is_none() && self.main_branch(*pc) == Some(branch);
        if targets[..n].iter().any(leads) && self.take_counters(n as u32) != NONE {
            counters.n_misses = n as u8;
        }
    }

    /// Whether nearly all executions of the code at `pc` came out of what `fragment` stands for, and none by a return.
    fn is_led_from(&self, pc: u64, fragment: u32) -> bool {
        let branch = self.cache.fragment(fragment).branch_pc();
        self.main_branch(pc) == Some(branch) && self.cache.landings.find(pc).is_none()
    }

    /// The branch from which nearly all executions of the code at `pc` came, if that was found to be hot.
    fn main_branch(&self, pc: u64) -> Option<u64> {
        let last = self.cache.fragment(self.cache.versions.find(pc)?);
        (last.is_hot && last.main_source != NONE).then(|| self.cache.fragment(last.main_source).branch_pc())
    }

    /// The fragment from which nearly all executions of `fragment` came in the calling thread, or `NONE`.
    pub fn find_main_source(&self, context: &ThreadContext, fragment: &Fragment) -> u32 {
        if !self.has_leaders() || !fragment.is_included {
            return NONE;
        }
        let executed = self.executions_of_fragment(context, fragment);
        let mut sources = [(NONE, 0, 0); MAX_SOURCES];
        let mut n = 0;
        let mut exit_id = fragment.incoming;
        for _ in 0..MAX_EXITS {
            if exit_id == NONE {
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
        let (source, _, most) = sources[..n].iter().copied().max_by_key(|source| source.2).unwrap_or((NONE, 0, 0));
        let others = executed.saturating_sub(most);
        if others * SELDOM <= executed {
            source
        } else {
            NONE
        }
    }

    /// How often the thread took an exit that may be a leader; 0 of others.
    fn times_taken(&self, context: &ThreadContext, exit_id: u32) -> u64 {
        let exit = self.cache.exit(exit_id);
        let fragment = self.cache.fragment(exit.fragment);
        if way_of(exit.kind).is_none() || !fragment.is_included {
            return 0;
        }
        let executed = self.executions_of_fragment(context, fragment);
        match exit.kind {
            ExitType::Taken => self.taken(context, fragment, executed),
            ExitType::NotTaken => executed.saturating_sub(self.taken(context, fragment, executed)),
            _ => executed,
        }
    }

    /// How often the thread came to a fragment by its leader.
    pub fn led_executions(&self, context: &ThreadContext, fragment: &Fragment) -> u64 {
        if fragment.leader == NONE {
            return 0;
        }
        let misses = executions_of(context, self.cache.exit(fragment.leader).misses);
        self.times_taken(context, fragment.leader).wrapping_sub(misses)
    }

    pub fn leader_depth(&self, leader: u32) -> u8 {
        match leader {
            NONE => 0,
            _ => self.cache.fragment(self.cache.exit(leader).fragment).leader_depth + 1,
        }
    }

    /// What the record of a fragment says of its leader.
    pub fn lead_of(&self, fragment: &Fragment) -> Lead {
        if fragment.leader == NONE {
            return Lead { fragment: NONE, way: 0 };
        }
        let exit = self.cache.exit(fragment.leader);
        Lead { fragment: exit.fragment, way: way_of(exit.kind).unwrap_or(0) }
    }

    /// Takes the leader of a fragment that goes out of use out of use as well: its exit can lead to no other fragment.
    pub fn retire_leader(&mut self, writer: &RingWriter, fragment: &Fragment) {
        if fragment.leader != NONE {
            self.retire_to_be_made_again(writer, self.cache.exit(fragment.leader).fragment);
        }
    }
}

/// The kind of edge that an exit stands for which may be a leader.
pub fn way_of(kind: ExitType) -> Option<u8> {
    match kind {
        ExitType::Jump => Some(edge_kind::JUMP),
        ExitType::Taken => Some(edge_kind::TAKEN),
        ExitType::NotTaken => Some(edge_kind::NOT_TAKEN),
        ExitType::FallThrough => Some(edge_kind::FALL_THROUGH),
        _ => None,
    }
}
