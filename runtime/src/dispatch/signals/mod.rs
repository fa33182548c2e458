//! Handing signals over to the program, and with them its mask.

pub mod calling;
pub mod delivery;
pub mod handler_edges;
pub mod masks;
pub mod natively;
pub mod raise;
pub mod signal_calls;
