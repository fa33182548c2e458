//! Code that the program may write at any time: compared with what was translated, before each execution.
//!
//! A fragment of such code starts with the comparison, and ends after each instruction that may write memory, so that
//! no instruction runs in a form that the program has already overwritten. What runs often and does not change is
//! protected instead (instrument/change/trust.rs).

extern crate alloc;
use crate::context::numbers::ExitId;
use crate::cpu::displacements::{GS_SPILL_ADDRESS, GS_SPILL_OTHER};
use crate::cpu::emit::Emitter;
use crate::cpu::{RAX, RCX};
use crate::decode::Block;
use crate::instrument::exits::ExitList;

/// Bytes compared by one instruction.
const STEP: usize = 4;
/// Operands relative to rip reach so far from where the comparison begins.
const NEAR: u64 = 0x7fff_0000;
/// Condition codes of `jz` and `jnz`.
const ZERO: u8 = 4;
const NOT_ZERO: u8 = 5;

/// Emits the comparison, and what leaves by exit `stale` where it fails. `hot` is the cell that counts how often it holds, and
/// the exit by which the fragment is left when that is often.
///
/// The flags are kept: what is there instead of the old code may need them. Returns where it goes on that fails.
pub fn emit_check(emitter: &mut Emitter, block: &Block, stale: ExitId, hot: Option<(u32, ExitId)>) -> usize {
    emitter.store_gs(GS_SPILL_OTHER, RAX);
    emitter.save_flags_to_rax();
    // Where the code is too far for an operand relative to rip, rcx has its address.
    let distance = block.pc.raw().wrapping_sub(emitter.address().raw()) as i64;
    let is_far = distance.unsigned_abs() > NEAR;
    if is_far {
        emitter.store_gs(GS_SPILL_ADDRESS, RCX);
        emitter.load_immediate(RCX, block.pc.raw());
    }
    let mut misses = alloc::vec::Vec::new();
    let mut address = block.pc.raw();
    let mut rest = block.code.as_slice();
    while let Some(first) = rest.first() {
        // Aligned accesses only: the program may have alignment checks on.
        match rest.first_chunk::<STEP>() {
            Some(bytes) if address.is_multiple_of(STEP as u64) => {
                let value = u32::from_le_bytes(*bytes);
                match is_far {
                    true => emitter.compare_memory_at_rcx((address - block.pc.raw()) as u32, value),
                    false => emitter.compare_memory(address, value),
                }
                rest = &rest[STEP..];
                address += STEP as u64;
            }
            _ => {
                match is_far {
                    true => emitter.compare_memory_byte_at_rcx((address - block.pc.raw()) as u32, *first),
                    false => emitter.compare_memory_byte(address, *first),
                }
                rest = &rest[1..];
                address += 1;
            }
        }
        misses.push(emitter.jump_condition(NOT_ZERO));
    }
    let hot = hot.map(|(cell, exit)| {
        emitter.increment_gs16(cell);
        (emitter.jump_condition(ZERO), exit)
    });
    restore(emitter, is_far);
    let over = emitter.jump();
    for miss in misses {
        emitter.bind(miss);
    }
    let failed = emitter.position();
    leave(emitter, stale, is_far);
    if let Some((jump, exit)) = hot {
        emitter.bind(jump);
        leave(emitter, exit, is_far);
    }
    emitter.bind(over);
    failed
}

/// Where a comparison goes on that holds after all, by where it goes on if it fails; `distance` is how far the code is from the
/// comparison. Reachable from the signal handler.
pub fn holding_position(failed: u64, distance: u64) -> u64 {
    let mut buffer = [0; 64];
    let mut emitter = Emitter::new(&mut buffer, 0, &mut [], 0);
    restore(&mut emitter, distance > NEAR);
    let _ = emitter.jump();
    failed - emitter.position() as u64
}

/// Emits what puts flags and registers back.
fn restore(emitter: &mut Emitter, is_far: bool) {
    emitter.restore_flags_from_rax();
    if is_far {
        emitter.load_gs(RCX, GS_SPILL_ADDRESS);
    }
    emitter.load_gs(RAX, GS_SPILL_OTHER);
}

fn leave(emitter: &mut Emitter, exit: ExitId, is_far: bool) {
    restore(emitter, is_far);
    ExitList::emit_stub_jump(emitter, exit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::addresses::AppPc;
    use crate::cpu::decode::samples::loop_of_one;
    use iced_x86::{Code, Decoder, DecoderOptions};

    /// The codes of what stands from where a comparison goes on that holds up to where it goes on that fails.
    fn codes_of_holding(pc: u64, base: u64) -> Vec<Code> {
        let mut buffer = [0; 512];
        let mut emitter = Emitter::new(&mut buffer, base, &mut [], 0);
        let failed = emit_check(&mut emitter, &loop_of_one(AppPc::from_raw(pc)), ExitId::from_raw(1), None) as u64;
        let start = holding_position(failed, pc.wrapping_sub(base).cast_signed().unsigned_abs()) as usize;
        let code = &buffer[start..failed as usize];
        Decoder::new(64, code, DecoderOptions::NONE).into_iter().map(|one| one.code()).collect()
    }

    #[test]
    fn a_comparison_that_holds_after_all_goes_on_where_registers_come_back() {
        let near = codes_of_holding(0x1000, 0x2000);
        assert_eq!(near.last(), Some(&Code::Jmp_rel32_64));
        assert!(!near.contains(&Code::INVALID) && near.contains(&Code::Sahf));
        let far = codes_of_holding(0x1000, 0x7f00_0000_0000);
        assert_eq!(far.len(), near.len() + 1, "rcx comes back, too");
    }
}
