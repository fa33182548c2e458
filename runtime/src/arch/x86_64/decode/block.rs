//! A straight run of application instructions, decoded.

extern crate alloc;
use super::MAX_INSTRUCTION_BYTES;
use crate::context::addresses::AppPc;
use crate::cpu::decode::float_state::stored_pointer;
use crate::cpu::decode::in_place::is_in_place;
use crate::cpu::decode::named::named_address;
use crate::cpu::decode::placed;
use crate::decode::ending::{Ending, NoCode};
use crate::decode::ranges::{Kind, Ranges};
use crate::decode::window::CodeWindow;
use crate::protocol::{exit_kind, MAX_FRAGMENT_BYTES, MAX_FRAGMENT_INSTRUCTIONS};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use iced_x86::{Code, ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

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

/// Where an instruction is.
pub fn pc_of(instruction: &Instruction) -> AppPc {
    AppPc::from_raw(instruction.ip())
}

/// Where the instruction behind it is.
pub fn pc_behind(instruction: &Instruction) -> AppPc {
    AppPc::from_raw(instruction.next_ip())
}

/// Where a direct branch leads when it is taken.
pub fn branch_target(instruction: &Instruction) -> AppPc {
    AppPc::from_raw(instruction.near_branch_target())
}

/// A decoded block: its instructions, with where their constants lie.
#[derive(Default)]
pub struct Block {
    pub pc: AppPc,
    pub instructions: Vec<Instruction>,
    pub offsets: Vec<ConstantOffsets>,
    pub code: Vec<u8>,
    /// Whether the program may write some of the code.
    pub is_writable: bool,
    /// A breakpoint of another's was found at its start, just now.
    pub meets_breakpoint: bool,
    /// Where code is copied to.
    buffer: Vec<u8>,
}

impl Block {
    pub const fn new() -> Block {
        Block {
            pc: AppPc::NOWHERE,
            instructions: Vec::new(),
            offsets: Vec::new(),
            code: Vec::new(),
            is_writable: false,
            meets_breakpoint: false,
            buffer: Vec::new(),
        }
    }

    pub fn size_bytes(&self) -> u64 {
        self.code.len() as u64
    }

    pub fn end(&self) -> AppPc {
        self.pc + self.size_bytes()
    }

    /// Keeps the first `n` instructions only.
    pub fn truncate(&mut self, n: usize) {
        if let Some(first) = self.instructions.get(n) {
            self.code.truncate((pc_of(first) - self.pc) as usize);
        }
        self.instructions.truncate(n);
        self.offsets.truncate(n);
    }

    /// How many instructions it has.
    pub fn count(&self) -> usize {
        self.instructions.len()
    }

    /// The address of instruction `index`.
    pub fn pc_of(&self, index: usize) -> AppPc {
        pc_of(&self.instructions[index])
    }

    /// The address of its last instruction; its own if it has none.
    pub fn last_pc(&self) -> AppPc {
        self.instructions.last().map_or(self.pc, pc_of)
    }

    /// How many bytes its last instruction has.
    pub fn last_bytes(&self) -> u64 {
        self.instructions.last().map_or(0, |last| last.len() as u64)
    }

    /// Whether its last instruction stores where the last one of the floating point unit was.
    pub fn ends_with_stored_pointer(&self) -> bool {
        self.instructions.last().is_some_and(|last| stored_pointer(last).is_some())
    }

    /// The address behind instruction `index`.
    pub fn pc_behind(&self, index: usize) -> AppPc {
        pc_behind(&self.instructions[index])
    }

    /// The address that instruction `index` names as a constant, if it does.
    pub fn named_address(&self, index: usize) -> Option<u64> {
        named_address(&self.instructions[index])
    }

    /// The bytes of instruction `index`.
    pub fn bytes_of(&self, index: usize) -> &[u8] {
        let instruction = &self.instructions[index];
        let start = (pc_of(instruction) - self.pc) as usize;
        &self.code[start..start + instruction.len()]
    }
}

/// Decodes from `pc` into `block`.
pub fn decode_block(block: &mut Block, ranges: &Ranges, pc: AppPc) -> Result<Ending, NoCode> {
    block.pc = pc;
    block.instructions.clear();
    block.offsets.clear();
    block.code.clear();
    let mut buffer = core::mem::take(&mut block.buffer);
    buffer.resize(MAX_FRAGMENT_BYTES as usize, 0);
    let mut window = CodeWindow::open(&mut buffer, ranges, pc);
    block.is_writable = window.kind == Kind::Written;
    block.meets_breakpoint = false;
    let ending = decode_window(block, &mut window);
    block.buffer = buffer;
    ending
}

fn decode_window(block: &mut Block, window: &mut CodeWindow) -> Result<Ending, NoCode> {
    'extended: loop {
        window.extend();
        // Decodes up to where an instruction may be cut by what was read so far.
        let start = block.code.len();
        let code = &window.bytes()[start..];
        let mut decoder = Decoder::with_ip(64, code, (block.pc + start as u64).raw(), decoder_options());
        loop {
            let left = code.len() - decoder.position();
            if block.instructions.len() as u64 == MAX_FRAGMENT_INSTRUCTIONS {
                return Ok(Ending::Limit);
            }
            if left < MAX_INSTRUCTION_BYTES && window.is_open() {
                break;
            }
            if left == 0 && !block.instructions.is_empty() {
                return Ok(Ending::Limit);
            }
            if left == 0 {
                return Err(NoCode::Missing(window.end()));
            }
            let position = start + decoder.position();
            let pc = block.pc + position as u64;
            if !block.is_writable && placed::learn(pc, window.bytes()[position]) {
                block.meets_breakpoint |= position == 0;
            }
            if let Some((instruction, length)) = placed::instruction_at(pc) {
                if window.differs(position, &instruction[..length]) {
                    window.put(position, &instruction[..length]);
                    continue 'extended;
                }
            }
            if let Some(ending) = decode_one(block, window, &mut decoder, code)? {
                return Ok(ending);
            }
        }
    }
}

/// Decodes one instruction; how it ends the block, if it does.
fn decode_one(
    block: &mut Block,
    window: &CodeWindow,
    decoder: &mut Decoder,
    code: &[u8],
) -> Result<Option<Ending>, NoCode> {
    let is_first = block.instructions.is_empty();
    let start = decoder.position();
    let mut instruction = Instruction::default();
    decoder.decode_out(&mut instruction);
    if instruction.code() == Code::INVALID {
        if !is_first {
            return Ok(Some(Ending::Limit));
        }
        let is_cut = decoder.last_error() == iced_x86::DecoderError::NoMoreBytes;
        return Err(if is_cut { NoCode::Missing(window.end()) } else { NoCode::Unknown });
    }
    let is_over_border = block.code.len() + instruction.len() > window.same_kind;
    if is_over_border && !is_first {
        return Ok(Some(Ending::Limit));
    }
    block.is_writable |= is_over_border;
    block.offsets.push(decoder.get_constant_offsets(&instruction));
    block.instructions.push(instruction);
    block.code.extend_from_slice(&code[start..decoder.position()]);
    let is_last =
        is_over_border || stored_pointer(&instruction).is_some() || block.is_writable && may_write_memory(&instruction);
    let ending = match ending_of(&instruction) {
        Some(Ending::IndirectJump) if is_in_place(&instruction) => Some(Ending::NativeBranch(exit_kind::INDIRECT_JUMP)),
        Some(Ending::IndirectCall) if is_in_place(&instruction) => Some(Ending::NativeBranch(exit_kind::INDIRECT_CALL)),
        None if is_in_place(&instruction) => Some(Ending::Native),
        ending => ending,
    };
    Ok(ending.or(is_last.then_some(Ending::Limit)))
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
            Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Some(Ending::Jump(branch_target(instruction))),
            _ => Some(Ending::NativeBranch(exit_kind::INDIRECT_JUMP)),
        },
        FlowControl::ConditionalBranch => {
            if instruction.is_jcc_short() || instruction.is_jcc_near() {
                match code {
                    // 16-bit forms truncate rip on some processors and not on others.
                    _ if instruction.op0_kind() != iced_x86::OpKind::NearBranch64 => {
                        Some(Ending::NativeBranch(exit_kind::INDIRECT_JUMP))
                    }
                    _ => Some(Ending::Conditional(branch_target(instruction))),
                }
            } else if instruction.op0_kind() == iced_x86::OpKind::NearBranch64 {
                Some(Ending::Conditional(branch_target(instruction)))
            } else {
                Some(Ending::NativeBranch(exit_kind::INDIRECT_JUMP))
            }
        }
        FlowControl::Call => match code {
            Code::Syscall => Some(Ending::Syscall),
            Code::Call_rel32_64 => Some(Ending::Call(branch_target(instruction))),
            Code::Sysenter => Some(Ending::Unsupported),
            Code::Call_rel16 | Code::Call_ptr1616 | Code::Call_ptr1632 => {
                Some(Ending::NativeBranch(exit_kind::INDIRECT_CALL))
            }
            _ => None,
        },
        FlowControl::IndirectBranch => match code {
            Code::Jmp_rm64 => Some(Ending::IndirectJump),
            _ => Some(Ending::NativeBranch(exit_kind::INDIRECT_JUMP)),
        },
        FlowControl::IndirectCall => match code {
            Code::Call_rm64 => Some(Ending::IndirectCall),
            _ => Some(Ending::NativeBranch(exit_kind::INDIRECT_CALL)),
        },
        FlowControl::Return => match code {
            Code::Retnq => Some(Ending::Return(0)),
            Code::Retnq_imm16 => Some(Ending::Return(instruction.immediate16())),
            // Privileged: they fault where they stand.
            Code::Sysexitd | Code::Sysexitq | Code::Sysretd | Code::Sysretq => None,
            Code::Iretw | Code::Iretd | Code::Iretq => Some(Ending::NativeBranch(exit_kind::INDIRECT_JUMP)),
            _ => Some(Ending::NativeBranch(exit_kind::RETURN)),
        },
        FlowControl::XbeginXabortXend => match code {
            Code::Xbegin_rel16 => Some(Ending::NativeBranch(exit_kind::INDIRECT_JUMP)),
            Code::Xbegin_rel32 => Some(Ending::TransactionBegin(branch_target(instruction))),
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

    fn ending(code: &[u8]) -> (usize, Result<Ending, NoCode>) {
        let base = AppPc::from_raw(code.as_ptr() as u64);
        let mut ranges = Ranges::new();
        ranges.insert(base, base + code.len() as u64, 5, true);
        let mut block = Block::default();
        let ending = decode_block(&mut block, &ranges, base);
        (block.instructions.len(), ending)
    }

    #[test]
    fn branches_end_blocks() {
        assert_eq!(ending(&[0x90, 0xc3]), (2, Ok(Ending::Return(0))));
        assert_eq!(ending(&[0xc2, 8, 0]), (1, Ok(Ending::Return(8))));
        assert_eq!(ending(&[0x0f, 0x05]), (1, Ok(Ending::Syscall)));
        assert_eq!(ending(&[0xff, 0xe0]), (1, Ok(Ending::IndirectJump)));
        assert_eq!(ending(&[0xff, 0xd0]), (1, Ok(Ending::IndirectCall)));
        assert_eq!(ending(&[0xff, 0x28]), (1, Ok(Ending::NativeBranch(exit_kind::INDIRECT_JUMP))), "far jump");
        let odd_operand = &[0x65, 0x67, 0xff, 0x20];
        assert_eq!(ending(odd_operand), (1, Ok(Ending::NativeBranch(exit_kind::INDIRECT_JUMP))), "jump gs:[eax]");
        assert_eq!(ending(&[0x8e, 0xe8, 0xc3]), (1, Ok(Ending::Native)), "mov gs, eax");
        assert_eq!(ending(&[0xcb]), (1, Ok(Ending::NativeBranch(exit_kind::RETURN))), "far return");
        assert_eq!(ending(&[0x0f, 0x0b]), (1, Ok(Ending::Fault)), "ud2");
        assert_eq!(
            ending(&[0x66, 0xe9, 0, 0, 0, 0]).1,
            Ok(Ending::NativeBranch(exit_kind::INDIRECT_JUMP)),
            "16-bit jump"
        );
    }

    #[test]
    fn data16_tls_call_is_near() {
        let (n, end) = ending(&[0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0]);
        assert_eq!(n, 1);
        assert!(matches!(end, Ok(Ending::Call(_))));
    }

    #[test]
    fn unknown_bytes_are_not_code() {
        assert_eq!(ending(&[0x06; 16]), (0, Err(NoCode::Unknown)));
        assert_eq!(ending(&[0x90, 0x06]), (1, Ok(Ending::Limit)));
    }

    #[test]
    fn long_blocks_are_read_piece_by_piece() {
        let mut code = [0x90u8; 300];
        code[299] = 0xc3;
        let (n, end) = ending(&code);
        assert_eq!((n, end), (256, Ok(Ending::Limit)));
        assert_eq!(ending(&code[150..]), (150, Ok(Ending::Return(0))));
    }

    #[test]
    fn instructions_over_a_border_stand_alone() {
        // Read by machine code, which the compiler does not see.
        let code = core::hint::black_box(&[0x90u8, 0x48, 0x89, 0xc3, 0x90, 0xc3]);
        let base = AppPc::from_raw(code.as_ptr() as u64);
        let mut ranges = Ranges::new();
        ranges.insert(base, base + 2, 5, true);
        ranges.insert(base + 2, base + 6, 7, true);
        let mut block = Block::default();
        assert_eq!(decode_block(&mut block, &ranges, base), Ok(Ending::Limit));
        assert_eq!((block.code.len(), block.is_writable), (1, false));
        assert_eq!(decode_block(&mut block, &ranges, base + 1), Ok(Ending::Limit));
        assert_eq!((block.code.len(), block.is_writable), (3, true));
        assert_eq!(decode_block(&mut block, &ranges, base + 4), Ok(Ending::Return(0)));
        assert_eq!((block.code.len(), block.is_writable), (2, true));
    }

    #[test]
    fn cut_instructions_are_not_code() {
        let code = [0xe8, 0];
        assert_eq!(ending(&code), (0, Err(NoCode::Missing(AppPc::from_raw(code.as_ptr() as u64 + 2)))));
    }
}
