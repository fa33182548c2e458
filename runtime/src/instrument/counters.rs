//! Which counters a fragment has.

use super::counting::CountPlace;
use super::Engine;
use crate::cache::fragment::{Habit, NONE};
use crate::decode::{flags, Block, Ending};
use crate::protocol::exit_kind;

/// Bits of FragmentRecord.flags.
const FLAG_EXCLUDED: u8 = 1;
const FLAG_LIMIT: u8 = 2;
const FLAG_FIRST_EDGE: u8 = 4;
const FLAG_SECOND_EDGE: u8 = 8;
const FLAG_FIRST_COUNTS_BOTH: u8 = 16;
const FLAG_SECOND_COUNTS_BOTH: u8 = 32;
/// Not 64, which is FLAG_LATER_CODE (instrument/publish.rs).
const FLAG_COUNTED: u8 = 128;

/// Counters of a fragment under construction.
pub struct Counters {
    /// First counter's number, as the record says it.
    pub first: u32,
    /// What to increment for the block, or on the taken edge; `NONE`: nothing.
    pub main: u32,
    /// What to increment on the edge not taken.
    pub second: u32,
    pub flags: u8,
    /// So many counters behind the others count what of each way is not to be added to its follower (instrument/leaders.rs).
    pub n_misses: u8,
    /// Which ways may be leaders: the taken or only one, and the one not taken.
    pub may_lead: [bool; 2],
    /// Its executions follow from its leader's: the block itself counts none.
    pub is_led: bool,
}

impl Counters {
    /// Nothing is counted.
    pub const NONE: Counters =
        Counters { first: NONE, main: NONE, second: NONE, flags: 0, n_misses: 0, may_lead: [false; 2], is_led: false };

    /// Whether executions of the fragment are counted.
    pub fn is_counted(&self) -> bool {
        self.is_included() || self.flags & FLAG_COUNTED != 0
    }

    /// Whether they are recorded as well: paths have more counted.
    pub fn is_included(&self) -> bool {
        self.flags & FLAG_EXCLUDED == 0
    }

    /// The counter of misses of a way: the one not taken or the other one; `NONE`: it can't be a leader.
    pub fn misses(&self, is_not_taken: bool) -> u32 {
        match self.may_lead[usize::from(is_not_taken)] {
            false => NONE,
            true => self.first + u32::from(self.n_misses) + u32::from(is_not_taken),
        }
    }

    /// Has the taken way's counter, or the other one, count both ways of a conditional branch. Which one that is.
    pub fn count_both(&mut self, with_taken: bool) -> u32 {
        self.flags |= if with_taken { FLAG_FIRST_COUNTS_BOTH } else { FLAG_SECOND_COUNTS_BOTH };
        if with_taken {
            self.main
        } else {
            self.second
        }
    }
}

impl Engine {
    /// Which counters the fragment needs, and the record's flags.
    pub fn plan_counters(&mut self, block: &Block, ending: Ending, kind: u8) -> Counters {
        let mut flags = if matches!(ending, Ending::Limit | Ending::Native) { FLAG_LIMIT } else { 0 };
        let is_included = self.shared.is_included(block.pc);
        // Paths lead through all code, and counters say how far. But not through the end of a block alone.
        let is_counted = is_included || self.records_path() && !self.is_before_path;
        let fall_through = block.end();
        let (first_target, second_target) = match ending {
            Ending::Jump(target) | Ending::Call(target) => (Some(target), None),
            Ending::TransactionBegin(target) => (Some(target), None),
            Ending::Conditional(target) => (Some(target), Some(fall_through)),
            Ending::Limit | Ending::Native | Ending::Syscall => (Some(fall_through), None),
            _ => (None, None),
        };
        if !is_included {
            flags |= FLAG_EXCLUDED | if is_counted { FLAG_COUNTED } else { 0 };
            if first_target.is_some_and(|pc| self.shared.is_included(pc)) {
                flags |= FLAG_FIRST_EDGE;
            }
            if second_target.is_some_and(|pc| self.shared.is_included(pc)) {
                flags |= FLAG_SECOND_EDGE;
            }
        }
        let is_indirect = matches!(kind, exit_kind::INDIRECT_JUMP | exit_kind::INDIRECT_CALL);
        let is_wanted = is_counted || flags & (FLAG_FIRST_EDGE | FLAG_SECOND_EDGE) != 0;
        if !self.is_counting() || is_indirect || !is_wanted {
            return Counters { flags, ..Counters::NONE };
        }
        let n = if kind == exit_kind::CONDITIONAL { 2 } else { 1 };
        let first = self.take_counters(n);
        if first == NONE {
            self.shared.add(crate::status_field!(uncounted_fragments), 1);
            return Counters { flags, ..Counters::NONE };
        }
        let main = if is_counted || flags & FLAG_FIRST_EDGE != 0 { first } else { NONE };
        let second = if n == 2 && (is_counted || flags & FLAG_SECOND_EDGE != 0) { first + 1 } else { NONE };
        Counters { first, main, second, flags, ..Counters::NONE }
    }

    /// Where both ways of a conditional branch are counted together, if `inc` is possible in the block, and whether that
    /// is done with the taken way's counter. Where a leader counts both, that takes no place.
    ///
    /// The way aside is counted by what is left of both, so that its branch can lead straight to its target. Where that
    /// would take more than `inc` on the straight way, or the way aside is seldom taken, it is the straight way that is
    /// counted so; and where the straight way leads back, so that the branch itself can go there.
    pub fn plan_in_block(
        &self,
        block: &Block,
        ending: Ending,
        is_taken_straight: Option<bool>,
        leads_back: bool,
        habit: Option<Habit>,
        counters: &Counters,
    ) -> Option<(Option<CountPlace>, bool)> {
        let Ending::Conditional(target) = ending else {
            return None;
        };
        if counters.main == NONE || counters.second == NONE {
            return None;
        }
        if counters.is_led && is_taken_straight.is_none() {
            return Some((None, false));
        }
        let is_taken_straight = is_taken_straight?;
        let straight = if is_taken_straight { target } else { block.end() };
        let place = CountPlace::find_for_flags(block, block.instructions.len() - 1);
        if place.is_none() && !counters.is_led {
            return None;
        }
        let counts_aside = leads_back
            || habit.is_some_and(|habit| habit.is_one_sided)
            || !flags::dead_at(&self.ranges, block.pc, straight);
        Some((place, is_taken_straight == counts_aside))
    }
}
