//! What is taken at places of the program's code, as the controller asks: forms are checked, laid out, and kept by place.

pub mod aggregates;
pub mod evaluate;
pub mod few;
pub mod form;
pub mod globs;
pub mod injections;
pub mod layout;
pub mod open_calls;
pub mod other_calls;
pub mod places;
pub mod ring;
pub mod ring_layout;
pub mod rings;
pub mod taken;
pub mod taken_records;
pub mod text_cells;
