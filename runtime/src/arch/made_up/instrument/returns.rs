//! Returns, as a thread's path is told of them.

use super::order::FullBuffer;
use crate::context::addresses::CachePc;
use crate::context::numbers::ExitId;
use crate::cpu::code;
use crate::cpu::emit::Emitter;
use crate::cpu::features::Features;
use crate::instrument::order::symbols::ReturnSymbols;

pub struct ReturnWays {
    pub full: FullBuffer,
    /// Where the target was in none of the calls that were looked at.
    pub elsewhere: Option<CachePc>,
}

pub fn emit_return_ways(emitter: &mut Emitter, _: &ReturnSymbols, exit: ExitId, _: Features) -> ReturnWays {
    emitter.word(code::TELL, i64::from(exit.raw()));
    ReturnWays { full: FullBuffer, elsewhere: None }
}
