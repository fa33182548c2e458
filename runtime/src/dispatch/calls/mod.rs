//! System calls that come to the dispatcher: what it does in the kernel's place, or around it.

pub mod access;
pub mod advice;
pub mod aliases;
pub mod arrivals;
pub mod call_table;
pub mod holes;
pub mod locks;
pub mod mappings;
pub mod memory;
pub mod process_control;
pub mod results;
pub mod rewind;
pub mod seccomp;
pub mod syscalls;
pub mod tracing;
pub mod user_dispatch;
pub mod vectors;
