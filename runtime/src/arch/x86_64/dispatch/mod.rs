//! Instructions of x86-64 that the dispatcher has its part in.

pub mod excursion;
pub mod far;
pub mod float_state;
pub mod in_place;
pub mod segments;
pub mod vsyscall;
