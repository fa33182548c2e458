//! Which counters a fragment has.

use crate::cache::fragment::Fragment;
use crate::context::numbers::CounterId;
use crate::decode::{Block, Ending};
use crate::instrument::branch_way::BranchWay;
use crate::instrument::request::Request;
use crate::instrument::Engine;
use crate::protocol::{exit_kind, fragment_flag};

/// Counters of a fragment under construction.
#[derive(Clone, Copy)]
pub struct Counters {
    /// First counter's number, as the record says it.
    pub first: CounterId,
    /// What to increment for the block, or on the taken edge; `NONE`: nothing.
    pub main: CounterId,
    /// What to increment on the edge not taken.
    pub second: CounterId,
    pub flags: u8,
    /// So many counters behind the others count what of each way is not to be added to its follower (instrument/counts/leaders.rs).
    pub n_misses: u8,
    /// Which ways may be leaders: the taken or only one, and the one not taken.
    pub may_lead: [bool; 2],
    /// Its executions follow from its leader's: the block itself counts none.
    pub is_led: bool,
}

impl Counters {
    /// Nothing is counted.
    pub const NONE: Counters = Counters {
        first: CounterId::NONE,
        main: CounterId::NONE,
        second: CounterId::NONE,
        flags: 0,
        n_misses: 0,
        may_lead: [false; 2],
        is_led: false,
    };

    /// Whether executions of the fragment are counted.
    pub fn is_counted(&self) -> bool {
        self.is_included() || self.flags & fragment_flag::COUNTED != 0
    }

    /// Whether they are recorded as well: paths have more counted.
    pub fn is_included(&self) -> bool {
        self.flags & fragment_flag::EXCLUDED == 0
    }

    /// The counter of misses of a way: the one not taken or the other one; `NONE`: it can't be a leader.
    pub fn misses(&self, is_not_taken: bool) -> CounterId {
        match self.may_lead[usize::from(is_not_taken)] {
            false => CounterId::NONE,
            true => self.first.plus(u32::from(self.n_misses) + u32::from(is_not_taken)),
        }
    }

    /// Has the counter of `way` count both ways of a conditional branch. Which one that is.
    pub fn count_both(&mut self, way: BranchWay) -> CounterId {
        let (flag, counter) = match way {
            BranchWay::Taken => (fragment_flag::FIRST_COUNTS_BOTH, self.main),
            BranchWay::NotTaken => (fragment_flag::SECOND_COUNTS_BOTH, self.second),
        };
        self.flags |= flag;
        counter
    }
}

impl Engine {
    /// Whether counters say how often a thread ran a fragment.
    pub fn is_counted(&self, fragment: &Fragment) -> bool {
        self.counts() && fragment.is_included
    }

    /// A counter for a dynamic edge; `NONE`: it is told alone.
    pub fn take_edge_counter(&mut self) -> CounterId {
        if self.counts() {
            self.take_counters(1)
        } else {
            CounterId::NONE
        }
    }

    /// Which counters the fragment needs, and the record's flags.
    pub fn plan_counters(&mut self, request: &Request, block: &Block, ending: Ending, kind: u8) -> Counters {
        let mut flags = if matches!(ending, Ending::Limit | Ending::Native) { fragment_flag::LIMIT } else { 0 };
        let is_included = self.shared.is_included(block.pc.raw());
        // Paths lead through all code, and counters say how far. But not through the end of a block alone.
        let is_counted = is_included || self.counts_left_out() && !request.is_before_path();
        let fall_through = block.end();
        let (first_target, second_target) = match ending {
            Ending::Jump(target) | Ending::Call(target) => (Some(target), None),
            Ending::TransactionBegin(target) => (Some(target), None),
            Ending::Conditional(target) => (Some(target), Some(fall_through)),
            Ending::Limit | Ending::Native | Ending::Syscall => (Some(fall_through), None),
            _ => (None, None),
        };
        if !is_included {
            flags |= fragment_flag::EXCLUDED | if is_counted { fragment_flag::COUNTED } else { 0 };
            if first_target.is_some_and(|pc| self.shared.is_included(pc.raw())) {
                flags |= fragment_flag::FIRST_EDGE;
            }
            if second_target.is_some_and(|pc| self.shared.is_included(pc.raw())) {
                flags |= fragment_flag::SECOND_EDGE;
            }
        }
        let is_indirect = matches!(kind, exit_kind::INDIRECT_JUMP | exit_kind::INDIRECT_CALL);
        let is_wanted = is_counted || flags & (fragment_flag::FIRST_EDGE | fragment_flag::SECOND_EDGE) != 0;
        if !self.counts() || is_indirect || !is_wanted {
            return Counters { flags, ..Counters::NONE };
        }
        let n = if kind == exit_kind::CONDITIONAL { 2 } else { 1 };
        let first = self.take_counters(n);
        if first == CounterId::NONE {
            self.shared.add(crate::status_field!(uncounted_fragments), 1);
            return Counters { flags, ..Counters::NONE };
        }
        let main = if is_counted || flags & fragment_flag::FIRST_EDGE != 0 { first } else { CounterId::NONE };
        let second = if n == 2 && (is_counted || flags & fragment_flag::SECOND_EDGE != 0) {
            first.plus(1)
        } else {
            CounterId::NONE
        };
        Counters { first, main, second, flags, ..Counters::NONE }
    }
}
