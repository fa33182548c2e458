//! The order of execution (mode `full`): what of a way out a thread's path records, and the code that does.

pub mod decisions;
pub mod log;
pub mod symbols;
