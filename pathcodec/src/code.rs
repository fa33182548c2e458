//! The code that paths go through: basic blocks, and where each may lead.
//!
//! Tables come from a trace, which may be damaged: every number is checked where it is used.

use crate::protocol::{ending, Block};

/// All blocks of a process, and the targets of its indirect branches.
pub struct Code<'a> {
    blocks: &'a mut [Block],
    targets: &'a [u32],
}

impl<'a> Code<'a> {
    /// `None` if a block leads back to where it came from without a decision, or a slot to another address: a path through
    /// it might never end.
    pub fn new(blocks: &'a mut [Block], targets: &'a [u32]) -> Option<Code<'a>> {
        let leads_forwards = |block: &Block| {
            if block.ending == ending::SLOT {
                return blocks.get(block.target as usize).is_none_or(|held| held.pc == block.pc);
            }
            let successor = match block.ending {
                ending::FALL_THROUGH => block.next,
                ending::JUMP => block.target,
                _ => return true,
            };
            blocks.get(successor as usize).is_none_or(|next| next.pc > block.pc)
        };
        if !blocks.iter().all(leads_forwards) {
            return None;
        }
        Some(Code { blocks, targets })
    }

    pub fn blocks(&self) -> &[Block] {
        self.blocks
    }

    pub fn block(&self, index: u32) -> Option<&Block> {
        self.blocks.get(index as usize)
    }

    /// What is executed where a path comes to block `index`: it, or what the slot holds.
    #[inline]
    pub fn block_at(&self, index: u32) -> Option<(u32, &Block)> {
        let block = self.blocks.get(index as usize)?;
        if block.ending != ending::SLOT {
            return Some((index, block));
        }
        let held = self.blocks.get(block.target as usize).filter(|held| held.ending != ending::SLOT)?;
        Some((block.target, held))
    }

    /// From now on the slot `index` holds `block`.
    pub fn hold(&mut self, index: u32, block: u32) -> Option<()> {
        let slot = self.blocks.get_mut(index as usize).filter(|slot| slot.ending == ending::SLOT)?;
        let pc = slot.pc;
        slot.target = block;
        // So that code leads forwards whatever slots hold.
        self.blocks.get(block as usize).filter(|held| held.pc == pc).map(|_| ())
    }

    /// From now on the conditional branch at the end of block `index` is expected to be taken, or not; a return takes a symbol, or
    /// none.
    pub fn expect(&mut self, index: u32, is_taken: bool) -> Option<()> {
        self.blocks.get_mut(index as usize)?.is_taken = u8::from(is_taken);
        Some(())
    }

    /// The target that a path has this number for, at the indirect branch of `block`.
    pub fn target_of(&self, block: &Block, symbol: u16) -> Option<u32> {
        if u32::from(symbol) >= block.n_targets {
            return None;
        }
        self.targets.get(block.first_target as usize + symbol as usize).copied()
    }
}
