//! The target's threads: their slots, private blocks, starts and ends; and new processes.
//!
//! Knows nothing of signals' delivery or of the dispatcher.

pub mod activity;
pub mod block;
pub mod budget;
pub mod captured_calls;
pub mod captured_values;
pub mod checkpoint;
pub mod left_calls;
pub mod open_calls;
pub mod path;
pub mod path_words;
pub mod region;
pub mod registry;
pub mod thinning;
pub mod trust;

pub use registry::THREADS;
