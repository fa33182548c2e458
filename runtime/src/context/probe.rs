//! What a thread's context has for probes in the program's own code.

/// All zeros: it is nobody's, as a fork's child finds it (MADV_WIPEONFORK).
#[repr(C)]
#[derive(Default)]
pub struct Probe {
    /// The thread pointer of the thread whose block this is: a new thread is led to that of the one that made it.
    pub owner: u64,
    /// Not 0: the thread is in a handler, and what that put aside lies in the block.
    pub is_busy: u32,
    /// Its process.
    pub process: u32,
}
