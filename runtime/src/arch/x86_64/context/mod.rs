//! What a thread's context holds of the processor.

mod gate;
mod registers;
mod vector;

pub use gate::Gate;
pub use registers::{Overwritten, Registers, N_HELD};
pub use vector::{Vector, AT_ENTRY};

/// The processor's number of page faults (arch/x86/include/asm/trapnr.h).
pub const PAGE_FAULT: u64 = 14;
