//! Displacements from gs: where translated code and the gates find what is in their thread's private block.
//!
//! Numbers for machine code. What the fields are for is said in `context`.

use crate::context::layout::{counter_offset, CAPTURE_MISSING_OFFSET, CAPTURE_TEXTS_OFFSET, CAPTURE_VALUES_OFFSET};
use crate::context::numbers::CounterId;
use crate::context::ThreadContext;
use crate::protocol;
use core::mem::offset_of;

/// gs displacement of a context field.
macro_rules! gs_offset {
    ($($field:ident).+) => {
        offset_of!(ThreadContext, $($field).+) as u32
    };
}

pub const GS_EXIT_ID: u32 = gs_offset!(gate.exit_id);
pub const GS_SITE: u32 = gs_offset!(gate.site);
pub const GS_SPILL_INDEX: u32 = gs_offset!(gate.spill_index);
pub const GS_SPILL_TARGET: u32 = gs_offset!(gate.spill_target);
pub const GS_SPILL_OTHER: u32 = gs_offset!(gate.spill_other);
pub const GS_SPILL_RCX: u32 = gs_offset!(gate.spill_rcx);
pub const GS_SPILL_ADDRESS: u32 = gs_offset!(gate.spill_address);
pub const GS_SPILL_R11: u32 = gs_offset!(gate.spill_r11);
pub const GS_GATE_EXIT: u32 = gs_offset!(gate.gate_exit);
pub const GS_GATE_INDIRECT: u32 = gs_offset!(gate.gate_indirect);
pub const GS_GATE_SYSCALL: u32 = gs_offset!(gate.gate_syscall);
pub const GS_ONE: u32 = gs_offset!(gate.one);
pub const GS_APP_GS_BASE: u32 = gs_offset!(registers.gs_base);
pub const GS_SPILL_RAX: u32 = gs_offset!(gate.spill_rax);
pub const GS_RSEQ_WORD: u32 = gs_offset!(rseq.word);
pub const GS_RSEQ_LEFT: u32 = gs_offset!(rseq.left);
pub const GS_RSEQ_COUNT: u32 = gs_offset!(rseq.count);
pub const GS_RSEQ_PATH: u32 = gs_offset!(rseq.path);
pub const GS_RSEQ_STATE: u32 = gs_offset!(rseq.state);
pub const GS_SHADOW_DEPTH: u32 = gs_offset!(path.shadow_depth);
pub const GS_RSEQ_UNDO: u32 = gs_offset!(rseq.undo);
pub const GS_SELF_ADDRESS: u32 = gs_offset!(self_address);
pub const GS_STACK_TOP: u32 = gs_offset!(gate.stack_top);
pub const GS_TID: u32 = gs_offset!(tid);
pub const GS_BLOCKS_FAULTS: u32 = gs_offset!(signals.blocks_faults);
pub const GS_CAPTURE_LANDING: u32 = gs_offset!(capture.landing);
pub const GS_CAPTURE_OUTCOME: u32 = gs_offset!(capture.outcome);
pub const GS_CAPTURE_PREPARED: u32 = gs_offset!(capture.is_prepared);
pub const GS_CAPTURE_SPILLED: u32 = gs_offset!(capture.spilled);
pub const GS_CAPTURE_MATCHED: u32 = gs_offset!(capture.matched);
pub const GS_CAPTURE_HAS_OPEN_CALLS: u32 = gs_offset!(capture.has_open_calls);
pub const GS_CAPTURE_OTHER_CALLS: u32 = gs_offset!(capture.n_other_calls);
pub const GS_CAPTURE_IS_FETCHED: u32 = gs_offset!(capture.is_fetched);
pub const GS_CAPTURE_IS_AGAIN: u32 = gs_offset!(capture.is_again);
pub const GS_CAPTURE_BEHIND: u32 = gs_offset!(capture.behind);
pub const GS_CAPTURE_SLOT: u32 = gs_offset!(capture.slot_address);
pub const GS_CAPTURE_RING: u32 = gs_offset!(capture.ring);
pub const GS_CAPTURE_VECTORS: u32 = gs_offset!(capture.vectors);
pub const GS_CAPTURE_FLOAT_STATE: u32 = gs_offset!(capture.float_state);
pub const GS_CAPTURE_OWN_FLOAT_STATE: u32 = gs_offset!(capture.own_float_state);
pub const GS_PROBE_OWNER: u32 = gs_offset!(probe.owner);
pub const GS_PROBE_BUSY: u32 = gs_offset!(probe.is_busy);
pub const GS_PROBE_SPILLED: u32 = gs_offset!(probe.spilled);
pub const GS_PROBE_LOCAL: u32 = gs_offset!(probe.local);
pub const GS_PROBE_REMOTE: u32 = gs_offset!(probe.remote);
pub const GS_PROBE_PROCESS: u32 = gs_offset!(probe.process);
pub const GS_PROBE_PROCESSOR: u32 = gs_offset!(probe.processor);
pub const GS_PROBE_RECORD: u32 = gs_offset!(probe.record);

/// gs displacements of the values of captures (instrument/captures/layout.rs).
pub const GS_CAPTURE_VALUES: u32 = CAPTURE_VALUES_OFFSET as u32;
pub const GS_CAPTURE_MISSING: u32 = CAPTURE_MISSING_OFFSET as u32;
pub const GS_CAPTURE_TEXTS: u32 = CAPTURE_TEXTS_OFFSET as u32;

/// gs displacements of the ends of a path's buffers.
pub const SURPRISES_END_OFFSET: u64 =
    protocol::THREAD_COUNTERS_OFFSET + protocol::PATH_SURPRISES_OFFSET + protocol::PATH_BUFFER_BYTES;
pub const SYMBOLS_END_OFFSET: u64 =
    protocol::THREAD_COUNTERS_OFFSET + protocol::PATH_SYMBOLS_OFFSET + protocol::PATH_BUFFER_BYTES;
pub const ACCESSES_END_OFFSET: u64 =
    protocol::THREAD_COUNTERS_OFFSET + protocol::PATH_ACCESSES_OFFSET + protocol::PATH_ACCESSES_BUFFER_BYTES;

/// gs displacement of one of a path's cells.
pub fn gs_path_cell(cell: u64) -> u32 {
    counter_offset(CounterId::of_cell(cell))
}
