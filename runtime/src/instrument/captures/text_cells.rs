//! Where the bytes that open calls keep lie in a thread's window of calls: in cells that are next to each other.
//!
//! Pure. Which cells are in use is known here alone: what lies in the window the program may overwrite.

extern crate alloc;
use crate::protocol::{CALL_TEXTS_OFFSET, CALL_TEXT_CELLS, CALL_TEXT_CELL_BYTES, CALL_WINDOW_BYTES};
use alloc::vec::Vec;
use core::ops::Range;

/// A field of a call, and its bytes.
pub type KeptText = (usize, Vec<u8>);

pub const CELL_BYTES: usize = CALL_TEXT_CELL_BYTES as usize;
const CELLS: usize = CALL_TEXT_CELLS as usize;
const NO_FIELD: u16 = u16::MAX;

/// The cells of one window.
pub struct TextCells {
    used: [u64; CELLS.div_ceil(64)],
    /// Behind those that were taken last.
    next: usize,
}

impl Default for TextCells {
    fn default() -> TextCells {
        TextCells { used: [0; CELLS.div_ceil(64)], next: 0 }
    }
}

impl TextCells {
    /// Takes so many cells; the first of them. `None`: there are not as many next to each other.
    pub fn take(&mut self, n: usize) -> Option<usize> {
        let first = self.find(self.next, n).or_else(|| self.find(0, n))?;
        (first..first + n).for_each(|cell| self.used[cell / 64] |= 1 << (cell % 64));
        self.next = first + n;
        Some(first)
    }

    /// Nobody uses them any more. Calls end in the order in which they began, the last one first, as a rule.
    pub fn give_back(&mut self, cells: Range<usize>) {
        if self.next == cells.end && !cells.is_empty() {
            self.next = cells.start;
        }
        cells.for_each(|cell| self.used[cell / 64] &= !(1 << (cell % 64)));
    }

    fn find(&self, from: usize, n: usize) -> Option<usize> {
        let mut first = from;
        for cell in from..CELLS {
            if self.used[cell / 64] >> (cell % 64) & 1 != 0 {
                first = cell + 1;
            } else if cell + 1 - first == n {
                return Some(first);
            }
        }
        None
    }
}

/// The cells that the number of a call's bytes has (OpenCall.texts).
pub fn cells_of(number: u64) -> Range<usize> {
    let first = (number >> 16 & 0xffff) as usize;
    first..first + (number & 0xffff) as usize
}

/// The bytes as they lie in there.
pub fn pack(texts: &[KeptText]) -> Vec<u8> {
    let mut packed = Vec::new();
    for (field, bytes) in texts {
        packed.extend_from_slice(&(*field as u16).to_le_bytes());
        packed.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        packed.extend_from_slice(bytes);
    }
    packed.extend_from_slice(&NO_FIELD.to_le_bytes());
    packed
}

const _: () = assert!(CALL_TEXTS_OFFSET + CALL_TEXT_CELLS * CALL_TEXT_CELL_BYTES == CALL_WINDOW_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_used_again() {
        let mut cells = TextCells::default();
        assert_eq!((cells.take(3), cells.take(CELLS - 3), cells.take(1)), (Some(0), Some(3), None));
        cells.give_back(1..2);
        assert_eq!((cells.take(2), cells.take(1), cells.take(1)), (None, Some(1), None));
        cells.give_back(3..CELLS);
        cells.give_back(0..3);
        assert_eq!(cells.take(CELLS), Some(0));
    }

    #[test]
    fn what_is_given_back_last_is_taken_first() {
        let mut cells = TextCells::default();
        assert_eq!((cells.take(2), cells.take(5)), (Some(0), Some(2)));
        cells.give_back(2..7);
        assert_eq!(cells.take(1), Some(2));
    }
}
