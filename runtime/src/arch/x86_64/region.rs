//! What tags take of a thread's private block (mode `region`), and the instructions that reach it. But for `cmp` none of them
//! touches the flags.
//!
//! The room is that of the shadow stack, which no thread of this mode has. Each block has a cell of two bytes: the lower one
//! is 1 while the thread is busy and counts the block, the upper one is its level. Levels are stored plus one, so that what
//! was never executed is zero; they end at the limit. A table says what the thread's level becomes (instrument/tags/rules.rs).

use super::emit::Emitter;
use super::{RCX, TARGET};
use crate::context::layout::SHADOW_OFFSET;
use crate::context::numbers::BlockNumber;
use crate::protocol;

/// The blocks' cells.
pub const REGION_CELLS_OFFSET: u64 = SHADOW_OFFSET;
/// By a block's level (times 256) and the thread's: what both become, or 0 where the dispatcher is to decide.
pub const REGION_TABLE_OFFSET: u64 = REGION_CELLS_OFFSET + protocol::REGION_BLOCKS * 2;
pub const REGION_TABLE_BYTES: u64 = 0x1_0000;
/// The thread's level, one byte.
pub const REGION_LEVEL_OFFSET: u64 = REGION_TABLE_OFFSET + REGION_TABLE_BYTES;
/// All of it.
pub const REGION_BYTES: u64 = REGION_LEVEL_OFFSET + protocol::PAGE_BYTES - REGION_CELLS_OFFSET;

const _: () = assert!(REGION_CELLS_OFFSET + REGION_BYTES <= protocol::THREAD_COUNTERS_OFFSET);
const _: () = assert!(REGION_BYTES.is_multiple_of(protocol::PAGE_BYTES));
const _: () = assert!(protocol::MAX_BUSY_LIMIT + 1 < 256);
const _: () = assert!(protocol::REGION_BLOCKS < 1 << protocol::REGION_KIND_SHIFT);
const _: () = assert!(
    protocol::REGION_NUMBERS_OFFSET + protocol::REGION_BUFFER_BYTES + protocol::BUFFER_GUARD_BYTES
        <= protocol::REGION_WINDOW_BYTES
);

/// gs displacement of the ends of the buffers of words and of numbers.
pub const WORDS_END_OFFSET: u64 =
    protocol::THREAD_COUNTERS_OFFSET + protocol::REGION_WORDS_OFFSET + protocol::REGION_BUFFER_BYTES;
pub const NUMBERS_END_OFFSET: u64 =
    protocol::THREAD_COUNTERS_OFFSET + protocol::REGION_NUMBERS_OFFSET + protocol::REGION_BUFFER_BYTES;

/// gs displacement of a block's cell.
pub fn gs_region_cell(block: BlockNumber) -> u32 {
    REGION_CELLS_OFFSET as u32 + block.raw() * 2
}

impl Emitter<'_> {
    /// cmp byte gs:[displacement], 0: sets the flags. Never relative to eip, so that it becomes one operation with the branch
    /// behind it; what is compared is hardly ever stored to.
    pub fn compare_gs_byte_zero(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0x80, 0x3c, 0x25]);
        self.dword(displacement);
        self.bytes(&[0]);
    }

    /// movzx ecx, byte gs:[displacement]
    pub fn load_gs_byte_to_rcx(&mut self, displacement: u32) {
        self.gs_operand(&[], 0, &[0x0f, 0xb6], RCX.0, displacement, 0);
    }

    /// movzx r11d, byte gs:[displacement]
    pub fn load_gs_byte_to_target(&mut self, displacement: u32) {
        self.gs_operand(&[], 0x44, &[0x0f, 0xb6], TARGET.0 & 7, displacement, 0);
    }

    /// movzx r11d, word gs:[displacement]
    pub fn load_gs_word_to_target(&mut self, displacement: u32) {
        self.gs_operand(&[], 0x44, &[0x0f, 0xb7], TARGET.0 & 7, displacement, 0);
    }

    /// movzx ecx, byte gs:[displacement + r11 + rcx]
    pub fn load_gs_table_byte_to_rcx(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0x41, 0x0f, 0xb6, 0x84 | RCX.0 << 3, RCX.0 << 3 | (TARGET.0 & 7)]);
        self.dword(displacement);
    }

    /// mov byte gs:[displacement], cl
    pub fn store_gs_byte_of_rcx(&mut self, displacement: u32) {
        self.gs_operand(&[], 0, &[0x88], RCX.0, displacement, 0);
    }

    /// mov dword gs:[displacement + r11], immediate
    pub fn store_gs_immediate_at_target(&mut self, displacement: u32, immediate: u32) {
        self.bytes(&[0x65, 0x41, 0xc7, 0x80 | (TARGET.0 & 7)]);
        self.dword(displacement);
        self.dword(immediate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};

    fn decode_one(emit: impl FnOnce(&mut Emitter)) -> Instruction {
        let mut buffer = [0u8; 32];
        let mut emitter = Emitter::new(&mut buffer, 0x1000, &mut [], 0);
        emit(&mut emitter);
        let size = emitter.position();
        let instruction = Decoder::with_ip(64, &buffer[..size], 0x1000, DecoderOptions::NONE).decode();
        assert_eq!((instruction.len(), instruction.memory_segment()), (size, Register::GS));
        instruction
    }

    #[test]
    fn the_question_reads_the_cell() {
        let compare = decode_one(|e| e.compare_gs_byte_zero(0x1234));
        assert_eq!((compare.code(), compare.memory_displacement64()), (Code::Cmp_rm8_imm8, 0x1234));
        let load = decode_one(|e| e.load_gs_byte_to_rcx(0x1234));
        assert_eq!((load.code(), load.op0_register()), (Code::Movzx_r32_rm8, Register::ECX));
        assert_eq!(load.memory_displacement64(), 0x1234);
        let byte = decode_one(|e| e.load_gs_byte_to_target(0x4321));
        assert_eq!((byte.code(), byte.op0_register()), (Code::Movzx_r32_rm8, Register::R11D));
        assert_eq!(byte.memory_displacement64(), 0x4321);
        let word = decode_one(|e| e.load_gs_word_to_target(0x5678));
        assert_eq!((word.code(), word.op0_register()), (Code::Movzx_r32_rm16, Register::R11D));
        assert_eq!(word.memory_displacement64(), 0x5678);
    }

    #[test]
    fn the_table_is_indexed_by_both_levels() {
        let load = decode_one(|e| e.load_gs_table_byte_to_rcx(0x70_0000));
        assert_eq!((load.code(), load.op0_register()), (Code::Movzx_r32_rm8, Register::ECX));
        assert_eq!((load.memory_base(), load.memory_index()), (Register::R11, Register::RCX));
        assert_eq!((load.memory_index_scale(), load.memory_displacement64()), (1, 0x70_0000));
        let store = decode_one(|e| e.store_gs_byte_of_rcx(0x99));
        assert_eq!((store.code(), store.op1_register()), (Code::Mov_rm8_r8, Register::CL));
        assert_eq!(store.memory_displacement64(), 0x99);
        let word = decode_one(|e| e.store_gs_immediate_at_target(0x80_0000, 77));
        assert_eq!((word.code(), word.memory_base()), (Code::Mov_rm32_imm32, Register::R11));
        assert_eq!((word.memory_displacement64(), word.immediate32()), (0x80_0000, 77));
    }
}
