//! Tags of blocks (mode region): no thread of this processor's has any.

use crate::context::numbers::ExitId;
use crate::cpu::decode::block::Block;
use crate::cpu::emit::Emitter;

pub fn emit_question(_: &mut Emitter, _: &Block, _: u32, _: ExitId, _: bool) -> bool {
    true
}
