//! Where code leads: exits, indirect branches, returns, and what is told of each.

pub mod exits;
pub mod find;
pub mod indirect;
pub mod landings;
pub mod linking;
pub mod parts;
pub mod paths;
pub mod regions;
pub mod returns;
pub mod rseq;
pub mod straight;
pub mod ways;
