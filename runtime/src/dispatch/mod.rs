//! The dispatcher: where translated code comes when it has no link, and where everything else of the runtime is decided.
//!
//! Runs in the target on the runtime's stack, the application's state complete in the thread's context.

pub mod apart;
pub mod calls;
pub mod flow;
pub mod life;
pub mod proc;
pub mod run;
pub mod signals;
