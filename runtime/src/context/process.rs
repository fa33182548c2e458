//! What a thread's context keeps of the birth of threads and processes.

/// Whether a thread is a process of its own that shares this one's memory.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// It is a thread of this process. What a zeroed context has.
    Thread = 0,
    /// Its parent waits until it is gone from the memory (vfork).
    WaitedFor,
    NotWaitedFor,
}

/// The thread as a child, and as the parent of one.
#[repr(C)]
pub struct Process {
    /// The application's mask at a start, for a thread that was created with all signals blocked.
    pub start_mask: u64,
    pub parent_tid: u32,
    /// For the child of a fork under way: its region, the clone's flags, and when the fork was made.
    pub child_region: u32,
    pub sharing: Sharing,
    pub child_flags: u64,
    pub fork_tsc: u64,
}
