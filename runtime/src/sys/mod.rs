//! Raw system calls, kernel structures, memory and locks of the runtime.
//!
//! Runs in the target. Knows nothing of translation, records or threads of the target.

pub mod arguments;
pub mod calls;
pub mod filter;
pub mod heap;
pub mod kernel;
pub mod lock;
pub mod mappings;
pub mod proc_records;
pub mod proc_state;
pub mod proc_text;
pub mod processes;
pub mod spare;
pub mod spare_pages;

pub use calls::{syscall, Error};
