//! Code, instruction by instruction.

use super::{code, WORD};
use crate::arch::sections::Sections;
use crate::context::addresses::CachePc;
use crate::context::numbers::ExitId;
use core::ops::{Deref, DerefMut};

/// Bytes of a word in which a branch can be linked, and of a conditional branch.
pub const WORD_BYTES: u64 = WORD;
pub const BRANCH_BYTES: u64 = WORD;
/// The condition that a fragment is hot.
pub const ZERO: u8 = code::JUMP_HOT;

/// Writes instructions into sections.
pub struct Emitter<'a>(Sections<'a>);

impl<'a> Deref for Emitter<'a> {
    type Target = Sections<'a>;

    fn deref(&self) -> &Sections<'a> {
        &self.0
    }
}

impl DerefMut for Emitter<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<'a> Emitter<'a> {
    pub fn new(hot: &'a mut [u8], hot_base: u64, cold: &'a mut [u8], cold_base: u64) -> Emitter<'a> {
        Emitter(Sections::new(hot, hot_base, cold, cold_base))
    }

    /// Emits an instruction; its address.
    pub fn word(&mut self, code: u8, operand: i64) -> CachePc {
        let at = self.address();
        self.dword((operand as u32) << 8 | u32::from(code));
        at
    }

    /// As a linkable branch: the instruction is changed by one store. Its place is its own address.
    pub fn jump_linkable(&mut self) -> CachePc {
        self.word(code::JUMP, 0)
    }

    pub fn call_linkable(&mut self) -> CachePc {
        self.jump_linkable()
    }

    /// `condition` is the code of the branch.
    pub fn jump_condition_linkable(&mut self, condition: u8) -> CachePc {
        self.word(condition, 0)
    }

    /// A jump forward, to be bound.
    pub fn jump(&mut self) -> CachePc {
        self.jump_linkable()
    }

    pub fn jump_to(&mut self, target: CachePc) {
        let distance = self.address().distance_to(target) / WORD as i64;
        self.word(code::JUMP, distance);
    }

    /// Distances reach everywhere in the cache.
    pub fn jump_anywhere(&mut self, target: CachePc) {
        self.jump_to(target);
    }

    /// Makes the branch at `place` lead here.
    pub fn bind(&mut self, place: CachePc) {
        let distance = place.distance_to(self.address()) / WORD as i64;
        self.patch(place + 1, &(distance as u32).to_le_bytes()[..3]);
    }

    /// Has a linkable jump lead straight on until it is linked.
    pub fn skip_jump(&mut self, patch: CachePc) {
        self.patch(patch + 1, &[1, 0, 0]);
    }

    pub fn leave_by(&mut self, exit_id: ExitId) {
        self.word(code::LEAVE, i64::from(exit_id.raw()));
    }

    pub fn count_heat(&mut self, displacement: u32) {
        self.word(code::HEAT, i64::from(displacement));
    }

    /// All instructions are aligned.
    pub fn align(&mut self, _: u64, _: u64) {}

    /// No register is lent, and calls are jumps.
    pub fn lend(&mut self) {}

    pub fn take_back_lent(&mut self) {}

    pub fn enter_by_call(&mut self, _: bool) {}

    /// Nothing is told of memory.
    pub fn emit_room_question(&mut self, _: ExitId) {}
}
