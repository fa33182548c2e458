//! What depends on the processor. `cpu` is the one that is compiled for, and the name by which everything else knows it.

pub mod x86_64;

pub use x86_64 as cpu;
