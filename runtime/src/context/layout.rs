//! Where what lies in a thread's private block; the table of it is in `context`.

use super::numbers::{CounterId, SiteId};
use crate::context::numbers::FragmentId;
use crate::protocol;

pub const BRANCH_TABLE_OFFSET: u64 = 0x1_0000;

/// Site indices given out, at most; the branch table is that much longer than 65,536 entries.
pub const MAX_SITES: u32 = 196_608;

pub const BRANCH_TABLE_ENTRIES: u64 = MAX_SITES as u64 + 0x1_0000;

pub const HEAT_OFFSET: u64 = 0x21_0000;

/// Fragments whose numbers differ by this share a cell.
pub const HEAT_CELLS: u32 = 1 << 18;

pub const STACK_OFFSET: u64 = 0x30_0000;

pub const STACK_BYTES: u64 = 0x4_0000;

pub const CHILD_STACK_OFFSET: u64 = 0x38_0000;

pub const CHILD_STACK_BYTES: u64 = 0x1_0000;

pub const SIGNAL_STACK_OFFSET: u64 = 0x40_0000;

pub const SIGNAL_STACK_BYTES: u64 = 0x2_0000;

pub const FRAME_OFFSET: u64 = 0x48_0000;

pub const FRAME_BYTES: u64 = 0x1_0000;

/// Values of captures while they are worked out (instrument/captures/layout.rs): numbers, whether they are missing, bytes.
pub const CAPTURE_VALUES_OFFSET: u64 = 0x4a_0000;

pub const CAPTURE_MISSING_OFFSET: u64 = CAPTURE_VALUES_OFFSET + protocol::MAX_CAPTURE_VALUES * 8;

pub const CAPTURE_TEXTS_OFFSET: u64 = CAPTURE_MISSING_OFFSET + protocol::MAX_CAPTURE_VALUES;

/// Everything below the shadow stack that a thread uses.
pub const PRIVATE_BYTES: u64 = 0x4c_0000;

/// The shadow stack (mode `full`): addresses that returns are expected to lead to. A zero lies below, which is no such address,
/// and nothing above: who pushes more finds out by a fault (cpu::signal::faults).
pub const SHADOW_OFFSET: u64 = 0x50_1000;

pub const SHADOW_BYTES: u64 = clew_pathcodec::protocol::MAX_DEPTH * 8;

/// Calls that are open and whose returns are to be captured (instrument/captures/open_calls.rs): the thread's window of calls, which the
/// controller shares, mapped when the first one begins.
pub const OPEN_CALLS_OFFSET: u64 = 0x71_0000;

/// The table in there.
pub const OPEN_CALLS_BYTES: u64 = protocol::CALL_HEADS_OFFSET;

/// Behind the counters window (mode `full`): what counters and shadow stack were at the last checkpoint.
pub const KEPT_COUNTERS_OFFSET: u64 = protocol::THREAD_COUNTERS_OFFSET + 0x200_0000;

pub const KEPT_COUNTERS_BYTES: u64 = ACTIVITY_OFFSET - KEPT_COUNTERS_OFFSET;

/// Which groups of counters rose of late (thread/activity.rs).
pub const ACTIVITY_OFFSET: u64 = KEPT_CALLS_OFFSET - ACTIVITY_BYTES;

pub const ACTIVITY_BYTES: u64 = 0x20_0000;

pub const KEPT_CALLS_OFFSET: u64 = protocol::THREAD_STRIDE_BYTES - SHADOW_BYTES;

/// What `site` holds at sites that got no index of their own.
pub const SITE_OVERFLOW: u32 = MAX_SITES - 1;

/// Set in `site` by returns: the rest is the fragment's number.
pub const SITE_RETURN: u32 = 0x8000_0000;

/// In a block: a counter.
pub fn counter_offset(counter: CounterId) -> u32 {
    protocol::THREAD_COUNTERS_OFFSET as u32 + counter.raw() * 8
}

/// In a block: the cell that tells how hot a fragment is.
pub fn heat_offset(fragment: FragmentId) -> u32 {
    HEAT_OFFSET as u32 + fragment.raw() % HEAT_CELLS * 2
}

/// In a block: a site's first branch table entry.
pub fn branch_table_offset(site: SiteId) -> u32 {
    BRANCH_TABLE_OFFSET as u32 + site.raw() * 8
}

const _: () = assert!(protocol::THREAD_STRIDE_BYTES.is_power_of_two());
const _: () = assert!(CAPTURE_TEXTS_OFFSET + protocol::MAX_CAPTURE_TEXTS <= PRIVATE_BYTES);
const _: () = assert!(PRIVATE_BYTES < SHADOW_OFFSET);
const _: () = assert!(SHADOW_OFFSET + SHADOW_BYTES < OPEN_CALLS_OFFSET);
const _: () = assert!(OPEN_CALLS_OFFSET + protocol::CALL_WINDOW_BYTES <= protocol::THREAD_COUNTERS_OFFSET);
const _: () = assert!(BRANCH_TABLE_OFFSET + BRANCH_TABLE_ENTRIES * 8 <= HEAT_OFFSET);
const _: () = assert!(HEAT_OFFSET + HEAT_CELLS as u64 * 2 <= STACK_OFFSET);
