//! Where the controller sends a thread to give everything back.

use crate::dispatch::life::detach::leave;
use core::arch::global_asm;

global_asm!(
    ".pushsection .text.clew_leave,\"ax\",@progbits",
    // The controller sends a thread that runs natively here if all do, rsp at the end of a stack of the runtime's. Does not
    // return.
    ".globl clew_leave",
    "clew_leave:",
    "xor ebp, ebp",
    "call {leave}",
    "ud2",
    ".popsection",
    leave = sym leave,
);

// SAFETY: the assembly above defines them, as they are declared here.
unsafe extern "C" {
    pub fn clew_leave();
}
