//! What a thread's context has for probes in the program's own code.

/// All zeros: it is nobody's, as a fork's child finds it (MADV_WIPEONFORK).
#[repr(C)]
#[derive(Default)]
pub struct Probe {
    /// The thread pointer of the thread whose block this is: a new thread begins with that of the one that made it.
    pub owner: u64,
    /// Not 0: the thread is in a handler, and what that put aside lies in the block.
    pub is_busy: u32,
    /// Its process.
    pub process: u32,
    /// More of the program's registers that are used, by what reads its memory (cpu::probe::memory).
    pub spilled: [u64; 9],
    /// What is asked of process_vm_readv: where to, and from where.
    pub local: [u64; 2],
    pub remote: [u64; 2],
    /// Which processor the thread was on at the time of its records.
    pub processor: u64,
    /// Where the record lies that is being written, whose continuations are counted.
    pub record: u64,
}
