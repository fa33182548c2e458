//! A straight run of application instructions, decoded.

extern crate alloc;
use super::ranges::Ranges;
use crate::protocol::{MAX_FRAGMENT_BYTES, MAX_FRAGMENT_INSTRUCTIONS};
use crate::sys::kernel::PROT_WRITE;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use iced_x86::{Code, ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The size limit, or the end of what is known to be executable.
    Limit,
    /// A direct jump.
    Jump(u64),
    /// A conditional jump, loop or jrcxz: target when taken.
    Conditional(u64),
    /// A direct call.
    Call(u64),
    IndirectJump,
    IndirectCall,
    /// A return, with the bytes of arguments it drops.
    Return(u16),
    Syscall,
    /// xbegin: the abort path.
    TransactionBegin(u64),
    /// An instruction that faults always (ud2), or that the decoder does not know.
    Fault,
    /// An instruction that this runtime hands back to native: far and 16-bit branches.
    Unsupported,
}

static DECODER_OPTIONS: AtomicU32 = AtomicU32::new(DecoderOptions::AMD);

/// How this processor's maker decodes what the makers decode differently: branches with an operand size of 16 bits, which
/// one truncates and the other does not.
pub fn decoder_options() -> u32 {
    DECODER_OPTIONS.load(Ordering::Relaxed)
}

/// Whether the processor is one of AMD's or of its kin.
pub fn is_amd() -> bool {
    let vendor = core::arch::x86_64::__cpuid(0);
    // "AuthenticAMD" and "HygonGenuine" start in ebx.
    vendor.ebx == u32::from_le_bytes(*b"Auth") || vendor.ebx == u32::from_le_bytes(*b"Hygo")
}

/// Chooses how to decode. Once, at the start.
pub fn initialize() {
    let options = if is_amd() { DecoderOptions::AMD } else { DecoderOptions::NONE };
    DECODER_OPTIONS.store(options, Ordering::Relaxed);
}

/// A decoded block: its instructions, with where their constants lie.
#[derive(Default)]
pub struct Block {
    pub pc: u64,
    pub instructions: Vec<Instruction>,
    pub offsets: Vec<ConstantOffsets>,
    pub code: Vec<u8>,
}

impl Block {
    pub fn size_bytes(&self) -> u64 {
        self.code.len() as u64
    }

    pub fn end(&self) -> u64 {
        self.pc + self.size_bytes()
    }

    /// The bytes of instruction `index`.
    pub fn bytes_of(&self, index: usize) -> &[u8] {
        let instruction = &self.instructions[index];
        let start = (instruction.ip() - self.pc) as usize;
        &self.code[start..start + instruction.len()]
    }
}

/// Decodes from `pc` into `block`; `None` where no code can be read.
pub fn decode_block(block: &mut Block, ranges: &Ranges, pc: u64) -> Option<Ending> {
    block.pc = pc;
    block.instructions.clear();
    block.offsets.clear();
    block.code.clear();
    let code = ranges.code_at(pc, MAX_FRAGMENT_BYTES as usize);
    if code.is_empty() {
        return None;
    }
    let is_writable = ranges.find(pc).is_some_and(|range| range.protection & PROT_WRITE != 0);
    let mut decoder = Decoder::with_ip(64, code, pc, decoder_options());
    let mut instruction = Instruction::default();
    let ending = loop {
        if block.instructions.len() as u64 == MAX_FRAGMENT_INSTRUCTIONS || !decoder.can_decode() {
            break Ending::Limit;
        }
        let start = decoder.position();
        decoder.decode_out(&mut instruction);
        if instruction.code() == Code::INVALID {
            if !block.instructions.is_empty() {
                break Ending::Limit;
            }
            if decoder.last_error() == iced_x86::DecoderError::NoMoreBytes && code.len() < 15 {
                return None;
            }
            // One byte stands for what the decoder does not know; the processor would refuse it too.
            block.code.push(code[0]);
            return Some(Ending::Fault);
        }
        block.offsets.push(decoder.get_constant_offsets(&instruction));
        block.instructions.push(instruction);
        block.code.extend_from_slice(&code[start..decoder.position()]);
        if let Some(ending) = ending_of(&instruction) {
            break ending;
        }
        if is_writable && may_write_memory(&instruction) {
            break Ending::Limit;
        }
    };
    Some(ending)
}

/// Whether an instruction may write what comes after it: anything that names memory, but for mere addresses.
fn may_write_memory(instruction: &Instruction) -> bool {
    let is_address_only = matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    let names_memory = |kind| {
        !matches!(
            kind,
            OpKind::Register
                | OpKind::Immediate8
                | OpKind::Immediate8_2nd
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate64
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        )
    };
    let is_on_stack = instruction.stack_pointer_increment() < 0;
    !is_address_only && (is_on_stack || (0..instruction.op_count()).any(|i| names_memory(instruction.op_kind(i))))
}

/// How `instruction` ends a block, if it does.
fn ending_of(instruction: &Instruction) -> Option<Ending> {
    let code = instruction.code();
    match instruction.flow_control() {
        FlowControl::Next => None,
        FlowControl::UnconditionalBranch => match code {
            Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Some(Ending::Jump(instruction.near_branch_target())),
            _ => Some(Ending::Unsupported),
        },
        FlowControl::ConditionalBranch => {
            if instruction.is_jcc_short() || instruction.is_jcc_near() {
                match code {
                    // 16-bit forms truncate rip on some processors and not on others.
                    _ if instruction.op0_kind() != iced_x86::OpKind::NearBranch64 => Some(Ending::Unsupported),
                    _ => Some(Ending::Conditional(instruction.near_branch_target())),
                }
            } else if instruction.op0_kind() == iced_x86::OpKind::NearBranch64 {
                Some(Ending::Conditional(instruction.near_branch_target()))
            } else {
                Some(Ending::Unsupported)
            }
        }
        FlowControl::Call => match code {
            Code::Syscall => Some(Ending::Syscall),
            Code::Call_rel32_64 => Some(Ending::Call(instruction.near_branch_target())),
            Code::Sysenter | Code::Call_rel16 | Code::Call_ptr1616 | Code::Call_ptr1632 => Some(Ending::Unsupported),
            _ => None,
        },
        FlowControl::IndirectBranch => match code {
            Code::Jmp_rm64 => Some(Ending::IndirectJump),
            _ => Some(Ending::Unsupported),
        },
        FlowControl::IndirectCall => match code {
            Code::Call_rm64 => Some(Ending::IndirectCall),
            _ => Some(Ending::Unsupported),
        },
        FlowControl::Return => match code {
            Code::Retnq => Some(Ending::Return(0)),
            Code::Retnq_imm16 => Some(Ending::Return(instruction.immediate16())),
            // Privileged: they fault where they stand.
            Code::Sysexitd | Code::Sysexitq | Code::Sysretd | Code::Sysretq => None,
            _ => Some(Ending::Unsupported),
        },
        FlowControl::XbeginXabortXend => match code {
            Code::Xbegin_rel16 => Some(Ending::Unsupported),
            Code::Xbegin_rel32 => Some(Ending::TransactionBegin(instruction.near_branch_target())),
            _ => None,
        },
        FlowControl::Exception => Some(Ending::Fault),
        // The 32-bit system calls have numbers of their own, which nothing here knows.
        FlowControl::Interrupt if code == Code::Int_imm8 && instruction.immediate8() == 0x80 => {
            Some(Ending::Unsupported)
        }
        FlowControl::Interrupt => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(code: &[u8]) -> (usize, Option<Ending>) {
        let base = code.as_ptr() as u64;
        let mut ranges = Ranges::new();
        ranges.insert(base, base + code.len() as u64, 5, true);
        let mut block = Block::default();
        let ending = decode_block(&mut block, &ranges, base);
        (block.instructions.len(), ending)
    }

    #[test]
    fn branches_end_blocks() {
        assert_eq!(ending(&[0x90, 0xc3]), (2, Some(Ending::Return(0))));
        assert_eq!(ending(&[0xc2, 8, 0]), (1, Some(Ending::Return(8))));
        assert_eq!(ending(&[0x0f, 0x05]), (1, Some(Ending::Syscall)));
        assert_eq!(ending(&[0xff, 0xe0]), (1, Some(Ending::IndirectJump)));
        assert_eq!(ending(&[0xff, 0xd0]), (1, Some(Ending::IndirectCall)));
        assert_eq!(ending(&[0xff, 0x28]), (1, Some(Ending::Unsupported)), "far jump");
        assert_eq!(ending(&[0xcb]), (1, Some(Ending::Unsupported)), "far return");
        assert_eq!(ending(&[0x0f, 0x0b]), (1, Some(Ending::Fault)), "ud2");
        assert_eq!(ending(&[0x66, 0xe9, 0, 0, 0, 0]).1, Some(Ending::Unsupported), "16-bit jump");
    }

    #[test]
    fn data16_tls_call_is_near() {
        let (n, end) = ending(&[0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0]);
        assert_eq!(n, 1);
        assert!(matches!(end, Some(Ending::Call(_))));
    }

    #[test]
    fn unknown_bytes_fault_alone() {
        assert_eq!(ending(&[0x06; 16]), (0, Some(Ending::Fault)));
        assert_eq!(ending(&[0x90, 0x06]), (1, Some(Ending::Limit)));
    }

    #[test]
    fn cut_instructions_are_not_code() {
        assert_eq!(ending(&[0xe8, 0]), (0, None));
    }
}
