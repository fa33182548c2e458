//! Is the target that came here the one that this stands for?

use crate::cache::exit::ExitType;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::CounterId;
use crate::cpu::code;
use crate::cpu::emit::Emitter;
use crate::cpu::features::Features;
use crate::instrument::exits::ExitList;

/// Emits the question. Returns where it starts.
pub fn emit_verification(emitter: &mut Emitter, _: Features, target: AppPc, _: Option<CachePc>) -> CachePc {
    let start = emitter.word(code::IS_TARGET, 0);
    emitter.qword(target.raw());
    start
}

/// No register was needed for it.
pub fn give_back_asked(_: &mut Emitter) {}

/// Emits the question in front of a hot fragment's code, and the way into that. Returns where.
pub fn emit_verified_entry(emitter: &mut Emitter, exits: &mut ExitList, features: Features, pc: AppPc) -> CachePc {
    let start = emit_verification(emitter, features, pc, None);
    exits.emit_jump(emitter, ExitType::Verified, pc, CounterId::NONE);
    start
}
