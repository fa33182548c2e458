//! What a thread's context keeps of signals and faults: what waits to be delivered, masks, and the way out of handlers.

use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::FragmentId;
use crate::cpu::context::FaultDetails;
use crate::sys::kernel::{SigInfo, SigStack, UNDEFERRED_SIGNALS};

/// `Signals::pending`: a signal waits to be delivered (see signal/).
pub const PENDING_SIGNAL: u32 = 1;
/// `Signals::pending`: the controller is about to detach; set by it, or by the signal that fetches the thread out of the cache.
pub const PENDING_LEAVE: u32 = 2;
/// `Signals::pending`: that signal came, and counts in `cache::links::UNDELIVERED`.
pub const PENDING_FETCHED: u32 = 4;

/// `Signals::holds_mask`: everything is blocked but what an instruction can cause, and what comes of that is held back.
pub const HOLDS: u32 = 1;
/// `Signals::holds_mask`: the same, until the kernel has the program's mask.
pub const GIVES: u32 = 2;

/// Signals and faults of a thread.
#[repr(C)]
pub struct Signals {
    /// Not 0: the thread is to leave the gates for the dispatcher; `PENDING_SIGNAL`, `PENDING_LEAVE`.
    pub pending: u32,
    pub pending_info: SigInfo,
    /// The application's mask when the pending signal came.
    pub pending_mask: u64,
    /// Exit whose fragment was unlinked for the pending signal; `u32::MAX` none.
    pub unlinked_fragment: FragmentId,
    pub stack: SigStack,
    /// A fault waits to be delivered; goes before `pending`.
    pub fault_pending: u32,
    pub fault_info: SigInfo,
    /// `temporary_mask` holds the mask that a system call had in place while it waited.
    pub has_temporary_mask: u32,
    pub temporary_mask: u64,
    /// Where in the runtime a signal came last that may be a fault of the runtime's or may have been sent; 0: nowhere since
    /// the dispatcher was entered.
    pub doubtful_pc: u64,
    /// Of the program's last fault: frames of other signals show them, too.
    pub fault_details: FaultDetails,
    /// What `fault_details` held before the fault that waits to be delivered.
    pub details_before: FaultDetails,
    /// The program's mask is in the dispatcher's hands, the thread's own is not the program's: `HOLDS`, `GIVES`, or 0.
    pub holds_mask: u32,
    /// The frame in the thread's block by which it is about to return out of a handler; 0: it is not.
    pub return_frame: u64,
    /// Where in the cache it returned to straight, unless it has been in the dispatcher since.
    pub returned_to: CachePc,
    /// When a handler returned last, and how often in a row a timer's signal came soon after that (signal/merging.rs).
    pub returned_tsc: u64,
    pub n_soon: u32,
    /// Not 0: the program steps through itself after the handler that returned last; a timer's signal came since its last step.
    pub returned_to_step: u32,
    pub step_owed: u32,
    /// Not 0: the program's extended state is in the thread's frame area, and the processor's is as it starts (cpu::signal::leaving).
    pub has_state_apart: u32,
    /// Not 0: the handler blocks everything, because a signal came while it ran (signal/nested.rs).
    pub is_handler_deaf: u32,
    /// The program's mask blocks a signal that reading its memory can cause, which the kernel answers by killing.
    pub blocks_faults: u32,
    /// The program's mask blocks SIGSEGV, the kernel's does not.
    pub hides_block: u32,
    /// The kernel's does, because one was sent that waits until the program lets it come.
    pub is_segv_blocked: u32,
    /// Not 0: the thread is about to get a mask by the frame in its block (cpu::signal::returning).
    pub gives_mask_by_frame: u32,
    /// The table of signal actions that the thread's are in; 0: the process's own (signal/table.rs).
    pub table: u64,
    /// The branch or return that led to what is no place for code, so that records name it instead, if `has_fault_origin`.
    pub fault_origin: AppPc,
    pub has_fault_origin: bool,
    /// Signals sent meanwhile, one of each kind that an instruction can cause; `signo` 0: none.
    pub held: [SigInfo; UNDEFERRED_SIGNALS.len()],
    /// The instruction that faulted is not the one at `pc`: it is not executed again.
    pub is_fault_past: u32,
}
