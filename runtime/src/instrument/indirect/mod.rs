//! Indirect branches and returns: pads, and how a target is verified.

pub mod pads;
pub mod strays;
