//! What a thread's path is told: numbers, in one instruction each.

use crate::context::numbers::ExitId;
use crate::cpu::code;
use crate::cpu::emit::Emitter;
use crate::cpu::features::Features;

/// What follows where a buffer is full: none ever is.
pub struct FullBuffer;

impl FullBuffer {
    pub fn emit(self, _: &mut Emitter) -> bool {
        true
    }
}

pub fn emit_symbol(emitter: &mut Emitter, symbol: u16, _: ExitId, _: Features) -> FullBuffer {
    emitter.word(code::TELL, i64::from(symbol));
    FullBuffer
}
