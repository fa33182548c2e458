//! Blocks for tests of what is planned, the same on each processor.

use super::block::Block;
use crate::context::addresses::AppPc;
use iced_x86::{Decoder, DecoderOptions};

/// A block at `pc` that adds something, sets flags, and goes back to its start or on.
pub fn loop_of_one(pc: AppPc) -> Block {
    // add rax, rcx; dec rcx; jnz back
    let code = &[0x48, 0x01, 0xc8, 0x48, 0xff, 0xc9, 0x75, 0xf8];
    let mut block = Block::new();
    block.pc = pc;
    block.code.extend_from_slice(code);
    block.instructions.extend(&mut Decoder::with_ip(64, code, pc.raw(), DecoderOptions::NONE));
    block
}
