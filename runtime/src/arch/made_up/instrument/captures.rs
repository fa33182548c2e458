//! Captures: no code of this processor's works any out.

use crate::context::addresses::CachePc;
use crate::context::numbers::ExitId;
use crate::cpu::emit::Emitter;
use crate::instrument::captures::places::Place;

pub const N_REGISTERS: u32 = 16;
pub const N_VECTORS: u32 = 0;

pub fn emit(emitter: &mut Emitter, _: &Place, _: u64, _: ExitId) -> CachePc {
    emitter.address()
}
