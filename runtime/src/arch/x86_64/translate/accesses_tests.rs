//! What tells of accesses changes nothing of the program's, at every instruction that the decoder knows.

use crate::context::addresses::AppPc;
use crate::cpu::decode::block::{decoder_options, Block};
use crate::cpu::translate::samples::{decode_at, gs_samples, rip_samples, Sample, APP_PC};
use crate::cpu::translate::*;
use iced_x86::{Decoder, OpAccess};
use std::vec::Vec;

fn block_of(sample: &Sample) -> Block {
    let mut block = Block::new();
    block.pc = AppPc::from_raw(sample.instruction.ip());
    block.code = sample.bytes.clone();
    block.instructions.push(sample.instruction);
    block.offsets.push(sample.offsets);
    block
}

/// The instructions that tell of the accesses of `sample`, before it and behind.
fn emitted(mangler: &mut Mangler, sample: &Sample) -> [Vec<Instruction>; 2] {
    let block = block_of(sample);
    [true, false].map(|is_before| {
        let mut buffer = [0u8; 1024];
        let mut emitter = Emitter::new(&mut buffer, 0x1000, &mut [], 0);
        match is_before {
            true => mangler.tell_before(&mut emitter, &block, 0),
            false => mangler.tell_behind(&mut emitter, &block, 0, &mut |_, _| {}),
        }
        assert!(!emitter.overflowed());
        let size = emitter.position();
        Decoder::with_ip(64, &buffer[..size], 0x1000, decoder_options()).into_iter().collect()
    })
}

#[test]
fn nothing_of_the_programs_is_changed() {
    let mut mangler = Mangler::new(true);
    let mut info = InstructionInfoFactory::new();
    let (mut n_told, mut n_all) = (0, 0);
    for sample in gs_samples().chain(rip_samples(&[])) {
        n_all += 1;
        for code in emitted(&mut mangler, &sample) {
            let mut lent = 0;
            for one in &code {
                assert_ne!(one.code(), Code::INVALID, "{:x?}", sample.bytes);
                assert_eq!(one.rflags_modified(), 0, "{one:?} for {:?}", sample.instruction);
                let used = info.info(one);
                for memory in used.used_memory() {
                    let is_read = matches!(memory.access(), OpAccess::Read);
                    assert!(is_read || memory.segment() == Register::GS, "{one:?} for {:?}", sample.instruction);
                    // What the program has is read only at r11.
                    assert!(memory.segment() == Register::GS || memory.base() == Register::R11, "{one:?}");
                }
                let written = used.used_registers().iter().filter(|used| used.access() != OpAccess::Read);
                for register in written.map(|used| used.register().full_register()) {
                    assert!(matches!(register, Register::R10 | Register::R11), "{one:?} for {:?}", sample.instruction);
                }
                lent += i32::from(is_slot_access(one, Code::Mov_rm64_r64));
                lent -= i32::from(is_slot_access(one, Code::Mov_r64_rm64));
            }
            assert_eq!(lent, 0, "both registers go to their slots, and come back, for {:?}", sample.instruction);
            n_told += usize::from(!code.is_empty());
        }
    }
    assert!(n_told > n_all / 4 && n_all > 1000, "{n_told} of {n_all}");
}

/// Whether an instruction moves r10 or r11 to its slot or from there.
fn is_slot_access(one: &Instruction, code: Code) -> bool {
    use crate::cpu::displacements::{GS_SPILL_INDEX, GS_SPILL_TARGET};
    let place = one.memory_displacement64() as u32;
    one.code() == code
        && one.memory_segment() == Register::GS
        && one.memory_base() != Register::R10
        && (place == GS_SPILL_INDEX || place == GS_SPILL_TARGET)
}

#[test]
fn what_accesses_nothing_has_no_rows() {
    let mut mangler = Mangler::new(true);
    for bytes in [&[0x90][..], &[0x48, 0x8d, 0x07], &[0x0f, 0x1f, 0x00], &[0x48, 0x01, 0xc3], &[0x0f, 0x18, 0x0b]] {
        let sample = decode_at(bytes, APP_PC).unwrap();
        assert!(!mangler.has_accesses(&block_of(&sample)), "{:?}", sample.instruction);
        assert!(emitted(&mut mangler, &sample).iter().all(Vec::is_empty));
    }
    // A gather's addresses are in a vector; the bit's number says where bt looks.
    for bytes in [&[0xc4, 0xe2, 0x75, 0x90, 0x04, 0x27][..], &[0x48, 0x0f, 0xa3, 0x07]] {
        let sample = decode_at(bytes, APP_PC).unwrap();
        assert!(!mangler.has_accesses(&block_of(&sample)), "{:?}", sample.instruction);
    }
}
