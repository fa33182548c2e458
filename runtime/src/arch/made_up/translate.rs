//! An application instruction in the cache: all mean the same everywhere but branches, which the way out has.

extern crate alloc;
use super::decode::block::Block;
use super::emit::Emitter;
use super::spill::SpillState;
use crate::context::addresses::AppPc;
use crate::cpu::code;
use crate::cpu::decode::block::{parts, MAX_INSTRUCTION_BYTES};
use crate::protocol::InlinePiece;
use alloc::vec::Vec;

/// Why an instruction could not be mangled.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsupported;

/// Which registers the code of an instruction may use beside the program's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spare {
    Spilled,
    Lent,
}

pub struct Mangler;

impl Mangler {
    pub fn emit_of(
        &mut self,
        emitter: &mut Emitter,
        block: &Block,
        index: usize,
        _: Spare,
        _: &mut dyn FnMut(usize, SpillState),
    ) -> Result<(), Unsupported> {
        emitter.bytes(block.bytes_of(index));
        Ok(())
    }

    /// Nothing is told of memory.
    pub fn has_accesses(&mut self, _: &Block) -> bool {
        false
    }

    pub fn tell_before(&mut self, _: &mut Emitter, _: &Block, _: usize) {}

    pub fn tell_behind(&mut self, _: &mut Emitter, _: &Block, _: usize, _: &mut dyn FnMut(usize, SpillState)) {}

    pub fn tell_ahead(&mut self, _: &mut Emitter, _: &Block, _: &mut dyn FnMut(usize, SpillState)) {}
}

/// Code that is added to a block.
pub struct Added(Vec<u8>);

impl Added {
    /// Instructions that go on behind themselves; `None`: there are others among them.
    pub fn decode(bytes: &[u8], _: AppPc) -> Option<Added> {
        let words = bytes.chunks(MAX_INSTRUCTION_BYTES);
        let is_plain = |word: &[u8]| {
            let word = word.try_into().map(u32::from_le_bytes);
            word.is_ok_and(|word| matches!(parts(word).0, code::NOTHING | code::ADD | code::LESS))
        };
        words.into_iter().all(is_plain).then(|| Added::verbatim(bytes))
    }

    pub fn verbatim(bytes: &[u8]) -> Added {
        Added(bytes.to_vec())
    }

    pub fn mark(_: u32) -> Added {
        Added::verbatim(&[])
    }

    pub fn inline(_: InlinePiece, bytes: &[u8]) -> Option<Added> {
        Some(Added::verbatim(bytes))
    }

    pub fn emit(&self, _: &mut Mangler, emitter: &mut Emitter, _: &mut dyn FnMut(usize, SpillState)) {
        emitter.bytes(&self.0);
    }
}
