//! What a thread's context keeps of running natively, because it is not followed.

use crate::context::addresses::AppPc;

/// All zeros for a thread that is followed.
#[repr(C)]
#[derive(Default)]
pub struct Native {
    /// Not 0: it executes the program's own code, or is about to (`protocol::ControlBlock::native_offset`).
    pub runs: u32,
    /// Not 0: it left the code that is translated, and is to be told of when it comes back there.
    pub is_away: u32,
    /// Not 0: the kernel has its system calls come to the signal handler.
    pub is_dispatched: u32,
    /// Not 0: it may not run natively until its mask changes, for what the program blocks would come all the same.
    pub is_barred: u32,
    /// Not 0: it never may again, for it uses the processor's trap flag.
    pub steps_itself: u32,
    /// Not 0: it is in front of a system call that is to be made.
    pub is_calling: u32,
    /// The mask that it has in the kernel, but for what must come, as long as that is known.
    pub is_mask_known: u32,
    pub mask: u64,
    /// Where the system call under way is, as long as that is one of those; or nowhere.
    pub call_pc: AppPc,
}
