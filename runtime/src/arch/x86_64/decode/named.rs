//! Addresses that instructions name.

use iced_x86::{Code, Instruction};

/// The address that an instruction names as an immediate or relative to rip, as code does that announces a restartable sequence.
pub fn named_address(instruction: &Instruction) -> Option<u64> {
    match instruction.code() {
        Code::Lea_r64_m if instruction.is_ip_rel_memory_operand() => Some(instruction.ip_rel_memory_address()),
        Code::Mov_r64_imm64 => Some(instruction.immediate64()),
        Code::Mov_r32_imm32 => Some(u64::from(instruction.immediate32())),
        Code::Mov_rm64_imm32 => Some(instruction.immediate32to64() as u64),
        _ => None,
    }
}
