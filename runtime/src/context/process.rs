//! What a thread's context keeps of the birth of threads and processes.

/// `Process::is_process`: whether its parent waits until it is gone from the memory (vfork).
pub const WAITED_FOR: u32 = 1;
pub const NOT_WAITED_FOR: u32 = 2;

/// The thread as a child, and as the parent of one.
#[repr(C)]
pub struct Process {
    /// The application's mask at a start, for a thread that was created with all signals blocked.
    pub start_mask: u64,
    pub parent_tid: u32,
    /// For the child of a fork under way: its region, the clone's flags, and when the fork was made.
    pub child_region: u32,
    /// Not 0: the thread is a process of its own that shares this one's memory: `WAITED_FOR` or `NOT_WAITED_FOR`.
    pub is_process: u32,
    pub child_flags: u64,
    pub fork_tsc: u64,
}
