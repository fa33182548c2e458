//! x86-64: registers, gates and machine code here, and in folders what each floor above and below has of its own for this processor.

pub mod call_dispatch;
#[cfg(not(test))]
mod calling_gates;
pub mod captured;
pub mod context;
pub mod decode;
#[cfg(not(test))]
pub mod dispatch;
pub mod dispatcher;
pub mod displacements;
pub mod emit;
pub mod extended_state;
pub mod features;
pub mod forwarding;
#[cfg(not(test))]
pub mod gate;
pub mod guarded;
mod instructions;
pub mod instrument;
mod jumps;
#[cfg(not(test))]
pub mod parking;
pub mod patching;
pub mod private_range;
pub mod probe;
pub mod probe_backtrace;
pub mod probe_memory;
pub mod probe_points;
pub mod question;
pub mod region;
pub mod rseq;
pub mod selectors;
mod shadow;
#[cfg(not(test))]
pub mod signal;
pub mod spill;
pub mod stack_code;
pub mod sys;
#[cfg(not(test))]
pub mod thread;
pub mod translate;
pub mod unwinding;
#[cfg(not(test))]
pub mod xmm;

pub use selectors::{enter_block, thread_pointer};

/// A general register by the processor's number (rax rcx rdx rbx rsp rbp rsi rdi r8 to r15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gpr(pub u8);

pub const RAX: Gpr = Gpr(0);
pub const RCX: Gpr = Gpr(1);
pub const RDX: Gpr = Gpr(2);
pub const RSP: Gpr = Gpr(4);
pub const R10: Gpr = Gpr(10);
pub const R11: Gpr = Gpr(11);
/// Where an indirect branch has its target, and its index into the branch table: registers that compilers use least
/// across branches, so that their way through memory delays nothing.
pub const TARGET: Gpr = R11;
pub const INDEX: Gpr = R10;
