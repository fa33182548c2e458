//! Restartable sequences: no program of this processor's has any.

use crate::cache::rseq::Enclosure;
use crate::cpu::decode::block::Block;
use crate::instrument::output::Output;
use crate::instrument::rseq_fragment::RseqEmitted;
use crate::instrument::rseq_plan::{RseqFailure, RseqPlan};
use crate::instrument::Engine;

impl Engine {
    /// Nothing can be there.
    pub fn emit_in_enclosure(
        &mut self,
        _: &Block,
        _: &RseqPlan,
        _: &Enclosure,
        _: &mut Output,
    ) -> Result<RseqEmitted, RseqFailure> {
        Err(RseqFailure::Impossible)
    }
}
