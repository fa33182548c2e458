//! The stream of symbols: which of its known targets an indirect branch went to.

/// Announces a number of two bytes.
pub const WIDE_SYMBOL: u8 = 255;
const WIDE_BYTES: usize = 3;

/// Writes a symbol at the start of `room`, and returns its size. `None`: there is no room.
pub fn write_symbol(room: &mut [u8], symbol: u16) -> Option<usize> {
    if symbol < u16::from(WIDE_SYMBOL) {
        *room.first_mut()? = symbol as u8;
        return Some(1);
    }
    let room = room.get_mut(..WIDE_BYTES)?;
    room[0] = WIDE_SYMBOL;
    room[1..].copy_from_slice(&symbol.to_le_bytes());
    Some(WIDE_BYTES)
}

/// The symbol at the start of `bytes`, and its size. `None`: there is none, or only a part of one.
pub fn read_symbol(bytes: &[u8]) -> Option<(u16, usize)> {
    let first = *bytes.first()?;
    if first != WIDE_SYMBOL {
        return Some((u16::from(first), 1));
    }
    let bytes = bytes.get(1..WIDE_BYTES)?.try_into().ok()?;
    Some((u16::from_le_bytes(bytes), WIDE_BYTES))
}
