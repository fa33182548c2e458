//! Blocks that are translated otherwise than they are: what a transformer of the controller's changes in them.

pub mod asked;
pub mod changes;
