//! Machine code that is inserted into blocks and put at their ends, for x86-64.

pub mod branch_ways;
pub mod captures;
pub mod counting;
#[cfg(test)]
mod inserted;
pub mod loops;
pub mod order;
pub mod returns;
pub mod rseq_code;
pub mod rseq_ways;
pub mod staleness;
pub mod tags;
pub mod terminator;
pub mod verification;
