//! Restartable sequences: no program of this processor's has any.

use crate::buffer::RingWriter;
use crate::context::numbers::FragmentId;
use crate::cpu::decode::block::Block;
use crate::decode::Ending;
use crate::instrument::request::Request;
use crate::instrument::{BuildError, Engine};

impl Engine {
    /// As any other block.
    pub fn build_in_rseq(
        &mut self,
        writer: &RingWriter,
        request: Request,
        block: &mut Block,
        ending: Ending,
        _: bool,
    ) -> Result<FragmentId, BuildError> {
        self.build_block(writer, request, block, ending)
    }
}
