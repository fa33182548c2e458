//! Where a fragment under construction goes.

use super::exits::ExitList;
use super::instruction_map::MapBuilder;
use crate::cpu::emit::Emitter;

/// What code is written to, and noted in.
pub struct Output<'a, 'b> {
    pub emitter: &'a mut Emitter<'b>,
    pub exits: &'a mut ExitList,
    pub map: &'a mut MapBuilder,
}
