//! What a thread's context keeps of restartable sequences (dispatch/flow/sequences.rs).

/// Restartable sequences of a thread.
#[repr(C)]
pub struct Sequence {
    /// Restartable sequences (dispatch/flow/sequences.rs): where the thread's rseq_cs is; `no_word` if it has none.
    pub word: u64,
    pub no_word: u64,
    /// What rseq_cs held when a sequence was left for the dispatcher, to be gone on with; 0: nothing.
    pub left: u64,
    /// What the counter was that is being incremented, where `state` says so.
    pub count: u64,
    /// Mode `full`: what the path's cells of decisions, both, and of surprises were, where `state` says so.
    pub path: [u64; 3],
    /// The fragment of a sequence that was entered last; or, with `SEQUENCE_LEAVING`, the exit that is being counted.
    pub state: u32,
    /// Which registers are in slots inside a sequence: `UNDO_*`.
    pub undo: u32,
    /// The kernel aborted a sequence, which is not counted yet.
    pub aborted: u32,
    /// The fragment to be resumed at runs without the kernel's watch.
    pub plain: u32,
}
