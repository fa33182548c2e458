//! Threads of x86-64.

pub mod create;
