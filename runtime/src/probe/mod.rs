//! Probes in the program's own code, in a process that is not followed: it executes its code natively, and comes here at probes only.
//!
//! A task of the runtime's own, which shares the memory (`worker`), makes the code of handlers (`sites`); threads of the program get blocks
//! when they first come to one (`threads`), and do here what the machine code does not (`hits`). Stands above `thread` and
//! `instrument`, and knows nothing of the dispatcher. Where places are led to their handlers is the controller's to say.

mod asked;
mod backtraces;
mod changes;
mod children;
mod code_memory;
mod hits;
mod patches;
mod program_memory;
mod sites;
mod threads;
mod traps;
pub mod worker;
