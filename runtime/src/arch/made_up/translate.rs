//! An application instruction in the cache: all mean the same everywhere but branches, which the way out has.

use super::decode::block::Block;
use super::emit::Emitter;
use super::spill::SpillState;

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
}
