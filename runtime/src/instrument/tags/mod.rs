//! Tags of blocks (mode `region`).

pub mod blocks;
pub mod code;
pub mod rules;
