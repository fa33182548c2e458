//! Code that is added to a block: instructions as if they were at one of its addresses, or bytes that are executed as they are:
//! on the runtime's stack, with the program's stack pointer on top, or with no stack at all.

extern crate alloc;
use super::{Mangler, Spare};
use crate::context::addresses::AppPc;
use crate::cpu::decode::block::decoder_options;
use crate::cpu::decode::in_place::{is_in_place, uses_gs_memory};
use crate::cpu::displacements::{GS_CAPTURE_BEHIND, GS_CAPTURE_SPILLED, GS_SPILL_OTHER, GS_STACK_TOP};
use crate::cpu::emit::Emitter;
use crate::cpu::spill::SpillState;
use crate::cpu::{Gpr, RAX, RSP};
use crate::protocol::{InlinePiece, MAX_INLINE_REGISTERS};
use alloc::vec::Vec;
use iced_x86::{Code, ConstantOffsets, Decoder, FlowControl, Instruction};

/// What is added in one place.
pub enum Added {
    Instructions(Vec<AddedInstruction>),
    Verbatim(Vec<u8>),
    Inline(Inline),
    Mark(u32),
}

/// Bytes that use no stack, and the registers that they change.
pub struct Inline {
    registers: Vec<Gpr>,
    keeps_flags: bool,
    bytes: Vec<u8>,
}

/// Where registers are kept around such bytes: captures, which stand in front of the block, need these slots no more.
fn slot(index: usize) -> u32 {
    GS_CAPTURE_SPILLED + 8 * index as u32
}
const FLAGS_SLOT: usize = MAX_INLINE_REGISTERS as usize;
const RAX_SLOT: usize = FLAGS_SLOT + 1;

impl Inline {
    /// rax and the flags in front of the bytes, then the other registers; the other way round behind them.
    fn emit(&self, emitter: &mut Emitter) {
        let changes_rax = self.registers.contains(&RAX);
        let others = || self.registers.iter().filter(|register| **register != RAX).enumerate();
        if changes_rax || self.keeps_flags {
            emitter.store_gs(slot(RAX_SLOT), RAX);
        }
        if self.keeps_flags {
            emitter.save_flags_to_rax();
            if changes_rax {
                emitter.store_gs(slot(FLAGS_SLOT), RAX);
            }
        }
        others().for_each(|(index, register)| emitter.store_gs(slot(index), *register));
        emitter.bytes(&self.bytes);
        others().for_each(|(index, register)| emitter.load_gs(*register, slot(index)));
        if self.keeps_flags {
            if changes_rax {
                emitter.load_gs(RAX, slot(FLAGS_SLOT));
            }
            emitter.restore_flags_from_rax();
        }
        if changes_rax || self.keeps_flags {
            emitter.load_gs(RAX, slot(RAX_SLOT));
        }
    }
}

/// An instruction that is added.
pub struct AddedInstruction {
    instruction: Instruction,
    offsets: ConstantOffsets,
    bytes: Vec<u8>,
}

impl Emitter<'_> {
    /// `push gs:[displacement]`.
    fn push_gs(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0xff, 0x34, 0x25]);
        self.bytes(&displacement.to_le_bytes());
    }
}

impl Added {
    /// Instructions, the first of which is taken to be at `pc`; `None`: one of them is unknown, or ends a block, or uses gs, which is not
    /// the program's.
    pub fn decode(bytes: &[u8], pc: AppPc) -> Option<Added> {
        let mut decoder = Decoder::with_ip(64, bytes, pc.raw(), decoder_options());
        let mut instructions = Vec::new();
        while decoder.can_decode() {
            let start = decoder.position();
            let instruction = decoder.decode();
            if instruction.code() == Code::INVALID || may_end_block(&instruction) || uses_gs_memory(&instruction) {
                return None;
            }
            let offsets = decoder.get_constant_offsets(&instruction);
            instructions.push(AddedInstruction {
                instruction,
                offsets,
                bytes: bytes[start..decoder.position()].to_vec(),
            });
        }
        Some(Added::Instructions(instructions))
    }

    pub fn verbatim(bytes: &[u8]) -> Added {
        Added::Verbatim(bytes.to_vec())
    }

    /// Bytes that use no stack; `None`: they change what can't be kept.
    pub fn inline(head: InlinePiece, bytes: &[u8]) -> Option<Added> {
        let registers: Vec<Gpr> = (0..16).filter(|number| head.registers >> number & 1 != 0).map(Gpr).collect();
        let can_be_kept = registers.len() as u64 <= MAX_INLINE_REGISTERS && !registers.contains(&RSP);
        let keeps_flags = head.keeps_flags != 0;
        can_be_kept.then(|| Added::Inline(Inline { registers, keeps_flags, bytes: bytes.to_vec() }))
    }

    /// What the thread is to have for where it comes from (Capture::behind).
    pub fn mark(number: u32) -> Added {
        Added::Mark(number)
    }

    /// Emits it where no register is lent. What it may consist of can all be emitted.
    pub fn emit(&self, mangler: &mut Mangler, emitter: &mut Emitter, mark: &mut dyn FnMut(usize, SpillState)) {
        match self {
            Added::Inline(inline) => inline.emit(emitter),
            Added::Mark(number) => emitter.store_gs_immediate(GS_CAPTURE_BEHIND, *number),
            Added::Verbatim(bytes) => {
                // Nobody else is on that stack while translated code runs; signals come on another one.
                emitter.store_gs(GS_SPILL_OTHER, RSP);
                emitter.load_gs(RSP, GS_STACK_TOP);
                emitter.push_gs(GS_SPILL_OTHER);
                emitter.bytes(bytes);
                emitter.bytes(&[0x5c]); // pop rsp
            }
            Added::Instructions(instructions) => {
                for one in instructions {
                    let AddedInstruction { instruction, offsets, bytes } = one;
                    mark(emitter.position(), SpillState::None);
                    let _ = mangler.emit(emitter, instruction, bytes, offsets, Spare::Spilled, mark);
                }
            }
        }
    }
}

/// Whether an instruction may end a block, or stops a thread: it goes on elsewhere than behind itself, or not where it is a copy.
fn may_end_block(instruction: &Instruction) -> bool {
    instruction.flow_control() != FlowControl::Next || is_in_place(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_kept_is_refused() {
        let inline = |registers: u16| Added::inline(InlinePiece { registers, keeps_flags: 1, reserved: 0 }, &[0x90]);
        assert!(inline(0b1100_1100_0000_0011).is_some());
        assert!(inline(1 << RSP.0).is_none());
        assert!(inline(0xef).is_none(), "too many");
    }
}
