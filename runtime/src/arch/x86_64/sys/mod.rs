//! What the kernel has of its own for x86-64: numbers of calls, how they are made, what lies in a signal frame.

pub mod calls;
pub mod clock;
pub mod kernel;
#[cfg(not(test))]
pub mod memory;
pub mod number;
