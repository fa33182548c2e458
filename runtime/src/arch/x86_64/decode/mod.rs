//! From bytes to instructions of x86-64: blocks, and what instructions read, write and mean.

pub mod addresses;
pub mod ahead;
pub mod block;
pub mod flags;
pub mod float_state;
pub mod in_place;
pub mod named;
pub mod placed;
#[cfg(test)]
pub mod samples;
pub mod scratch;

/// The longest instruction (Intel SDM, 2.3.11).
pub const MAX_INSTRUCTION_BYTES: usize = 15;
