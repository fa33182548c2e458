//! From application code to decoded blocks. Reads the application's code, writes nothing.
//!
//! Runs under the runtime's lock, never in a signal handler.

pub mod ending;
pub mod places;
pub mod ranges;
pub mod trusted;
pub mod window;

pub use crate::cpu::decode::block::{decode_block, Block};
pub use ending::{Ending, NoCode};
pub use ranges::Ranges;
