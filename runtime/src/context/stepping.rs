//! What a thread's context keeps of instructions that the processor executes one by one: native ones, breakpoints, code that is not followed.

use super::numbers::CounterId;
use crate::context::addresses::AppPc;

/// `Stepping::breakpoint_once`.
pub const MEETS_ONCE: u32 = 1;
pub const MET_ONCE: u32 = 2;

/// Bits of `Stepping::state`: a native instruction is under way.
pub const STEPPING: u32 = 1;
/// The trap flag was the program's already.
pub const STEPPING_ALREADY: u32 = 2;
/// The engine's lock is held meanwhile.
pub const STEPPING_LOCKED: u32 = 4;
/// The instruction loads the flags: the trap flag that it leaves is the program's.
pub const STEPPING_LOADS_FLAGS: u32 = 8;

/// `Stepping::foreign`: an instruction that is not 64-bit code; one that pushes the flags.
pub const FOREIGN_STEP: u32 = 1;
pub const FOREIGN_PUSH: u32 = 2;

/// Single steps of a thread.
#[repr(C)]
pub struct Stepping {
    /// How often pages had been trusted no more when a write was last made again without one (dispatch/apart/written.rs).
    pub trust_ends_seen: u64,
    /// The processor was sent to an instruction of the program's own, or to where nothing could be executed, with the trap flag
    /// set: `STEPPING` and others.
    pub state: u32,
    /// Not 0: it was sent to a breakpoint that another put there, to be met, not to execute what is there: where that leads to
    /// (cpu::decode::placed), and how many steps it made.
    pub breakpoint_next: AppPc,
    pub n_breakpoint_steps: u32,
    /// The fragment whose return led into the kernel's code for probes, plus one (dispatch/apart/probe_returns.rs); and whether the thread
    /// executes that code.
    pub probed_return: u32,
    pub is_in_probe: u32,
    /// `MEETS_ONCE` where that is to execute the instruction as well, `MET_ONCE` once it has; and what counts that.
    pub breakpoint_once: u32,
    pub breakpoint_counter: CounterId,
    /// The program goes on with the trap flag set, and the instruction it comes to is not done yet (signal/stepping.rs).
    pub is_fresh: u32,
    /// The thread's mask without that instruction.
    pub mask: u64,
    /// The exit in front of that instruction, plus one; 0: it is none that was translated.
    pub native_exit: u32,
    /// What `is_stepping` was until the thread came back from it.
    pub kind: u32,
    /// The exit by which the thread left for code that is not followed, plus one; 0: it is not there. And how many instructions
    /// it has executed there.
    pub excursion_exit: u32,
    pub excursion_steps: u32,
    /// One is under way: `FOREIGN_STEP` or `FOREIGN_PUSH`.
    pub foreign: u32,
}
