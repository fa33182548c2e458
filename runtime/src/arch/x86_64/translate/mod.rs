//! Mangling: an application instruction rewritten so that it means the same in the code cache.
//!
//! Nearly all instructions are copied byte for byte. Those that name memory relative to rip get another displacement, or
//! an address in a spilled register where that does not reach; those that use gs get the application's own gs base.
//! Branches are not handled here but by instrument/, which knows where they lead.

extern crate alloc;
mod accesses;
mod added;

pub use added::Added;

use crate::cpu::decode::in_place::uses_gs_memory;
use crate::cpu::displacements::{GS_APP_GS_BASE, GS_RSEQ_UNDO, GS_SPILL_ADDRESS, GS_SPILL_OTHER};
use crate::cpu::emit::Emitter;
use crate::cpu::rseq::{UNDO_ADDRESS_SHIFT, UNDO_OTHER_SHIFT};
use crate::cpu::spill::SpillState;
use crate::cpu::{Gpr, INDEX, TARGET};
use crate::decode::Block;
use crate::protocol::StartBlock;
use iced_x86::{
    Code, ConstantOffsets, Encoder, Instruction, InstructionInfoFactory, InstructionInfoOptions, MemoryOperand, OpKind,
    Register,
};

/// Why an instruction could not be mangled: the thread is released to native in front of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsupported;

/// Rewrites instructions. Holds the encoder's and decoder's scratch memory.
pub struct Mangler {
    encoder: Encoder,
    info: InstructionInfoFactory,
    /// rdgsbase and wrgsbase work on this machine.
    has_fsgsbase: bool,
}

/// Which registers the code of an instruction may use beside the program's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spare {
    /// Those that it puts into slots, and takes back.
    Spilled,
    /// The same, where what is emitted may be aborted between any two instructions: it says which registers are in slots.
    Noted,
    /// r10 and r11, which are lent: the instructions name neither. r10 but where that is needed for the program's gs.
    Lent,
}

impl Spare {
    /// Emits a note of which registers are in the address slot and in the other one, where it may be needed.
    fn note_spilled(self, emitter: &mut Emitter, address: Option<Gpr>, other: Option<Gpr>) {
        if self == Spare::Noted {
            let number = |register: Option<Gpr>| register.map_or(0, |register| u32::from(register.0) + 1);
            let undo = number(address) << UNDO_ADDRESS_SHIFT | number(other) << UNDO_OTHER_SHIFT;
            emitter.store_gs_immediate(GS_RSEQ_UNDO, undo);
        }
    }
}

impl Mangler {
    /// The one of a process that begins as `block` says.
    pub fn of_start(block: &StartBlock) -> Mangler {
        Mangler::new(block.has_fsgsbase != 0)
    }

    pub fn new(has_fsgsbase: bool) -> Mangler {
        Mangler { encoder: Encoder::new(64), info: InstructionInfoFactory::new(), has_fsgsbase }
    }

    /// Emits what does the same as `instruction`. `mark` is called before each emitted instruction that may fault and
    /// does not run with all registers in place.
    pub fn emit(
        &mut self,
        emitter: &mut Emitter,
        instruction: &Instruction,
        bytes: &[u8],
        offsets: &ConstantOffsets,
        spare: Spare,
        mark: &mut dyn FnMut(usize, SpillState),
    ) -> Result<(), Unsupported> {
        match instruction.code() {
            Code::Rdgsbase_r64 | Code::Rdgsbase_r32 | Code::Wrgsbase_r64 | Code::Wrgsbase_r32 if self.has_fsgsbase => {
                emit_gs_base(emitter, instruction);
                return Ok(());
            }
            // Loading gs changes its base, which is the runtime's: a null selector leaves a base of zero.
            Code::Mov_Sreg_rm16 | Code::Mov_Sreg_r32m16 | Code::Mov_Sreg_r64m16
                if instruction.op0_register() == Register::GS =>
            {
                return Err(Unsupported);
            }
            Code::Popq_GS | Code::Popw_GS | Code::Lgs_r16_m1616 | Code::Lgs_r32_m1632 | Code::Lgs_r64_m1664 => {
                return Err(Unsupported);
            }
            _ => {}
        }
        if uses_gs_memory(instruction) {
            return self.emit_gs_operand(emitter, instruction, spare, mark);
        }
        if instruction.is_ip_rel_memory_operand() {
            return self.emit_rip_operand(emitter, instruction, bytes, offsets, spare, mark);
        }
        emitter.bytes(bytes);
        Ok(())
    }

    /// The same of instruction `index` of a block.
    pub fn emit_of(
        &mut self,
        emitter: &mut Emitter,
        block: &Block,
        index: usize,
        spare: Spare,
        mark: &mut dyn FnMut(usize, SpillState),
    ) -> Result<(), Unsupported> {
        self.emit(emitter, &block.instructions[index], block.bytes_of(index), &block.offsets[index], spare, mark)
    }

    /// Emits `mov r11, target` of an indirect jump or call. Changes no other register.
    pub fn emit_target(&mut self, emitter: &mut Emitter, branch: &Instruction) -> Result<(), Unsupported> {
        if branch.op0_kind() == OpKind::Register {
            let source = branch.op0_register();
            let load = Instruction::with2(Code::Mov_r64_rm64, Register::R11, source).map_err(|_| Unsupported)?;
            return self.encode(emitter, &load);
        }
        if branch.is_ip_rel_memory_operand() && !uses_gs_memory(branch) {
            let address = branch.ip_rel_memory_address();
            let distance = address.wrapping_sub((emitter.address() + 8).raw()) as i64;
            let is_near = (distance.unsigned_abs()) < 0x7fff_0000 && branch.memory_segment() != Register::FS;
            if is_near {
                let operand = MemoryOperand::with_base_displ(Register::RIP, address as i64);
                let load = Instruction::with2(Code::Mov_r64_rm64, Register::R11, operand).map_err(|_| Unsupported)?;
                return self.encode(emitter, &load);
            }
            emitter.load_immediate(TARGET, address);
            let segment = if branch.memory_segment() == Register::FS { Register::FS } else { Register::None };
            let operand = MemoryOperand::new(Register::R11, Register::None, 1, 0, 0, false, segment);
            let load = Instruction::with2(Code::Mov_r64_rm64, Register::R11, operand).map_err(|_| Unsupported)?;
            return self.encode(emitter, &load);
        }
        let segment = match branch.segment_prefix() {
            Register::FS => Register::FS,
            Register::GS => Register::GS,
            _ => Register::None,
        };
        if segment == Register::GS {
            // r11 = application's gs base + address; the address may itself use r11.
            self.emit_address(emitter, branch, TARGET, Spare::Spilled)?;
            let operand = MemoryOperand::with_base(Register::R11);
            let load = Instruction::with2(Code::Mov_r64_rm64, Register::R11, operand).map_err(|_| Unsupported)?;
            return self.encode(emitter, &load);
        }
        let mut operand = MemoryOperand::new(
            branch.memory_base(),
            branch.memory_index(),
            branch.memory_index_scale(),
            branch.memory_displacement64() as i64,
            branch.memory_displ_size(),
            false,
            segment,
        );
        operand.is_broadcast = false;
        let load = Instruction::with2(Code::Mov_r64_rm64, Register::R11, operand).map_err(|_| Unsupported)?;
        self.encode(emitter, &load)
    }

    fn encode(&mut self, emitter: &mut Emitter, instruction: &Instruction) -> Result<(), Unsupported> {
        let result = self.encoder.encode(instruction, emitter.address().raw());
        let mut buffer = self.encoder.take_buffer();
        if result.is_ok() {
            emitter.bytes(&buffer);
        }
        buffer.clear();
        self.encoder.set_buffer(buffer);
        result.map(|_| ()).map_err(|_| Unsupported)
    }

    /// Memory relative to rip.
    fn emit_rip_operand(
        &mut self,
        emitter: &mut Emitter,
        instruction: &Instruction,
        bytes: &[u8],
        offsets: &ConstantOffsets,
        spare: Spare,
        mark: &mut dyn FnMut(usize, SpillState),
    ) -> Result<(), Unsupported> {
        let target = instruction.ip_rel_memory_address();
        let next = emitter.address() + bytes.len() as u64;
        let displacement = target.wrapping_sub(next.raw()) as i64;
        let is_near = displacement == i64::from(displacement as i32) && instruction.memory_base() == Register::RIP;
        if is_near && offsets.has_displacement() && offsets.displacement_size() == 4 {
            let start = emitter.address() + offsets.displacement_offset() as u64;
            emitter.bytes(bytes);
            emitter.patch(start, &(displacement as i32).to_le_bytes());
            return Ok(());
        }
        if matches!(instruction.code(), Code::Lea_r64_m | Code::Lea_r32_m) {
            let is_narrow = instruction.code() == Code::Lea_r32_m;
            let value = if is_narrow { target & 0xffff_ffff } else { target };
            emitter.load_immediate(Gpr(instruction.op0_register().number() as u8), value);
            return Ok(());
        }
        if spare == Spare::Lent {
            // r10 may be kept (arch/x86_64/instrument/loops.rs).
            emitter.load_immediate(TARGET, target);
            return self.emit_through(emitter, instruction, TARGET);
        }
        let scratch = self.unused_register(instruction)?;
        emitter.store_gs(GS_SPILL_ADDRESS, scratch);
        spare.note_spilled(emitter, Some(scratch), None);
        emitter.load_immediate(scratch, target);
        mark(emitter.position(), SpillState::of_register(scratch.0));
        self.emit_through(emitter, instruction, scratch)?;
        emitter.load_gs(scratch, GS_SPILL_ADDRESS);
        spare.note_spilled(emitter, None, None);
        Ok(())
    }

    /// Memory relative to the application's gs base.
    fn emit_gs_operand(
        &mut self,
        emitter: &mut Emitter,
        instruction: &Instruction,
        spare: Spare,
        mark: &mut dyn FnMut(usize, SpillState),
    ) -> Result<(), Unsupported> {
        let has_memory = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
        let is_vector_index = instruction.memory_index().is_vector_register();
        if !has_memory || is_vector_index {
            return Err(Unsupported);
        }
        if spare == Spare::Lent {
            self.emit_address(emitter, instruction, INDEX, spare)?;
            return self.emit_through(emitter, instruction, INDEX);
        }
        let scratch = self.unused_register(instruction)?;
        emitter.store_gs(GS_SPILL_ADDRESS, scratch);
        spare.note_spilled(emitter, Some(scratch), None);
        self.emit_address(emitter, instruction, scratch, spare)?;
        mark(emitter.position(), SpillState::of_register(scratch.0));
        self.emit_through(emitter, instruction, scratch)?;
        emitter.load_gs(scratch, GS_SPILL_ADDRESS);
        spare.note_spilled(emitter, None, None);
        Ok(())
    }

    /// Emits `scratch = application's gs base + effective address`. The address may use `scratch` only as its one register.
    fn emit_address(
        &mut self,
        emitter: &mut Emitter,
        instruction: &Instruction,
        scratch: Gpr,
        spare: Spare,
    ) -> Result<(), Unsupported> {
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        let is_wide = |register: Register| register == Register::None || register.is_gpr64();
        if instruction.is_ip_rel_memory_operand() {
            // gs:[rip + x]: the address is known, but not where it is relative to.
            emitter.load_immediate(scratch, instruction.ip_rel_memory_address());
        } else if !is_wide(base) || !is_wide(index) {
            return Err(Unsupported);
        } else {
            // pop counts its operand's address from the stack pointer it leaves (Intel SDM, POP).
            let raised = match instruction.code() {
                Code::Pop_rm64 if base == Register::RSP => 8,
                Code::Pop_rm16 if base == Register::RSP => 2,
                _ => 0,
            };
            let displacement = (instruction.memory_displacement64() as i64).wrapping_add(raised);
            let size = if displacement == 0 { instruction.memory_displ_size() } else { 8 };
            let scale = instruction.memory_index_scale();
            let operand = MemoryOperand::new(base, index, scale, displacement, size, false, Register::None);
            let lea = Instruction::with2(Code::Lea_r64_m, gpr64(scratch), operand).map_err(|_| Unsupported)?;
            self.encode(emitter, &lea)?;
        }
        // scratch += gs base without touching flags: needs a second register unless done by halves; push and pop would
        // use the application's stack, so the base goes through another spilled register.
        if spare == Spare::Lent && scratch != TARGET {
            emitter.load_gs(TARGET, GS_APP_GS_BASE);
            emitter.add_registers(scratch, scratch, Some(TARGET), 1, 0);
            return Ok(());
        }
        let other = if scratch == Gpr(0) { Gpr(2) } else { Gpr(0) };
        emitter.store_gs(GS_SPILL_OTHER, other);
        spare.note_spilled(emitter, Some(scratch), Some(other));
        emitter.load_gs(other, GS_APP_GS_BASE);
        emitter.add_registers(scratch, scratch, Some(other), 1, 0);
        emitter.load_gs(other, GS_SPILL_OTHER);
        spare.note_spilled(emitter, Some(scratch), None);
        Ok(())
    }

    /// Emits the instruction with its memory operand at `[scratch]`.
    fn emit_through(
        &mut self,
        emitter: &mut Emitter,
        instruction: &Instruction,
        scratch: Gpr,
    ) -> Result<(), Unsupported> {
        let mut changed = *instruction;
        let keeps_fs = instruction.memory_segment() == Register::FS;
        changed.set_segment_prefix(if keeps_fs { Register::FS } else { Register::None });
        changed.set_memory_base(gpr64(scratch));
        changed.set_memory_index(Register::None);
        changed.set_memory_index_scale(1);
        changed.set_memory_displacement64(0);
        changed.set_memory_displ_size(0);
        self.encode(emitter, &changed)
    }

    /// A general register that the instruction neither reads nor writes.
    fn unused_register(&mut self, instruction: &Instruction) -> Result<Gpr, Unsupported> {
        let info = self.info.info_options(instruction, InstructionInfoOptions::NO_MEMORY_USAGE);
        let mut used = 1u32 << 4;
        for register in info.used_registers() {
            let full = register.register().full_register();
            if full.is_gpr64() {
                used |= 1 << full.number();
            }
        }
        (0..16).find(|number| used & (1 << number) == 0).map(Gpr).ok_or(Unsupported)
    }
}

fn gpr64(register: Gpr) -> Register {
    const REGISTERS: [Register; 16] = [
        Register::RAX,
        Register::RCX,
        Register::RDX,
        Register::RBX,
        Register::RSP,
        Register::RBP,
        Register::RSI,
        Register::RDI,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    REGISTERS[register.0 as usize & 15]
}

/// rdgsbase and wrgsbase act on the application's own base.
fn emit_gs_base(emitter: &mut Emitter, instruction: &Instruction) {
    let register = Gpr(instruction.op0_register().number() as u8);
    match instruction.code() {
        Code::Rdgsbase_r64 => emitter.load_gs(register, GS_APP_GS_BASE),
        Code::Rdgsbase_r32 => emitter.load_gs32(register, GS_APP_GS_BASE),
        Code::Wrgsbase_r64 => emitter.store_gs(GS_APP_GS_BASE, register),
        _ => {
            emitter.store_gs32(GS_APP_GS_BASE, register);
            emitter.store_gs_immediate(GS_APP_GS_BASE + 4, 0);
        }
    }
}

#[cfg(test)]
mod accesses_tests;
#[cfg(test)]
mod machine;
#[cfg(test)]
mod rseq_tests;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
