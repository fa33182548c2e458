//! Counters in translated code, and where they may be put.
//!
//! Every execution of a fragment adds one to exactly one counter, or, where that saves instructions, one to a counter of both ways and
//! another one to that of one of them (instrument/branch_plan.rs). Where the flags that `inc` changes are dead it is one instruction;
//! elsewhere the addition goes through a register, which leaves the flags alone.

use crate::cache::fragment::Habit;
use crate::context::layout::counter_offset;
use crate::context::numbers::CounterId;
use crate::cpu::decode::flags::{flag_use, INC_FLAGS};
use crate::cpu::displacements::GS_SPILL_INDEX;
use crate::cpu::emit::Emitter;
use crate::cpu::{Gpr, INDEX, TARGET};
use crate::decode::Block;
use crate::instrument::branch_way::BranchWay;
use iced_x86::{Code, Instruction, OpKind, Register};

/// What a hot loop has in registers all around, where r10 and r11 are lent: the head's counter, and its cell of decisions.
pub const KEPT_COUNTER: Gpr = INDEX;
pub const KEPT_DECISIONS: Gpr = TARGET;

/// Emits `counter += 1`; nothing for `NONE`. Where r10 and r11 are lent, r11 is free.
pub fn emit_count(emitter: &mut Emitter, counter: CounterId, are_flags_dead: bool, is_lending: bool) {
    if counter == CounterId::NONE {
        return;
    }
    let displacement = counter_offset(counter);
    if are_flags_dead {
        emitter.increment_gs(displacement);
        return;
    }
    if is_lending {
        // r10 may be kept.
        emit_count_through(emitter, counter, TARGET);
        return;
    }
    emitter.store_gs(GS_SPILL_INDEX, INDEX);
    emit_count_through(emitter, counter, INDEX);
    emitter.load_gs(INDEX, GS_SPILL_INDEX);
}

/// Emits a load of what a counter is, for `emit_kept_count`.
pub fn emit_keep(emitter: &mut Emitter, counter: CounterId, register: Gpr) {
    emitter.load_gs(register, counter_offset(counter));
}

/// Emits `counter += 1` where a register has it; flags are kept.
pub fn emit_kept_count(emitter: &mut Emitter, counter: CounterId, register: Gpr) {
    emitter.add_immediate(register, 1);
    emitter.store_gs(counter_offset(counter), register);
}

/// Emits a store of what a counter is, which changes nothing: the next one to count in it finds a store to forward from. Some processors
/// learn whether a load can have what was stored each time anew, if it can't at first. Flags are kept.
pub fn emit_rewrite(emitter: &mut Emitter, counter: CounterId, is_lending: bool) {
    let displacement = counter_offset(counter);
    if !is_lending {
        emitter.store_gs(GS_SPILL_INDEX, INDEX);
    }
    emitter.load_gs(INDEX, displacement);
    emitter.store_gs(displacement, INDEX);
    if !is_lending {
        emitter.load_gs(INDEX, GS_SPILL_INDEX);
    }
}

/// Emits `counter += 1` where `register` may be lost; flags are kept.
pub fn emit_count_through(emitter: &mut Emitter, counter: CounterId, register: Gpr) {
    let displacement = counter_offset(counter);
    emitter.load_gs(register, displacement);
    emitter.add_immediate(register, 1);
    emitter.store_gs(displacement, register);
}

/// Which way of the conditional branch at the block's end goes straight on in the cache: if nothing is known
/// of what it did so far, loops are expected to go backwards.
/// `None` for branches that decide without flags: both their ways go straight on.
pub fn find_straight_way(block: &Block, habit: Option<Habit>) -> Option<BranchWay> {
    let branch = block.instructions.last()?;
    let has_flags = branch.is_jcc_short() || branch.is_jcc_near();
    let goes_back = branch.near_branch_target() <= branch.ip();
    has_flags.then(|| BranchWay::of(habit.map_or(goes_back, |habit| habit.is_mostly_taken)))
}

/// Whether the flags of `inc` are dead at the start of a block, given what is live behind its last copied instruction.
pub fn are_flags_dead_at_start(block: &Block, are_dead_at_end: bool) -> bool {
    let mut live = if are_dead_at_end { 0 } else { INC_FLAGS };
    for instruction in block.instructions.iter().rev() {
        live = live_before(instruction, live);
    }
    live == 0
}

/// Which of the flags of `inc` are live in front of an instruction, given those behind it.
fn live_before(instruction: &Instruction, live: u32) -> u32 {
    let flags = flag_use(instruction);
    (live & !flags.kills) | (flags.reads & INC_FLAGS)
}

/// Where a block's counter is incremented, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountPlace {
    /// Before this instruction.
    pub before: usize,
    pub way: CountWay,
}

/// How a counter is incremented at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountWay {
    /// By `inc`: its flags are dead.
    Flags,
    /// Through this register, which is dead.
    Register(Gpr),
    /// Through a register that is spilled for it.
    Spill,
    /// In this register, which has it all around a loop (arch/x86_64/instrument/loops.rs).
    Kept(Gpr),
}

impl CountPlace {
    /// In front of a block of which nothing is known.
    pub const AT_START: CountPlace = CountPlace { before: 0, way: CountWay::Spill };

    /// The best place among the first `n` instructions and right after them.
    pub fn find(block: &Block, n: usize, are_dead_at_end: bool) -> CountPlace {
        let place = Self::find_anywhere(block, n, are_dead_at_end);
        CountPlace { before: in_front_of_popf(block, place.before), ..place }
    }

    fn find_anywhere(block: &Block, n: usize, are_dead_at_end: bool) -> CountPlace {
        // A trap is reported with the address behind its instruction: no counting may stand there.
        if let Some(trap) = find_trap(block, n) {
            return CountPlace { before: trap, way: CountWay::Spill };
        }
        if let Some(before) = find_dead_place(block, n, are_dead_at_end) {
            return CountPlace { before, way: CountWay::Flags };
        }
        let overwritten = |index: usize| Some((index, overwritten_register(&block.instructions[index])?));
        match (0..n).rev().find_map(overwritten) {
            Some((before, register)) => CountPlace { before, way: CountWay::Register(register) },
            None => CountPlace { before: n, way: CountWay::Spill },
        }
    }

    /// The last place among the first `n` instructions where `inc` is possible.
    pub fn find_for_flags(block: &Block, n: usize) -> Option<CountPlace> {
        let before = in_front_of_popf(block, find_dead_place(block, n, false)?);
        (!has_trap(block, n)).then_some(CountPlace { before, way: CountWay::Flags })
    }

    /// The same place, with all registers as the program has them.
    pub fn spilled(self) -> CountPlace {
        match self.way {
            CountWay::Register(_) => CountPlace { way: CountWay::Spill, ..self },
            _ => self,
        }
    }

    /// The same place, where `register` has the counter.
    pub fn kept_in(self, register: Gpr) -> CountPlace {
        CountPlace { way: CountWay::Kept(register), ..self }
    }

    /// About how many bytes it takes, and whether these are exact.
    pub fn size_bytes(&self) -> (u64, bool) {
        /// Bytes of `inc` of a counter, and of what counts in a register and stores it.
        const INCREMENT_BYTES: u64 = 9;
        const KEPT_BYTES: u64 = 13;
        match self.way {
            CountWay::Flags => (INCREMENT_BYTES, true),
            CountWay::Kept(_) => (KEPT_BYTES, true),
            CountWay::Register(_) | CountWay::Spill => (INCREMENT_BYTES, false),
        }
    }

    pub fn emit(&self, emitter: &mut Emitter, counter: CounterId, is_lending: bool) {
        match self.way {
            CountWay::Flags => emit_count(emitter, counter, true, is_lending),
            CountWay::Register(register) => emit_count_through(emitter, counter, register),
            CountWay::Kept(register) => emit_kept_count(emitter, counter, register),
            CountWay::Spill => emit_count(emitter, counter, false, is_lending),
        }
    }
}

/// The first of a block's first `n` instructions that traps: its handler sees the flags.
fn find_trap(block: &Block, n: usize) -> Option<usize> {
    block.instructions[..n].iter().position(is_trap)
}

fn is_trap(instruction: &Instruction) -> bool {
    matches!(instruction.code(), Code::Int3 | Code::Int1 | Code::Int_imm8)
}

/// Whether one of a block's first `n` instructions traps.
pub fn has_trap(block: &Block, n: usize) -> bool {
    find_trap(block, n).is_some()
}

/// `popf` may set the trap flag, which takes effect behind the instruction after it: that must be the program's. All flags
/// are as dead in front of it as behind it.
fn in_front_of_popf(block: &Block, before: usize) -> usize {
    if follows_popf(block, before) {
        before - 1
    } else {
        before
    }
}

fn follows_popf(block: &Block, before: usize) -> bool {
    before > 0 && matches!(block.instructions[before - 1].code(), Code::Popfq | Code::Popfw)
}

/// Whether code of the runtime may stand before an instruction: not right behind one that traps, which is reported with the address
/// behind it, nor behind `popf`.
pub fn may_stand_before(block: &Block, index: usize) -> bool {
    !follows_popf(block, index) && (index == 0 || !is_trap(&block.instructions[index - 1]))
}

/// The register that an instruction overwrites without reading it and without a chance to fault: dead before it.
fn overwritten_register(instruction: &Instruction) -> Option<Gpr> {
    let is_move = matches!(
        instruction.code(),
        Code::Mov_r64_rm64
            | Code::Mov_rm64_r64
            | Code::Mov_r32_rm32
            | Code::Mov_rm32_r32
            | Code::Mov_r64_imm64
            | Code::Mov_r32_imm32
            | Code::Mov_rm64_imm32
            | Code::Mov_rm32_imm32
            | Code::Lea_r64_m
            | Code::Lea_r32_m
    );
    if !is_move || instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let target = instruction.op0_register().full_register();
    let reads_memory = instruction.op1_kind() == OpKind::Memory;
    let is_lea = matches!(instruction.code(), Code::Lea_r64_m | Code::Lea_r32_m);
    let is_read = if reads_memory {
        !is_lea
            || instruction.memory_base().full_register() == target
            || instruction.memory_index().full_register() == target
    } else {
        instruction.op1_kind() == OpKind::Register && instruction.op1_register().full_register() == target
    };
    (!is_read && target != Register::RSP).then(|| Gpr(target.number() as u8))
}

/// The last of the first `n` instructions before which the flags of `inc` are dead, given what is live at the end.
/// `n` itself stands for the end. The last place is the best one: fewer faults can come after it.
fn find_dead_place(block: &Block, n: usize, are_dead_at_end: bool) -> Option<usize> {
    if are_dead_at_end {
        return Some(n);
    }
    let mut live = INC_FLAGS;
    for index in (0..block.instructions.len()).rev() {
        live = live_before(&block.instructions[index], live);
        if live == 0 && index <= n {
            return Some(index);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn overwritten(code: &[u8]) -> Option<u8> {
        overwritten_register(&Decoder::new(64, code, DecoderOptions::NONE).decode()).map(|register| register.0)
    }

    #[test]
    fn plain_moves_leave_their_target_dead() {
        assert_eq!(overwritten(&[0x48, 0x89, 0xc7]), Some(7), "mov rdi, rax");
        assert_eq!(overwritten(&[0x41, 0xb8, 1, 0, 0, 0]), Some(8), "mov r8d, 1");
        assert_eq!(overwritten(&[0x48, 0x8d, 0x43, 0x08]), Some(0), "lea rax, [rbx + 8]");
    }

    #[test]
    fn whatever_reads_or_may_fault_does_not() {
        assert_eq!(overwritten(&[0x48, 0x8b, 0x07]), None, "mov rax, [rdi] may fault");
        assert_eq!(overwritten(&[0x48, 0x8d, 0x40, 0x08]), None, "lea rax, [rax + 8]");
        assert_eq!(overwritten(&[0x48, 0x89, 0xc0]), None, "mov rax, rax");
        assert_eq!(overwritten(&[0x88, 0xc7]), None, "mov bh, al keeps the rest of rbx");
        assert_eq!(overwritten(&[0x66, 0x89, 0xc7]), None, "mov di, ax keeps the rest of rdi");
        assert_eq!(overwritten(&[0x48, 0x89, 0xc4]), None, "mov rsp, rax");
        assert_eq!(overwritten(&[0x48, 0x89, 0x07]), None, "mov [rdi], rax");
        assert_eq!(overwritten(&[0x5b]), None, "pop rbx may fault");
    }

    #[test]
    fn nothing_stands_behind_what_traps() {
        // int3; nop; int 3; nop; popf; nop
        let code = [0xcc, 0x90, 0xcd, 3, 0x90, 0x9d, 0x90];
        let mut block = Block::new();
        block.instructions.extend(&mut Decoder::new(64, &code, DecoderOptions::NONE));
        let places: [bool; 6] = core::array::from_fn(|index| may_stand_before(&block, index));
        assert_eq!(places, [true, false, true, false, true, false]);
    }
}
