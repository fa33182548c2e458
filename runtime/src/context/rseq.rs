//! What a thread's context keeps of restartable sequences (dispatch/flow/rseq.rs).

/// What is to be known of the critical section that a thread is in.
#[repr(C)]
pub struct Rseq {
    /// Where the thread's rseq_cs is; `no_word` if it has none.
    pub word: u64,
    pub no_word: u64,
    /// What rseq_cs held when a critical section was left for the dispatcher, to be gone on with; 0: nothing.
    pub left: u64,
    /// What the counter was that is being incremented, where `state` says so.
    pub count: u64,
    /// Mode `full`: what the path's cells of decisions, both, and of surprises were, where `state` says so.
    pub path: [u64; 3],
    /// The fragment of a critical section that was entered last; or, with `RSEQ_LEAVING`, the exit that is being counted.
    pub state: u32,
    /// Which registers are in slots inside a critical section: `UNDO_*`.
    pub undo: u32,
    /// The kernel aborted a critical section, which is not counted yet.
    pub aborted: u32,
    /// The fragment to be resumed at runs without the kernel's watch.
    pub plain: u32,
}
