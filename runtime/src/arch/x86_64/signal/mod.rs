//! Signals on x86-64: frames, the state in them, and what a stopped instruction means.

pub mod asynchronous;
pub mod blocked;
pub mod deliver;
pub mod faults;
pub mod frame;
pub mod handler;
pub mod image;
pub mod interrupt;
pub mod leaving;
pub mod returning;
pub mod unfollowed;
