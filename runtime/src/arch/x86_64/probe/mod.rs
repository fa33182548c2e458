//! Probes in the program's own code, for x86-64: the handlers' machine code, and how a thread gets a block when it first comes to one.

mod aside;
#[cfg(not(test))]
pub mod claim;
mod filters;
pub mod handler;
#[cfg(not(test))]
pub mod task;
#[cfg(test)]
mod tests;
#[cfg(not(test))]
pub mod trap;
#[cfg(test)]
mod values_tests;
