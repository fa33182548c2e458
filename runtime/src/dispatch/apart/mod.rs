//! What is executed apart from other code: single instructions, breakpoints, code that is not 64-bit code.

pub mod away;
pub mod breakpoints;
pub mod excursion;
pub mod far;
pub mod hardware;
pub mod hold;
pub mod in_place;
pub mod probe_ends;
pub mod probe_returns;
pub mod written;
