//! From bytes to instructions of the made-up processor.

pub mod addresses;
pub mod block;
pub mod flags;
pub mod placed;
#[cfg(test)]
pub mod samples;
pub mod scratch;
