//! Instructions to try mangling on: of every opcode that the decoder knows, with operands of each kind.

use crate::cpu::decode::block::decoder_options;
use crate::cpu::translate::machine::Random;
use crate::cpu::translate::*;
use iced_x86::{Decoder, DecoderError, FlowControl};
use std::vec::Vec;

pub const APP_PC: u64 = 0x40_1234;

/// An application instruction with its bytes.
pub struct Sample {
    pub instruction: Instruction,
    pub offsets: ConstantOffsets,
    pub bytes: Vec<u8>,
}

pub fn decode_at(bytes: &[u8], pc: u64) -> Option<Sample> {
    let mut decoder = Decoder::with_ip(64, bytes, pc, decoder_options());
    let instruction = decoder.decode();
    if decoder.last_error() != DecoderError::None {
        return None;
    }
    let offsets = decoder.get_constant_offsets(&instruction);
    Some(Sample { instruction, offsets, bytes: bytes[..instruction.len()].to_vec() })
}

/// Everything before the ModRM byte, for every opcode of every map under every prefix that selects an instruction.
fn openings() -> Vec<Vec<u8>> {
    let mut openings = Vec::new();
    for opcode in 0..=255u8 {
        for prefix in [&[][..], &[0x66], &[0xf3], &[0xf2], &[0xf0], &[0x66, 0xf0]] {
            for rex in [&[][..], &[0x48], &[0x44], &[0x4c]] {
                for map in [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]] {
                    openings.push([prefix, rex, map, &[opcode]].concat());
                }
            }
        }
        for map in 1..=3u8 {
            for pp in 0..4u8 {
                for (w, length) in [(0u8, 0u8), (0, 1), (1, 0), (1, 1)] {
                    // vvvv: 1111 (none) and 0101 (register 10).
                    for vvvv in [0x0fu8, 0x05] {
                        openings.push([0xc4, 0xe0 | map, (w << 7) | (vvvv << 3) | (length << 2) | pp, opcode].to_vec());
                    }
                }
            }
        }
        for map in [1u8, 2, 3, 5, 6] {
            for pp in 0..4u8 {
                for w in 0..2u8 {
                    // z, L'L, b, V', aaa
                    for last in [0x08u8, 0x28, 0x48, 0x49, 0xc9, 0x58, 0x18, 0x41] {
                        for vvvv in [0x0fu8, 0x05] {
                            openings.push([0x62, 0xf0 | map, (w << 7) | (vvvv << 3) | 4 | pp, last, opcode].to_vec());
                        }
                    }
                }
            }
        }
    }
    openings
}

pub fn is_mangled_here(instruction: &Instruction) -> bool {
    // 66 0F 1C is a no-op; without the 66, which the encoder leaves out, a hint.
    instruction.mnemonic() != iced_x86::Mnemonic::Reservednop
        && matches!(instruction.flow_control(), FlowControl::Next | FlowControl::Interrupt)
}

/// Every instruction with an operand at rip + displacement.
pub fn rip_samples(prefixes: &[u8]) -> impl Iterator<Item = Sample> + '_ {
    let mut random = Random(1);
    openings().into_iter().flat_map(move |opening| {
        let mut samples = Vec::new();
        for register in [0u8, 1, 3, 6, 7] {
            let mut bytes = [prefixes, &opening, &[(register << 3) | 5]].concat();
            bytes.extend_from_slice(&((random.next() as i32) >> 4).to_le_bytes());
            bytes.extend((0..8).map(|_| random.byte()));
            bytes.truncate(15);
            samples.extend(decode_at(&bytes, APP_PC).filter(|sample| {
                sample.instruction.is_ip_rel_memory_operand() && is_mangled_here(&sample.instruction)
            }));
        }
        samples
    })
}

/// Every instruction with a gs operand, with several forms of address for each.
pub fn gs_samples() -> impl Iterator<Item = Sample> {
    let mut random = Random(2);
    openings().into_iter().flat_map(move |opening| {
        let mut samples = Vec::new();
        // ModRM without its register field, and SIB: [rax], [rsp+d8], [base+index*s+d32], [d32], [rip+d32], [rbp+d8], [r+d32]
        let forms = [(0x00u8, 0u8), (0x44, 0x24), (0x84, random.byte()), (0x04, 0x25), (0x05, 0), (0x45, 0), (0x86, 0)];
        for (form, sib) in forms {
            let register = random.byte() & 7;
            let mut bytes = [&[0x65], &opening[..], &[form | (register << 3)]].concat();
            if form & 7 == 4 {
                bytes.push(sib);
            }
            bytes.extend_from_slice(&((random.next() as i32) >> 4).to_le_bytes());
            bytes.extend((0..8).map(|_| random.byte()));
            bytes.truncate(15);
            samples.extend(
                decode_at(&bytes, APP_PC)
                    .filter(|sample| is_mangled_here(&sample.instruction) && uses_gs_memory(&sample.instruction)),
            );
        }
        samples
    })
}

/// jmp and call with every form of operand, from every register.
pub fn branch_samples() -> Vec<Sample> {
    let mut random = Random(3);
    let mut samples = Vec::new();
    for prefixes in [&[][..], &[0x64], &[0x65], &[0x67], &[0x65, 0x67], &[0x3e], &[0xf2], &[0x64, 0x67]] {
        for rex in 0x40..=0x4fu8 {
            for operation in [2u8, 4] {
                for form in 0..=255u8 {
                    let mut bytes = [prefixes, &[rex, 0xff, (form & 0xc7) | (operation << 3), random.byte()]].concat();
                    bytes.extend_from_slice(&((random.next() as i32) >> 4).to_le_bytes());
                    bytes.extend([0; 4]);
                    bytes.truncate(15);
                    samples.extend(
                        decode_at(&bytes, APP_PC)
                            .filter(|sample| matches!(sample.instruction.code(), Code::Jmp_rm64 | Code::Call_rm64)),
                    );
                }
            }
        }
    }
    samples
}
