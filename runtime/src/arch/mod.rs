//! What depends on the processor. `cpu` is the one that is compiled for, and the name by which everything else knows it.

pub mod code_span;
#[cfg(feature = "made-up")]
pub mod made_up;
pub mod sections;
#[cfg(not(feature = "made-up"))]
pub mod x86_64;

#[cfg(feature = "made-up")]
pub use made_up as cpu;
#[cfg(not(feature = "made-up"))]
pub use x86_64 as cpu;
