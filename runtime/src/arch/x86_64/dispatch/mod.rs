//! Instructions of x86-64 that the dispatcher has its part in.

pub mod arch_control;
pub mod excursion;
pub mod far;
pub mod float_state;
pub mod in_place;
pub mod kernel_page;
pub mod leave;
pub mod segments;
