//! Properties of mangling in restartable sequences: wherever the kernel aborts, the program's registers can be had.

use crate::cpu::decode::block::decoder_options;
use crate::cpu::translate::machine::Machine;
use crate::cpu::translate::samples::{gs_samples, rip_samples, Sample};
use crate::cpu::translate::tests::FAR;
use crate::cpu::translate::*;
use iced_x86::Decoder;

/// The registers after an abort, as `ThreadContext::undo_rseq` takes them out of their slots.
fn undone(machine: &Machine) -> [u64; 16] {
    let mut registers = machine.registers;
    let undo = machine.slot(GS_RSEQ_UNDO) as u32;
    for (shift, slot) in [(UNDO_OTHER_SHIFT, GS_SPILL_OTHER), (UNDO_ADDRESS_SHIFT, GS_SPILL_ADDRESS)] {
        let number = undo >> shift & 0xff;
        if number != 0 {
            registers[number as usize - 1] = machine.slot(slot);
        }
    }
    registers
}

/// Runs what is emitted for a sample, but for the instruction itself; how many places there were to abort at.
fn check(mangler: &mut Mangler, sample: &Sample) -> usize {
    let mut buffer = [0u8; 256];
    let mut emitter = Emitter::new(&mut buffer, FAR, &mut [], 0);
    let result =
        mangler.emit(&mut emitter, &sample.instruction, &sample.bytes, &sample.offsets, Spare::Noted, &mut |_, _| {});
    if result.is_err() || matches!(sample.instruction.mnemonic(), iced_x86::Mnemonic::Lea) {
        return 0;
    }
    assert!(!emitter.overflowed());
    let size = emitter.position();
    let initial = Machine::new();
    let mut machine = Machine::new();
    let mut decoder = Decoder::with_ip(64, &buffer[..size], FAR, decoder_options());
    let mut n = 0;
    while decoder.can_decode() {
        machine.step(&decoder.decode());
        assert_eq!(undone(&machine), initial.registers, "{:02x?}", sample.bytes);
        n += 1;
    }
    assert_eq!(machine.slot(GS_RSEQ_UNDO), 0, "{:02x?}", sample.bytes);
    n
}

#[test]
fn registers_can_be_had_between_any_two_instructions() {
    let mut mangler = Mangler::new(false);
    // The moves among them look like the runtime's own.
    let is_plain = |sample: &Sample| !matches!(sample.instruction.mnemonic(), iced_x86::Mnemonic::Mov);
    let samples = rip_samples(&[]).chain(gs_samples()).filter(is_plain);
    let n: usize = samples.map(|sample| check(&mut mangler, &sample)).sum();
    assert!(n > 100_000, "{n}");
}
