//! Tags of blocks (mode `region`).

pub mod blocks;
pub mod rules;
