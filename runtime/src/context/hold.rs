//! What a thread's context keeps of the controller's directives (dispatch/apart/hold.rs).

use crate::context::addresses::AppPc;

/// `Hold::step`: the thread is to execute one instruction, and stop in front of the next one.
pub const STEP_DUE: u32 = 1;
/// `Hold::step`: it is executing that instruction.
pub const STEP_MADE: u32 = 2;

/// All zeros for a thread that was told nothing.
#[repr(C)]
#[derive(Default)]
pub struct Hold {
    /// 0, `STEP_DUE` or `STEP_MADE`.
    pub step: u32,
    /// How many directives the thread has carried out.
    pub directives_done: u32,
    /// How many filter ranges there were when it last looked.
    pub filters_seen: u32,
    /// The breakpoint that the thread was stopped at and is about to pass; 0: none.
    pub passed_pc: AppPc,
    /// The frame by which a function returns that the controller has the thread call; 0: none. And where everything was captured
    /// before it was called (`Capture::passed_pc`).
    pub called_frame: u64,
    pub captured_pc: AppPc,
}
