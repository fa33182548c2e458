//! What a thread's context holds of the processor.

mod gate;
mod registers;
mod vector;

pub use gate::{BranchSource, Gate};
pub use registers::{Overwritten, Registers, N_HELD};
pub use vector::{Vector, AT_ENTRY};

/// What a signal frame says of the last fault: err, trapno and cr2.
pub type FaultDetails = [u64; 3];

/// The processor's numbers of page faults and of what has one of its own (arch/x86/include/asm/trapnr.h).
const PAGE_FAULT: u64 = 14;
pub const GENERAL_PROTECTION: u64 = 13;

/// Of a branch to what is no address, which faults at the branch, before it is made (Intel SDM, #GP for near branches).
pub const BRANCH_FAULT: FaultDetails = [0, GENERAL_PROTECTION, 0];

/// Bits of a page fault's error code: a write, by the program (Intel SDM, page-fault exceptions). Whether the page is there
/// makes no difference: the kernel looks at rights first (arch/x86/mm/fault.c, do_user_addr_fault).
pub const WRITE_ERROR: u64 = 6;

/// Of a page where nothing can be executed: by user code, of instructions (Intel SDM, page-fault exceptions).
pub fn execution_fault(address: u64) -> FaultDetails {
    const ERROR_CODE: u64 = 0x14;
    [ERROR_CODE, PAGE_FAULT, address]
}

/// What frames show after a fault with `details`, where they showed `before`: only page faults change the last one, as in the
/// kernel.
pub fn shown_details([err, trapno, cr2]: FaultDetails, before: FaultDetails) -> FaultDetails {
    [err, trapno, if trapno == PAGE_FAULT { cr2 } else { before[2] }]
}
