//! From bytes to instructions of x86-64: blocks, and what instructions read, write and mean.

pub mod ahead;
pub mod block;
pub mod flags;
pub mod float_state;
pub mod in_place;
pub mod named;
pub mod placed;
pub mod scratch;
