//! Where a fragment under construction goes.

use super::exits::ExitList;
use super::instruction_map::MapBuilder;
use crate::context::numbers::{ExitId, SiteId};
use crate::cpu::emit::Emitter;

/// What code is written to, and noted in.
pub struct Output<'a, 'b> {
    pub emitter: &'a mut Emitter<'b>,
    pub exits: &'a mut ExitList,
    pub map: &'a mut MapBuilder,
}

/// What is to be known of an indirect way out.
#[derive(Clone, Copy)]
pub struct IndirectWay {
    /// Cache offset where it can be interrupted.
    pub interrupt_at: Option<usize>,
    pub site: SiteId,
    /// The exit to the pad that is tried first.
    pub first_try: ExitId,
}
