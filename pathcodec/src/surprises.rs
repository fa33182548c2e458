//! The stream of surprises: after how many decisions a conditional branch went the other way.

use crate::protocol::{FIRST_LONG_SURPRISE, FIRST_WIDE_SURPRISE, MAX_SURPRISE_BYTES, WIDE_SURPRISE_BYTES};

/// Announces a number of two bytes; if that is 0, one of eight bytes more.
const WIDE: u8 = 0;
const WIDE_BYTES: usize = WIDE_SURPRISE_BYTES as usize;
/// The most bytes that a surprise takes.
pub const MAX_BYTES: usize = MAX_SURPRISE_BYTES as usize;

const _: () = assert!(FIRST_WIDE_SURPRISE == 1 << 8 && WIDE_BYTES == 1 + size_of::<u16>());
const _: () = assert!(FIRST_LONG_SURPRISE == 1 << 16 && MAX_BYTES == WIDE_BYTES + size_of::<u64>());

/// How many bytes `decisions` takes.
pub fn size_of_surprise(decisions: u64) -> usize {
    match decisions {
        1..FIRST_WIDE_SURPRISE => 1,
        FIRST_WIDE_SURPRISE..FIRST_LONG_SURPRISE => WIDE_BYTES,
        _ => MAX_BYTES,
    }
}

/// Writes a surprise at the start of `room`, and returns its size. `None`: there is no room.
pub fn write_surprise(room: &mut [u8], decisions: u64) -> Option<usize> {
    let size = size_of_surprise(decisions);
    let room = room.get_mut(..size)?;
    match size {
        1 => room[0] = decisions as u8,
        WIDE_BYTES => {
            room[0] = WIDE;
            room[1..].copy_from_slice(&(decisions as u16).to_le_bytes());
        }
        _ => {
            room[..WIDE_BYTES].fill(WIDE);
            room[WIDE_BYTES..].copy_from_slice(&decisions.to_le_bytes());
        }
    }
    Some(size)
}

/// The surprise at the start of `bytes`: its decisions, never 0, and its size. `None`: there is none, or only a part of one.
pub fn read_surprise(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first != WIDE {
        return Some((u64::from(first), 1));
    }
    let decisions = u16::from_le_bytes(bytes.get(1..WIDE_BYTES)?.try_into().ok()?);
    if decisions != 0 {
        return Some((u64::from(decisions), WIDE_BYTES));
    }
    let decisions = u64::from_le_bytes(bytes.get(WIDE_BYTES..MAX_BYTES)?.try_into().ok()?);
    Some((decisions.max(1), MAX_BYTES))
}
