//! Blocks for tests of what is planned, the same on each processor.

use super::block::Block;
use crate::context::addresses::AppPc;
use crate::cpu::code;

/// A block at `pc` that adds something, sets the flag, and goes back to its start or on.
pub fn loop_of_one(pc: AppPc) -> Block {
    let mut block = Block { pc, ..Block::new() };
    for (code, operand) in [(code::ADD, 1i32), (code::LESS, 100), (code::JUMP_IF, -2)] {
        block.code.extend_from_slice(&((operand as u32) << 8 | u32::from(code)).to_le_bytes());
    }
    block
}
