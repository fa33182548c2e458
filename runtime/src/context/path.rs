//! What a thread's context keeps of the order of its execution: its path (mode `full`), its tags (mode `region`).

use crate::context::addresses::AppPc;

/// The recorded order of a thread.
#[repr(C)]
pub struct Path {
    /// Whether the thread's path is recorded now (mode `full`), or the thread has tags (mode `region`).
    pub is_on: bool,
    /// What the thread does with memory is told beside it.
    pub tells_accesses: bool,
    pub has_tags: bool,
    /// Whether it ever was; if not, where the thread began, and whether it has gone on from there.
    pub began: bool,
    pub has_executed: bool,
    pub start_pc: AppPc,
    /// The path is to go on in front of the next block.
    pub is_due: bool,
    /// The thread came to new code, or to other code than before, since the path's last checkpoint (thread/thinning.rs).
    pub has_news: bool,
    /// The path may be told up to so many bytes, whatever comes; and where it is left out, so many does the next checkpoint take at
    /// least.
    pub promised_bytes: u64,
    pub least_cost: u64,
    /// Open calls on the shadow stack, and how many were forgotten because there was no room for them.
    pub shadow_depth: u64,
    pub shadow_forgotten: u64,
    /// Checkpoints of the thread's path (thread/checkpoint.rs): when the next one is due, bytes of the streams `counters` and
    /// `calls` so far, and how many open calls were kept at the last one.
    pub checkpoint_due: u64,
    pub counters_written: u64,
    pub calls_written: u64,
    pub calls_kept: u64,
    /// So many changes the path has told (instrument/order/log.rs); and whether the thread is in the dispatcher or a system call,
    /// and tells more before it executes anything.
    pub changes_told: u32,
    pub tells_first: u32,
    /// Where in the path the first record was dropped that is not told yet.
    pub lost_at: [u64; 4],
}
