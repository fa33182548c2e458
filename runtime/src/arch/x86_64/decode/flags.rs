//! Which arithmetic flags an instruction needs and which it leaves behind: where `inc` may be put without saving them.
//!
//! `inc` changes OF SF ZF AF PF; carry survives it. A place is free for `inc` when on the only way on from there all
//! five are written before any of them is read.

use super::MAX_INSTRUCTION_BYTES;
use crate::context::addresses::AppPc;
use crate::cpu::decode::ahead::look_along;
use crate::cpu::decode::block::branch_target;
use crate::decode::ranges::Ranges;
use core::ops::ControlFlow;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register, RflagsBits};

/// What `inc` changes.
pub const INC_FLAGS: u32 = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// What one instruction does to the flags.
#[derive(Clone, Copy)]
pub struct FlagUse {
    pub reads: u32,
    /// Written whatever the operands are.
    pub kills: u32,
}

/// Flags read and surely overwritten by an instruction.
pub fn flag_use(instruction: &Instruction) -> FlagUse {
    let reads = instruction.rflags_read();
    let mut kills = instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set();
    const RESULT_FLAGS: u32 = RflagsBits::SF | RflagsBits::ZF | RflagsBits::PF;
    if kills & RESULT_FLAGS == RESULT_FLAGS {
        // Logic instructions leave AF undefined, shifts AF and OF too: nothing can rely on the old values.
        kills |= instruction.rflags_undefined() & (RflagsBits::AF | RflagsBits::OF);
    }
    // A count of zero leaves the flags alone (Intel SDM, shifts, rotates and repeated string instructions).
    match instruction.mnemonic() {
        Mnemonic::Shl
        | Mnemonic::Sal
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rcl
        | Mnemonic::Rcr => {
            let last = instruction.op_count() - 1;
            let is_variable =
                instruction.op_kind(last) == OpKind::Register && instruction.op_register(last) == Register::CL;
            if is_variable || (instruction.op_kind(last) == OpKind::Immediate8 && instruction.immediate8() & 0x1f == 0)
            {
                kills = 0;
            }
        }
        Mnemonic::Shld | Mnemonic::Shrd => kills = 0,
        _ => {}
    }
    if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
        kills = 0;
    }
    FlagUse { reads, kills }
}

/// The home of what outlives all code that may be written.
pub const NOWHERE: AppPc = AppPc::HIGHEST;

/// Instructions looked at beyond a branch, at most.
const LOOK_AHEAD: usize = 12;

/// Whether the flags that `inc` changes are dead at `pc`, for the block at `home`, which relies on it. Of code that may be
/// written only what falls with that block is looked at.
pub fn dead_at(ranges: &Ranges, home: AppPc, pc: AppPc) -> bool {
    let mut killed = 0;
    let mut pc = pc;
    let mut left = LOOK_AHEAD;
    for _ in 0..3 {
        let mut buffer = [0; LOOK_AHEAD * MAX_INSTRUCTION_BYTES];
        if ranges.is_rewritten(pc, pc.saturating_add(buffer.len() as u64)) {
            return false;
        }
        let outlook =
            look_along(ranges, home, pc, &mut buffer, &mut left, |instruction| look(instruction, &mut killed));
        match outlook {
            Some(Outlook::Dead) => return true,
            Some(Outlook::Unknown) | None => return false,
            Some(Outlook::At(target)) => pc = target,
        }
    }
    false
}

/// What a straight run of code says about the flags.
enum Outlook {
    Dead,
    Unknown,
    /// It goes on there.
    At(AppPc),
}

fn look(instruction: &Instruction, killed: &mut u32) -> ControlFlow<Outlook> {
    let flags = flag_use(instruction);
    if flags.reads & INC_FLAGS & !*killed != 0 {
        return ControlFlow::Break(Outlook::Unknown);
    }
    *killed |= flags.kills & INC_FLAGS;
    if *killed == INC_FLAGS {
        return ControlFlow::Break(Outlook::Dead);
    }
    match instruction.flow_control() {
        FlowControl::Next => ControlFlow::Continue(()),
        FlowControl::UnconditionalBranch => ControlFlow::Break(Outlook::At(branch_target(instruction))),
        FlowControl::Call if instruction.is_call_near() => ControlFlow::Break(Outlook::At(branch_target(instruction))),
        _ => ControlFlow::Break(Outlook::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_dead(code: &[u8]) -> bool {
        let mut padded = [0u8; 64];
        padded[..code.len()].copy_from_slice(code);
        let base = AppPc::from_raw(padded.as_ptr() as u64);
        let mut ranges = Ranges::new();
        ranges.insert(base, base + code.len() as u64, 5, true);
        dead_at(&ranges, base, base)
    }

    #[test]
    fn compare_kills_and_jcc_reads() {
        assert!(is_dead(&[0x48, 0x39, 0xd8]), "cmp rax, rbx");
        assert!(!is_dead(&[0x74, 0x00]), "je");
        assert!(!is_dead(&[0x90]), "nop, then nothing known");
        assert!(is_dead(&[0x90, 0x48, 0x85, 0xc0]), "nop; test rax, rax");
        assert!(!is_dead(&[0x9c, 0x48, 0x85, 0xc0]), "pushfq reads them all");
        assert!(!is_dead(&[0x0f, 0x94, 0xc0, 0x48, 0x85, 0xc0]), "sete reads ZF");
    }

    #[test]
    fn carry_is_not_ours() {
        assert!(is_dead(&[0x48, 0x11, 0xd8]), "adc reads carry only, which inc keeps");
    }

    #[test]
    fn counts_of_zero_write_nothing() {
        assert!(!is_dead(&[0x48, 0xd3, 0xe0]), "shl rax, cl");
        assert!(!is_dead(&[0x48, 0xc1, 0xe0, 0x40]), "shl rax, 64 is shl rax, 0");
        assert!(is_dead(&[0x48, 0xc1, 0xe0, 0x04]), "shl rax, 4");
        assert!(!is_dead(&[0xf3, 0xa6]), "repe cmpsb");
        assert!(!is_dead(&[0xc3]), "ret");
    }

    #[test]
    fn direct_jumps_are_followed() {
        assert!(is_dead(&[0xeb, 0x01, 0xf4, 0x48, 0x39, 0xd8]), "jmp over hlt; cmp");
    }
}
