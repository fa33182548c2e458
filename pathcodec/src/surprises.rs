//! The stream of surprises: after how many decisions a conditional branch went the other way.

/// Announces a number of eight bytes.
const LONG: u8 = 0;
const LONG_BYTES: usize = 9;

/// How many bytes `decisions` takes.
pub fn size_of_surprise(decisions: u64) -> usize {
    if (1..256).contains(&decisions) {
        1
    } else {
        LONG_BYTES
    }
}

/// Writes a surprise at the start of `room`, and returns its size. `None`: there is no room.
pub fn write_surprise(room: &mut [u8], decisions: u64) -> Option<usize> {
    let size = size_of_surprise(decisions);
    let room = room.get_mut(..size)?;
    if size == 1 {
        room[0] = decisions as u8;
    } else {
        room[0] = LONG;
        room[1..].copy_from_slice(&decisions.to_le_bytes());
    }
    Some(size)
}

/// The surprise at the start of `bytes`: its decisions, never 0, and its size. `None`: there is none, or only a part of one.
pub fn read_surprise(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first != LONG {
        return Some((u64::from(first), 1));
    }
    let bytes = bytes.get(1..LONG_BYTES)?.try_into().ok()?;
    Some((u64::from_le_bytes(bytes).max(1), LONG_BYTES))
}
