//! Properties of mangling, checked on every instruction that the decoder knows: decoded again, what is emitted does the
//! same to the same operands at the same address, and leaves all registers as they were.

use crate::cpu::decode::block::decoder_options;
use crate::cpu::translate::machine::{Machine, APP_GS_BASE};
use crate::cpu::translate::samples::{branch_samples, decode_at, gs_samples, rip_samples, Sample, APP_PC};
use crate::cpu::translate::*;
use iced_x86::Decoder;
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec::Vec;

const NEAR: u64 = 0x1000_0000;
pub const FAR: u64 = 0x7f00_0000_0000;

/// The instruction without where its memory lies: two of them are equal if they do the same.
fn without_address(instruction: &Instruction) -> Instruction {
    let mut rest = *instruction;
    rest.set_segment_prefix(Register::None);
    rest.set_memory_base(Register::None);
    rest.set_memory_index(Register::None);
    rest.set_memory_index_scale(1);
    rest.set_memory_displacement64(0);
    rest.set_memory_displ_size(0);
    rest
}

/// Instructions whose memory operand is an address only: they access none, whatever its segment.
fn names_an_address_only(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), iced_x86::Mnemonic::Lea | iced_x86::Mnemonic::Nop)
}

enum Outcome {
    Same,
    Unsupported,
}

/// Mangles at `buffer_pc`; Err says what is wrong with what was emitted.
fn check(mangler: &mut Mangler, sample: &Sample, buffer_pc: u64) -> Result<Outcome, String> {
    let original = &sample.instruction;
    let mut buffer = [0u8; 256];
    let mut emitter = Emitter::new(&mut buffer, buffer_pc, &mut [], 0);
    let mut marks = Vec::new();
    let mut mark = |position: usize, state: SpillState| marks.push((position, state));
    if mangler.emit(&mut emitter, original, &sample.bytes, &sample.offsets, Spare::Spilled, &mut mark).is_err() {
        return Ok(Outcome::Unsupported);
    }
    if emitter.overflowed() {
        return Err("overflow".into());
    }
    let size = emitter.position();
    let initial = Machine::new();
    let mut machine = Machine::new();
    let mut decoder = Decoder::with_ip(64, &buffer[..size], buffer_pc, decoder_options());
    let mut has_run = false;
    while decoder.can_decode() {
        let position = decoder.position();
        let emitted = decoder.decode();
        let is_main = without_address(&emitted) == without_address(original)
            && !has_run
            && reaches_same(original, &emitted, &initial, &machine);
        if !is_main {
            if !machine.step(&emitted) {
                return Err(format!("emitted {:?} at {position}", emitted.code()));
            }
            continue;
        }
        has_run = true;
        let changed: Vec<usize> = (0..16).filter(|n| machine.registers[*n] != initial.registers[*n]).collect();
        let mut info = InstructionInfoFactory::new();
        for used in info.info(original).used_registers() {
            let full = used.register().full_register();
            if full.is_gpr64() && changed.contains(&full.number()) && !is_address_register(original, full) {
                return Err(format!("{:?} is used and changed", full));
            }
        }
        let is_marked = match changed[..] {
            [] => marks.is_empty() || names_an_address_only(original),
            [scratch] => marks == [(position, SpillState::of_register(scratch as u8))],
            _ => false,
        };
        if !is_marked {
            return Err(format!("marks {:?} with {:?} changed at {}", marks, changed, position));
        }
    }
    let is_address_load = names_an_address_only(original) && original.op0_kind() == OpKind::Register;
    if !has_run && is_address_load {
        // lea became a load of the address itself.
        let target = original.op0_register();
        let mut expected = initial.registers;
        let address = initial.address(original).ok_or("no address")?;
        expected[target.full_register().number()] = if target.size() == 4 { address & 0xffff_ffff } else { address };
        return if machine.registers == expected { Ok(Outcome::Same) } else { Err("lea of another address".into()) };
    }
    if !has_run {
        return Err("the instruction itself is missing".into());
    }
    match machine.registers == initial.registers {
        true => Ok(Outcome::Same),
        false => Err("registers changed".into()),
    }
}

/// Whether a register is named by the operand's address and nothing else.
fn is_address_register(instruction: &Instruction, register: Register) -> bool {
    let is_operand = (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == OpKind::Register && instruction.op_register(operand).full_register() == register
    });
    let is_in_address =
        instruction.memory_base().full_register() == register || instruction.memory_index().full_register() == register;
    is_in_address && !is_operand
}

/// Whether `emitted` accesses, with the registers of `now`, what `original` accesses with those of `before`.
fn reaches_same(original: &Instruction, emitted: &Instruction, before: &Machine, now: &Machine) -> bool {
    let has_memory = (0..original.op_count()).any(|operand| original.op_kind(operand) == OpKind::Memory);
    if !has_memory {
        return true;
    }
    let is_gs = original.memory_segment() == Register::GS && !names_an_address_only(original);
    let base = if is_gs { APP_GS_BASE } else { 0 };
    let expected = before.address(original).map(|address| address.wrapping_add(base));
    let is_segment_kept = (original.memory_segment() == Register::FS) == (emitted.memory_segment() == Register::FS);
    let is_gs_gone = names_an_address_only(original) || emitted.memory_segment() != Register::GS;
    expected.is_some() && expected == now.address(emitted) && is_segment_kept && is_gs_gone
}

/// What is given up for good: loads of gs, and addresses of 32 bits with gs or in instructions that imply their size.
fn is_given_up(instruction: &Instruction) -> bool {
    let loads_gs = matches!(instruction.mnemonic(), iced_x86::Mnemonic::Lgs)
        || (instruction.mnemonic() == iced_x86::Mnemonic::Mov && instruction.op0_register() == Register::GS);
    let is_narrow = instruction.memory_base().is_gpr32() || instruction.memory_index().is_gpr32();
    let implies_size =
        matches!(instruction.code(), Code::Movdir64b_r32_m512 | Code::Enqcmd_r32_m512 | Code::Enqcmds_r32_m512);
    loads_gs || implies_size || (is_narrow && uses_gs_memory(instruction))
}

/// Checks samples in a buffer near the code and in one far away; gives what is not supported and should be.
fn check_all(samples: impl Iterator<Item = Sample>) -> (usize, BTreeSet<String>) {
    let mut mangler = Mangler::new(false);
    let mut n_checked = 0;
    let mut unsupported = BTreeSet::new();
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    for sample in samples {
        for buffer_pc in [NEAR, FAR] {
            n_checked += 1;
            let name = format!("{:?}", sample.instruction.code());
            match check(&mut mangler, &sample, buffer_pc) {
                Ok(Outcome::Same) => {}
                Ok(Outcome::Unsupported) => {
                    if !is_given_up(&sample.instruction) {
                        unsupported.insert(name);
                    }
                }
                Err(error) => {
                    failures.entry(name).or_insert(format!("{:02x?} at {:#x}: {}", sample.bytes, buffer_pc, error));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} instructions: {:#?}",
        failures.len(),
        failures.iter().take(30).collect::<Vec<_>>()
    );
    (n_checked, unsupported)
}

/// pop with an operand on the stack: its address counts from rsp as it is afterwards.
fn is_pop_to_stack(instruction: &Instruction) -> bool {
    instruction.mnemonic() == iced_x86::Mnemonic::Pop && instruction.memory_base().full_register() == Register::RSP
}

#[test]
fn operands_relative_to_rip_keep_their_meaning() {
    let (n_checked, unsupported) = check_all(rip_samples(&[]));
    assert!(n_checked > 50_000, "{n_checked}");
    assert!(unsupported.is_empty(), "{unsupported:?}");
}

#[test]
fn operands_relative_to_eip_and_with_fs_keep_their_meaning() {
    let (n_checked, unsupported) = check_all(rip_samples(&[0x67]));
    assert!(n_checked > 20_000, "{n_checked}");
    assert!(unsupported.is_empty(), "{unsupported:?}");
    let (_, unsupported) = check_all(rip_samples(&[0x64]));
    assert!(unsupported.is_empty(), "{unsupported:?}");
}

#[test]
fn gs_operands_keep_their_meaning() {
    let (n_checked, unsupported) = check_all(gs_samples().filter(|sample| !is_pop_to_stack(&sample.instruction)));
    assert!(n_checked > 50_000, "{n_checked}");
    // Given up, and known: implied operands, absolute 64-bit addresses, indexes in vector registers.
    let is_known = |name: &String| {
        ["movs", "cmps", "lods", "outs", "scas", "stos", "moffs", "xlat", "gather", "scatter", "maskmov", "vm"]
            .iter()
            .any(|part| name.to_lowercase().contains(part))
    };
    let unknown: Vec<_> = unsupported.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn pop_through_gs_counts_from_the_raised_stack_pointer() {
    check_all(gs_samples().filter(|sample| is_pop_to_stack(&sample.instruction)));
}

#[test]
fn other_instructions_are_copied() {
    let mut mangler = Mangler::new(false);
    for bytes in [&[0x48, 0x89, 0xd8][..], &[0xf3, 0xa4], &[0x0f, 0xa2], &[0xff, 0x30], &[0x64, 0x48, 0x8b, 0x03]] {
        let sample = decode_at(bytes, APP_PC).expect("decodes");
        let mut buffer = [0u8; 64];
        let mut emitter = Emitter::new(&mut buffer, FAR, &mut [], 0);
        let result =
            mangler.emit(&mut emitter, &sample.instruction, bytes, &sample.offsets, Spare::Spilled, &mut |_, _| {
                panic!("marked")
            });
        assert_eq!(result, Ok(()));
        let size = emitter.position();
        assert_eq!(&buffer[..size], bytes);
    }
}

#[test]
fn loads_of_gs_are_refused() {
    let mut mangler = Mangler::new(true);
    for bytes in [&[0x8e, 0xe8][..], &[0x0f, 0xa9], &[0x0f, 0xb5, 0x03]] {
        let sample = decode_at(bytes, APP_PC).expect("decodes");
        let mut buffer = [0u8; 64];
        let mut emitter = Emitter::new(&mut buffer, FAR, &mut [], 0);
        let result =
            mangler.emit(&mut emitter, &sample.instruction, bytes, &sample.offsets, Spare::Spilled, &mut |_, _| {});
        assert_eq!(result, Err(Unsupported), "{bytes:02x?}");
    }
}

/// Runs what `emit_target` gave; Err says what it does instead of loading the branch's target into r11.
fn check_target(branch: &Instruction, code: &[u8], code_pc: u64) -> Result<(), String> {
    let initial = Machine::new();
    let mut machine = Machine::new();
    let mut decoder = Decoder::with_ip(64, code, code_pc, decoder_options());
    while decoder.can_decode() {
        let emitted = decoder.decode();
        let is_last = !decoder.can_decode();
        if !is_last {
            if !machine.step(&emitted) {
                return Err(format!("emitted {:?}", emitted.code()));
            }
            continue;
        }
        if emitted.code() != Code::Mov_r64_rm64 || emitted.op0_register() != Register::R11 {
            return Err(format!("ends with {:?}", emitted.code()));
        }
        if branch.op0_kind() == OpKind::Register {
            if emitted.op1_kind() != OpKind::Register || emitted.op1_register() != branch.op0_register() {
                return Err("another register".into());
            }
        } else if !reaches_same(branch, &emitted, &initial, &machine) {
            return Err("another address".into());
        }
        for number in (0..16).filter(|number| *number != usize::from(TARGET.0)) {
            if machine.registers[number] != initial.registers[number] {
                return Err(format!("register {number} changed"));
            }
        }
    }
    Ok(())
}

#[test]
fn targets_of_indirect_branches_are_loaded() {
    let mut mangler = Mangler::new(true);
    let samples = branch_samples();
    assert!(samples.len() > 20_000, "{}", samples.len());
    let mut n_refused = 0;
    for sample in &samples {
        for buffer_pc in [NEAR, FAR] {
            let mut buffer = [0u8; 128];
            let mut emitter = Emitter::new(&mut buffer, buffer_pc, &mut [], 0);
            if mangler.emit_target(&mut emitter, &sample.instruction).is_err() {
                // gs with a 32-bit address is given up.
                assert_eq!(sample.instruction.memory_segment(), Register::GS, "{:02x?}", sample.bytes);
                n_refused += 1;
                continue;
            }
            let size = emitter.position();
            if let Err(error) = check_target(&sample.instruction, &buffer[..size], buffer_pc) {
                panic!("{:02x?} at {buffer_pc:#x}: {error}; emitted {:02x?}", sample.bytes, &buffer[..size]);
            }
        }
    }
    assert!(n_refused < samples.len() / 4, "{n_refused}");
}
