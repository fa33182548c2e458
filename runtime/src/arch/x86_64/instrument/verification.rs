//! The start of a pad, a landing or a verified entry: is the target that came here the one that it stands for?
//!
//! Two pairs of site and target may share a place in the branch table, so any target may come. The question must not
//! touch the flags even where they are dead at the pad's own target: the other pair's target may need them. So rcx is
//! asked (arch/x86_64/question.rs), and is in r10 meanwhile.

use crate::cache::exit::ExitType;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::CounterId;
use crate::cpu::displacements::GS_GATE_INDIRECT;
use crate::cpu::emit::Emitter;
use crate::cpu::features::Features;
use crate::cpu::question::Question;
use crate::cpu::{INDEX, RCX, TARGET};
use crate::instrument::exits::ExitList;

/// Emits the way for other targets: to `table_way` or, if there is none, to the gate, which looks further. Returns where
/// it starts.
pub fn emit_other_way(emitter: &mut Emitter, table_way: Option<CachePc>) -> CachePc {
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
pub fn emit_question(
    emitter: &mut Emitter,
    question: Question,
    target: AppPc,
    table_way: Option<CachePc>,
) -> Option<CachePc> {
    emitter.copy_register(INDEX, RCX);
    // Not from memory: the constants of many pads would be as many lines of the data cache.
    emitter.load_immediate(RCX, target.raw().wrapping_neg().wrapping_add(question.yes()));
    emitter.add_registers(RCX, RCX, Some(TARGET), 1, 0);
    if let Some(miss) = emitter.ask_straight(question) {
        return Some(miss);
    }
    let hit = emitter.jump_rcx_zero();
    emit_other_way(emitter, table_way);
    emitter.bind_short(hit);
    None
}

/// Emits the question with its other way in front, so that the way that is taken can run straight on into the target.
/// Returns where the question starts. rcx is still in r10 behind it.
pub fn emit_verification(
    emitter: &mut Emitter,
    features: Features,
    target: AppPc,
    table_way: Option<CachePc>,
) -> CachePc {
    let other_way = emit_other_way(emitter, table_way);
    let start = emitter.address();
    if let Some(miss) = emit_question(emitter, features.question, target, table_way) {
        emitter.bind_short_to(miss, other_way);
    }
    start
}

/// Emits what puts the register back that was asked.
pub fn give_back_asked(emitter: &mut Emitter) {
    emitter.copy_register(RCX, INDEX);
}

/// Emits, in front of a hot fragment's code, the question whether `pc` came, and the way into the code as an exit: where no edge
/// is counted, all sites may enter there, without a pad each. Returns where.
pub fn emit_verified_entry(emitter: &mut Emitter, exits: &mut ExitList, features: Features, pc: AppPc) -> CachePc {
    let start = emit_verification(emitter, features, pc, None);
    give_back_asked(emitter);
    exits.emit_jump(emitter, ExitType::Verified, pc, CounterId::NONE);
    start
}
