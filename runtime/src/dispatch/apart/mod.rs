//! What is executed apart from other code: single instructions, breakpoints, code that is not 64-bit code.

pub mod ahead;
pub mod away;
pub mod breakpoints;
pub mod captured_calls;
pub mod captured_rings;
pub mod captured_system_calls;
pub mod captured_thread;
pub mod captures;
pub mod ended_calls;
pub mod hardware;
pub mod hold;
pub mod injections;
pub mod known_places;
pub mod probe_ends;
pub mod probe_returns;
pub mod transforms;
pub mod unfollowed;
pub mod written;
