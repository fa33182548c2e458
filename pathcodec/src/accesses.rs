//! What a thread did with memory, beside its path: each instruction's accesses are found by their addresses, in the order in
//! which blocks are executed.

use crate::protocol::{AccessRow, FlowEvent, ValueEvent};

/// What is told as events: with values, or without.
pub trait Row: Copy {
    fn of(event: FlowEvent, value: u64) -> Self;
}

impl Row for FlowEvent {
    #[inline]
    fn of(event: FlowEvent, _: u64) -> FlowEvent {
        event
    }
}

impl Row for ValueEvent {
    #[inline]
    fn of(event: FlowEvent, value: u64) -> ValueEvent {
        ValueEvent { event, value }
    }
}

/// The accesses that are still to come to. They come from the target: any may be missing, and any may be wrong.
#[derive(Clone, Copy, Default)]
pub struct Accesses<'a> {
    rows: &'a [AccessRow],
    n_passed: usize,
    /// More come behind these, which are of whole blocks.
    has_more: bool,
}

/// What of a row is in `AccessRow::what`.
impl AccessRow {
    #[inline]
    pub fn pc(&self) -> u64 {
        self.what & ((1 << 48) - 1)
    }

    #[inline]
    pub fn kind(&self) -> u8 {
        (self.what >> 58) as u8 & 3
    }

    #[inline]
    fn is_further(&self) -> bool {
        self.what >> 60 & 1 != 0
    }

    #[inline]
    fn is_repeated(&self) -> bool {
        self.what >> 61 & 1 != 0
    }

    /// Bytes that were accessed, and what was read or written of them.
    #[inline]
    pub fn content(&self) -> (u32, u64) {
        match self.is_repeated() {
            true => (u32::try_from(self.value).unwrap_or(u32::MAX), 0),
            false => ((self.what >> 48) as u32 & 0x3ff, self.value),
        }
    }

    /// Whether it tells of anything: a string instruction may do nothing at all.
    #[inline]
    pub fn is_any(&self) -> bool {
        !self.is_repeated() || self.value != 0
    }

    /// `what` of an access to `size` bytes, for who writes rows.
    pub const fn pack(pc: u64, size: u32, kind: u8, [is_further, is_repeated]: [bool; 2]) -> u64 {
        let flags = is_further as u64 | (is_repeated as u64) << 1;
        pc & ((1 << 48) - 1) | (size as u64 & 0x3ff) << 48 | (kind as u64 & 3) << 58 | flags << 60
    }
}

impl<'a> Accesses<'a> {
    pub fn new(rows: &'a [AccessRow], has_more: bool) -> Accesses<'a> {
        Accesses { rows, n_passed: 0, has_more }
    }

    /// Whether no more is known of what is executed next, though there is more.
    #[inline]
    pub fn are_all_passed(&self) -> bool {
        self.has_more && self.n_passed == self.rows.len()
    }

    /// How many are behind the reading.
    pub fn n_passed(&self) -> usize {
        self.n_passed
    }

    /// How many of those that come next are of one execution of the block from `pc` up to `end`, whose instructions begin at
    /// `starts` in it.
    #[inline]
    pub fn count_within(&self, pc: u64, end: u64, starts: &[u16]) -> usize {
        let (mut next, mut last, mut count) = (0, u64::MAX, 0);
        for row in self.ahead() {
            let at = row.pc().wrapping_sub(pc);
            if at >= end.wrapping_sub(pc) {
                break;
            }
            if at != last || !row.is_further() {
                while starts.get(next).is_some_and(|start| u64::from(*start) < at) {
                    next += 1;
                }
                // Code may overlap: what begins elsewhere is of another block.
                if starts.get(next).is_none_or(|start| u64::from(*start) != at) {
                    break;
                }
                next += 1;
            }
            last = at;
            count += 1;
        }
        count
    }

    /// The next ones, so many; they are behind the reading then.
    #[inline]
    pub fn take(&mut self, count: usize) -> &'a [AccessRow] {
        let taken = self.rows.get(self.n_passed..self.n_passed + count).unwrap_or(&[]);
        self.n_passed += taken.len();
        taken
    }

    /// The instruction at `pc` was not done: what was told of it belongs to nothing.
    pub fn drop_at(&mut self, pc: u64) {
        self.n_passed += self.ahead().iter().take_while(|row| row.pc() == pc).count();
    }

    #[inline]
    fn ahead(&self) -> &'a [AccessRow] {
        self.rows.get(self.n_passed..).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[(u64, u8)]) -> Vec<AccessRow> {
        let what = |pc, is_further| AccessRow::pack(pc, 8, 1, [is_further != 0, false]);
        of.iter().map(|(pc, is_further)| AccessRow { what: what(*pc, *is_further), address: 0, value: 0 }).collect()
    }

    #[test]
    fn executions_are_told_apart() {
        let rows = rows(&[(16, 0), (18, 0), (18, 1), (16, 0), (16, 0), (40, 0)]);
        let mut accesses = Accesses::new(&rows, false);
        for expected in [3, 1, 1, 0] {
            let count = accesses.count_within(16, 32, &[0, 2, 5]);
            assert_eq!(count, expected);
            accesses.take(count);
        }
        assert_eq!((accesses.count_within(32, 48, &[0, 8]), accesses.n_passed()), (1, 5));
        accesses.drop_at(39);
        assert_eq!((accesses.count_within(32, 48, &[0, 9]), accesses.count_within(40, 48, &[0])), (0, 1));
        accesses.drop_at(40);
        assert_eq!((accesses.count_within(40, 48, &[0]), accesses.n_passed()), (0, 6));
        assert!(accesses.take(1).is_empty());
    }
}
