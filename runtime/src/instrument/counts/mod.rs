//! Counters: where they stand, which code does without one, and hot loops.

pub mod counters;
pub mod leaders;
pub mod loops;
