//! Instructions that mean the same nowhere but where they are, with the program's own segment registers.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Whether the processor is to execute the program's own instruction, no copy: it loads the selector in gs, and with it the base,
/// which is the runtime's; or it has an operand there that can't be had through a general register.
pub fn is_in_place(instruction: &Instruction) -> bool {
    loads_gs(instruction) || uses_gs_memory(instruction) && !has_plain_operand(instruction)
}

/// Whether the instruction loads the gs selector.
fn loads_gs(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Lgs => true,
        Mnemonic::Mov | Mnemonic::Pop => instruction.op_count() > 0 && instruction.op0_register() == Register::GS,
        _ => false,
    }
}

/// Whether the instruction accesses memory through gs.
pub fn uses_gs_memory(instruction: &Instruction) -> bool {
    if instruction.segment_prefix() != Register::GS {
        return false;
    }
    let is_address_only = matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    if is_address_only {
        return false;
    }
    (0..instruction.op_count()).any(|i| {
        matches!(
            instruction.op_kind(i),
            OpKind::Memory
                | OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegRSI
                | OpKind::MemorySegDI
                | OpKind::MemorySegEDI
                | OpKind::MemorySegRDI
        )
    })
}

/// Whether the operand in memory is named by general registers of 64 bits, or relative to rip.
fn has_plain_operand(instruction: &Instruction) -> bool {
    let is_plain = |register: Register| register == Register::None || register.is_gpr64();
    let is_explicit = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
    is_explicit
        && (instruction.is_ip_rel_memory_operand()
            || is_plain(instruction.memory_base()) && is_plain(instruction.memory_index()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn is_one(code: &[u8]) -> bool {
        is_in_place(&Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode())
    }

    #[test]
    fn loads_of_gs_are() {
        assert!(is_one(&[0x8e, 0xe8]), "mov gs, eax");
        assert!(is_one(&[0x0f, 0xa9]), "pop gs");
        assert!(is_one(&[0x66, 0x0f, 0xa9]), "pop gs, 16 bits");
        assert!(is_one(&[0x0f, 0xb5, 0x00]), "lgs eax, [rax]");
        assert!(!is_one(&[0x8e, 0xe0]), "mov fs, eax");
        assert!(!is_one(&[0x8c, 0xe8]), "mov eax, gs");
    }

    #[test]
    fn odd_operands_through_gs_are() {
        assert!(is_one(&[0x65, 0xac]), "lodsb gs:");
        assert!(is_one(&[0x65, 0xd7]), "xlat gs:");
        assert!(is_one(&[0x65, 0x67, 0x8b, 0x00]), "mov eax, gs:[eax]");
        assert!(is_one(&[0x65, 0x0f, 0xf7, 0xc1]), "maskmovq gs:");
        assert!(!is_one(&[0x65, 0x8b, 0x00]), "mov eax, gs:[rax]");
        assert!(!is_one(&[0x65, 0x8b, 0x05, 0, 0, 0, 0]), "mov eax, gs:[rip]");
        assert!(!is_one(&[0x65, 0xaa]), "stosb has no use for gs");
        assert!(!is_one(&[0xac]), "lodsb");
    }
}
