//! What a thread's context keeps of the system call that it makes.

use crate::context::addresses::AppPc;

/// `Call::restart`: the thread is in a system call that must not be made with a signal waiting; its context is as before it.
pub const RESTART_ARMED: u32 = 1;
/// `Call::restart`: a signal came, so the call was given up.
pub const RESTART_DUE: u32 = 2;

/// The system call under way, or made last.
#[repr(C)]
pub struct Call {
    /// 1: the system call under way is to be given up for a signal (`RESTART_ARMED`); 2: it was.
    pub restart: u32,
    /// The plain system call made last.
    pub number: u64,
    /// Not 0: the thread is still inside the system call at `call_pc`, which controller or dispatcher had to interrupt with
    /// this error (`protocol::ThreadState::call_code`). The gate takes it back once the call is made anew.
    pub code: u32,
    pub pc: AppPc,
    /// A seccomp filter answered the program's call with the signal in `fault_info`.
    pub is_trapped: u32,
    /// The gate makes the call under way after all (dispatch/calls/arrivals.rs).
    pub is_allowed: u32,
    /// Where in the cache the thread goes on after that call.
    pub goes_on_at: u64,
    /// Where that would be, of a call that is under way and comes back to the dispatcher first (dispatch/flow/straight.rs); 0: there is none.
    pub straight_on: u64,
    /// One byte for each system call that says whether it comes to the dispatcher (cpu::gate).
    pub handled: u64,
    pub user_dispatch: UserDispatch,
}

/// What the program asked of user dispatch (prctl(2), PR_SET_SYSCALL_USER_DISPATCH).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UserDispatch {
    pub is_on: u32,
    pub padding: u32,
    /// Calls from `length` bytes at `offset` are always made.
    pub offset: u64,
    pub length: u64,
    /// Address of the byte that says whether others are; 0: they are not.
    pub selector: u64,
}
