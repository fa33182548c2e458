//! Tags of blocks (mode region): no thread of this processor's has any.

use crate::context::numbers::{BlockNumber, ExitId};
use crate::cpu::decode::block::Block;
use crate::cpu::emit::Emitter;

pub fn emit_question(_: &mut Emitter, _: &Block, _: BlockNumber, _: ExitId, _: bool) -> bool {
    true
}
