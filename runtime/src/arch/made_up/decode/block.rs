//! A straight run of instructions.

extern crate alloc;
use crate::context::addresses::AppPc;
use crate::cpu::{code, WORD};
use crate::decode::window::CodeWindow;
use crate::decode::{Ending, NoCode, Ranges};
use crate::protocol::{MAX_FRAGMENT_BYTES, MAX_FRAGMENT_INSTRUCTIONS};
use alloc::vec::Vec;

/// The longest instruction.
pub const MAX_INSTRUCTION_BYTES: usize = WORD as usize;

#[derive(Default)]
pub struct Block {
    pub pc: AppPc,
    pub code: Vec<u8>,
    /// Whether the program may write some of the code.
    pub is_writable: bool,
    /// A breakpoint of another's was found at its start: there are none.
    pub meets_breakpoint: bool,
}

impl Block {
    pub const fn new() -> Block {
        Block { pc: AppPc::NOWHERE, code: Vec::new(), is_writable: false, meets_breakpoint: false }
    }

    pub fn size_bytes(&self) -> u64 {
        self.code.len() as u64
    }

    pub fn end(&self) -> AppPc {
        self.pc + self.size_bytes()
    }

    pub fn count(&self) -> usize {
        self.code.len() / MAX_INSTRUCTION_BYTES
    }

    pub fn pc_of(&self, index: usize) -> AppPc {
        self.pc + index as u64 * WORD
    }

    pub fn pc_behind(&self, index: usize) -> AppPc {
        self.pc_of(index + 1)
    }

    pub fn last_pc(&self) -> AppPc {
        self.pc_of(self.count().saturating_sub(1))
    }

    pub fn last_bytes(&self) -> u64 {
        if self.code.is_empty() {
            0
        } else {
            WORD
        }
    }

    pub fn ends_with_stored_pointer(&self) -> bool {
        false
    }

    /// No instruction names an address.
    pub fn named_address(&self, _: usize) -> Option<u64> {
        None
    }

    pub fn bytes_of(&self, index: usize) -> &[u8] {
        &self.code[index * MAX_INSTRUCTION_BYTES..][..MAX_INSTRUCTION_BYTES]
    }

    pub fn truncate(&mut self, n: usize) {
        self.code.truncate(n * MAX_INSTRUCTION_BYTES);
    }
}

/// The code of an instruction, and its operand.
pub fn parts(word: u32) -> (u8, i64) {
    (word as u8, i64::from(word as i32 >> 8))
}

/// Decodes from `pc` into `block`.
pub fn decode_block(block: &mut Block, ranges: &Ranges, pc: AppPc) -> Result<Ending, NoCode> {
    let mut buffer = [0; MAX_FRAGMENT_BYTES as usize];
    let mut window = CodeWindow::open(&mut buffer, ranges, pc);
    *block = Block { pc, is_writable: window.kind == crate::decode::ranges::Kind::Written, ..Block::new() };
    while window.is_open() {
        window.extend();
    }
    for word in window.bytes().chunks_exact(MAX_INSTRUCTION_BYTES) {
        if block.count() as u64 == MAX_FRAGMENT_INSTRUCTIONS {
            return Ok(Ending::Limit);
        }
        let (code, operand) = parts(u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let at = block.end();
        let target = at.wrapping_add((operand * WORD as i64) as u64);
        block.code.extend_from_slice(word);
        return Ok(match code {
            code::NOTHING | code::ADD | code::LESS => continue,
            code::JUMP => Ending::Jump(target),
            code::JUMP_IF => Ending::Conditional(target),
            code::CALL => Ending::Call(target),
            code::RETURN => Ending::Return(0),
            code::JUMP_THERE => Ending::IndirectJump,
            code::CALL_THERE => Ending::IndirectCall,
            code::SYSTEM_CALL => Ending::Syscall,
            code::FAULT => Ending::Fault,
            _ => Ending::Unsupported,
        });
    }
    if block.count() == 0 {
        return Err(NoCode::Missing(window.end()));
    }
    Ok(Ending::Limit)
}
