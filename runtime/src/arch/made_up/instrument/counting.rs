//! Counters: one instruction each, anywhere.

use crate::cache::fragment::Habit;
use crate::context::numbers::CounterId;
use crate::cpu::code;
use crate::cpu::decode::block::{parts, Block};
use crate::cpu::emit::Emitter;
use crate::instrument::branch_way::BranchWay;

/// Loops count in no register.
pub const KEPT_COUNTER: () = ();
pub const KEPT_DECISIONS: () = ();

/// Where a block's counter is incremented, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountPlace {
    pub before: usize,
    pub way: CountWay,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountWay {
    /// There is no other.
    Flags,
}

impl CountPlace {
    pub const AT_START: CountPlace = CountPlace { before: 0, way: CountWay::Flags };

    pub fn find(_: &Block, n: usize, _: bool) -> CountPlace {
        CountPlace { before: n / 2, way: CountWay::Flags }
    }

    pub fn find_for_flags(block: &Block, n: usize) -> Option<CountPlace> {
        Some(CountPlace::find(block, n, true))
    }

    pub fn spilled(self) -> CountPlace {
        self
    }

    pub fn kept_in(self, (): ()) -> CountPlace {
        self
    }

    pub fn size_bytes(&self) -> (u64, bool) {
        (4, true)
    }

    pub fn emit(&self, emitter: &mut Emitter, counter: CounterId, is_lending: bool) {
        emit_count(emitter, counter, true, is_lending);
    }
}

/// Emits `counter += 1`; nothing for `NONE`.
pub fn emit_count(emitter: &mut Emitter, counter: CounterId, _: bool, _: bool) {
    if counter != CounterId::NONE {
        emitter.word(code::COUNT, i64::from(counter.raw()));
    }
}

/// Nothing is gained by writing a counter again.
pub fn emit_rewrite(_: &mut Emitter, _: CounterId, _: bool) {}

/// Loops are expected to go backwards.
pub fn find_straight_way(block: &Block, habit: Option<Habit>) -> Option<BranchWay> {
    let last = block.bytes_of(block.count().checked_sub(1)?);
    let (_, distance) = parts(u32::from_le_bytes([last[0], last[1], last[2], last[3]]));
    Some(BranchWay::of(habit.map_or(distance <= 0, |habit| habit.is_mostly_taken)))
}

pub fn are_flags_dead_at_start(_: &Block, _: bool) -> bool {
    true
}

pub fn has_trap(_: &Block, _: usize) -> bool {
    false
}

pub fn may_stand_before(_: &Block, _: usize) -> bool {
    true
}
