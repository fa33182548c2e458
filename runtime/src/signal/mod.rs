//! Signals: what the program asked for, what the kernel brings, and how one reaches the other.
//!
//! The kernel delivers to the runtime's handler on the runtime's signal stack. A fault is taken back to the application's
//! state at once; an asynchronous signal waits until the thread comes to the dispatcher, which the handler hastens. The
//! dispatcher then builds the frame that the kernel would have built and goes on in the program's handler, translated.

pub mod merging;
pub mod nested;
pub mod stepping;
pub mod table;
