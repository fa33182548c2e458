//! From application code to decoded blocks. Reads the application's code, writes nothing.
//!
//! Runs under the runtime's lock, never in a signal handler.

pub mod ahead;
pub mod block;
pub mod flags;
pub mod float_state;
pub mod in_place;
pub mod placed;
pub mod places;
pub mod ranges;
pub mod scratch;
pub mod trusted;
pub mod window;

pub use block::{decode_block, Block, Ending, NoCode};
pub use ranges::Ranges;
