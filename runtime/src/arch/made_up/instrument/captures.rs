//! Captures: no code of this processor's works any out.

use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::ExitId;
use crate::cpu::emit::Emitter;
use crate::instrument::captures::places::{Outlets, Place};

pub fn emit(emitter: &mut Emitter, _: &Place, _: AppPc, _: ExitId, _: Outlets) -> CachePc {
    emitter.address()
}
