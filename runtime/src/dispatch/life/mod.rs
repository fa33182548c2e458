//! How processes and threads begin, go on as other programs, are entered and left, and end.

pub mod attach;
pub mod begin;
pub mod detach;
pub mod dumpable;
pub mod ends;
pub mod execute;
pub mod fork;
pub mod hidden;
pub mod process;
pub mod release;
pub mod room;
pub mod running;
pub mod stage;
pub mod start;
