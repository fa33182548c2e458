//! Code that is inserted into blocks and put at their ends, for the made-up processor.

pub mod captures;
pub mod counting;
pub mod loops;
pub mod machine;
pub mod order;
pub mod returns;
pub mod rseq_code;
pub mod staleness;
pub mod tags;
pub mod terminator;
#[cfg(test)]
mod tests;
pub mod verification;
