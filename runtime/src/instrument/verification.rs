//! The start of a pad, a landing or a verified entry: is the target that came here the one that it stands for?
//!
//! Two pairs of site and target may share a place in the branch table, so any target may come. The question must not
//! touch the flags even where they are dead at the pad's own target: the other pair's target may need them. That leaves
//! the two branches that ask rcx without flags; rcx is in r10 meanwhile. `loop` goes straight on when the answer is yes,
//! which keeps the processor's branch history for the program's own branches, but is slow on some makers' processors;
//! there `jrcxz` asks.

use super::exits::ExitList;
use crate::arch::x86_64::displacements::GS_GATE_INDIRECT;
use crate::arch::x86_64::emit::Emitter;
use crate::arch::x86_64::{INDEX, RCX, TARGET};
use crate::cache::fragment::ExitType;
use crate::cache::NONE;

/// Emits the way for other targets: to `table_way` or, if there is none, to the gate, which looks further. Returns where
/// it starts.
pub fn emit_other_way(emitter: &mut Emitter, table_way: Option<u64>) -> u64 {
    let start = emitter.address();
    emitter.copy_register(RCX, INDEX);
    match table_way {
        Some(address) => emitter.jump_to(address),
        None => emitter.jump_gs(GS_GATE_INDIRECT),
    }
    start
}

/// Emits the question whether `target` came; what follows runs when the answer is yes. rcx is still in r10 then, r11 the target. Returns the short branch to the other way, which `bind_short_to` or `bind_short` must bind; `None`
/// where none is needed.
#[must_use]
pub fn emit_question(emitter: &mut Emitter, has_fast_loop: bool, target: u64, table_way: Option<u64>) -> Option<u64> {
    emitter.copy_register(INDEX, RCX);
    // Not from memory: the constants of many pads would be as many lines of the data cache.
    emitter.load_immediate(RCX, target.wrapping_neg().wrapping_add(u64::from(has_fast_loop)));
    emitter.add_registers(RCX, RCX, Some(TARGET), 1, 0);
    if has_fast_loop {
        // rcx is one where the targets are the same: `loop` makes it zero and goes on.
        return Some(emitter.jump_loop());
    }
    let hit = emitter.jump_rcx_zero();
    emit_other_way(emitter, table_way);
    emitter.bind_short(hit);
    None
}

/// Emits the question with its other way in front, so that the way that is taken can run straight on into the target.
/// Returns where the question starts. rcx is still in r10 behind it.
pub fn emit_verification(emitter: &mut Emitter, has_fast_loop: bool, target: u64, table_way: Option<u64>) -> u64 {
    let other_way = emit_other_way(emitter, table_way);
    let start = emitter.address();
    if let Some(miss) = emit_question(emitter, has_fast_loop, target, table_way) {
        emitter.bind_short_to(miss, other_way);
    }
    start
}

/// Emits, in front of a hot fragment's code, the question whether `pc` came, and the way into the code as an exit: where no edge
/// is counted, all sites may enter there, without a pad each. Returns where.
pub fn emit_verified_entry(emitter: &mut Emitter, exits: &mut ExitList, has_fast_loop: bool, pc: u64) -> u64 {
    let start = emit_verification(emitter, has_fast_loop, pc, None);
    emitter.copy_register(RCX, INDEX);
    exits.emit_jump(emitter, ExitType::Verified, pc, NONE);
    start
}
