//! Instructions that store where the last x87 instruction was: in the code cache, as far as the processor knows.

use iced_x86::{Code, Instruction};

/// A stored instruction pointer: where it is in what is stored, and its size, in bytes. Of one of 4 bytes the upper half of
/// the address is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredPointer {
    pub offset: u64,
    pub size: usize,
}

/// Where `instruction` stores the pointer (Intel SDM, x87 FPU state image; FXSAVE). `None`: it does not, or the 16 bits that
/// the oldest format has, which tell nothing.
pub fn stored_pointer(instruction: &Instruction) -> Option<StoredPointer> {
    match instruction.code() {
        Code::Fnstenv_m28byte | Code::Fstenv_m28byte | Code::Fnsave_m108byte | Code::Fsave_m108byte => {
            Some(StoredPointer { offset: 12, size: 4 })
        }
        Code::Fxsave_m512byte | Code::Xsave_mem | Code::Xsavec_mem | Code::Xsaveopt_mem => {
            Some(StoredPointer { offset: 8, size: 4 })
        }
        Code::Fxsave64_m512byte | Code::Xsave64_mem | Code::Xsavec64_mem | Code::Xsaveopt64_mem => {
            Some(StoredPointer { offset: 8, size: 8 })
        }
        _ => None,
    }
}

/// Whether the code of one instruction is an x87 one's: behind prefixes, its first byte says so.
pub fn is_x87(code: &[u8]) -> bool {
    const PREFIXES: [u8; 9] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0x9b];
    let opcode = code.iter().find(|byte| !PREFIXES.contains(byte) && **byte & 0xf0 != 0x40);
    opcode.is_some_and(|byte| byte & 0xf8 == 0xd8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn stored(code: &[u8]) -> Option<(u64, usize)> {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        stored_pointer(&instruction).map(|pointer| (pointer.offset, pointer.size))
    }

    #[test]
    fn each_format_has_its_place() {
        assert_eq!(stored(&[0xd9, 0x31]), Some((12, 4)), "fnstenv [rcx]");
        assert_eq!(stored(&[0xdd, 0x31]), Some((12, 4)), "fnsave [rcx]");
        assert_eq!(stored(&[0x0f, 0xae, 0x01]), Some((8, 4)), "fxsave [rcx]");
        assert_eq!(stored(&[0x48, 0x0f, 0xae, 0x01]), Some((8, 8)), "fxsave64 [rcx]");
        assert_eq!(stored(&[0x48, 0x0f, 0xae, 0x21]), Some((8, 8)), "xsave64 [rcx]");
        assert_eq!(stored(&[0x0f, 0xc7, 0x21]), Some((8, 4)), "xsavec [rcx]");
        assert_eq!(stored(&[0xd9, 0x21]), None, "fldenv [rcx]");
        assert_eq!(stored(&[0x66, 0xd9, 0x31]), None, "fnstenv [rcx], 14 bytes");
    }

    #[test]
    fn x87_instructions_are_told_from_others() {
        assert!(is_x87(&[0xdd, 0x05, 0, 0, 0, 0]), "fld [rip]");
        assert!(is_x87(&[0x64, 0x41, 0xdd, 0x00]), "fld fs:[r8]");
        assert!(!is_x87(&[0x48, 0x89, 0xd8]), "mov rax, rbx");
    }
}
