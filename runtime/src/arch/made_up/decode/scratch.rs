//! No register is ever lent.

use super::block::Block;
use crate::context::addresses::AppPc;
use crate::decode::Ranges;

pub fn are_lent_named(_: &Block) -> bool {
    false
}

pub fn lends_at(_: &Ranges, _: AppPc) -> bool {
    false
}

pub fn leads_to(_: &Ranges, _: AppPc, _: AppPc) -> bool {
    false
}
