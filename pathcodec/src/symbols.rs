//! The stream of symbols: which of its known targets an indirect branch went to, or a return that often leads elsewhere.

/// Announces a number of two bytes.
pub const WIDE_SYMBOL: u8 = 255;
const WIDE_BYTES: usize = 3;

/// Return symbols with numbers that differ by this pop alike.
pub const RETURN_WAYS: u16 = 8;

/// How many open calls a return with this symbol pops, if there are as many.
pub fn pops_of_return(symbol: u16) -> usize {
    usize::from(symbol % RETURN_WAYS) + 1
}

/// How many bytes `symbol` takes.
pub fn size_of_symbol(symbol: u16) -> usize {
    if symbol < u16::from(WIDE_SYMBOL) {
        1
    } else {
        WIDE_BYTES
    }
}

/// Writes a symbol at the start of `room`, and returns its size. `None`: there is no room.
pub fn write_symbol(room: &mut [u8], symbol: u16) -> Option<usize> {
    let size = size_of_symbol(symbol);
    let room = room.get_mut(..size)?;
    if size == 1 {
        room[0] = symbol as u8;
    } else {
        room[0] = WIDE_SYMBOL;
        room[1..].copy_from_slice(&symbol.to_le_bytes());
    }
    Some(size)
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
