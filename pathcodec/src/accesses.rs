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
    /// There are rows of all that is executed, or may be.
    is_told: bool,
}

impl<'a> Accesses<'a> {
    pub fn new(rows: &'a [AccessRow], is_told: bool) -> Accesses<'a> {
        Accesses { rows, n_passed: 0, is_told }
    }

    /// Whether anything may have been accessed.
    pub fn is_told(&self) -> bool {
        self.is_told
    }

    /// How many are behind the reading.
    pub fn n_passed(&self) -> usize {
        self.n_passed
    }

    /// How many of those that come next are of one execution of the code from `pc` up to `end`.
    #[inline]
    pub fn count_within(&self, pc: u64, end: u64) -> usize {
        let mut last = None;
        let mut count = 0;
        for row in self.ahead() {
            let goes_on = match last {
                Some(last) => row.pc > last || row.pc == last && row.is_further != 0,
                None => true,
            };
            if !(pc..end).contains(&row.pc) || !goes_on {
                break;
            }
            last = Some(row.pc);
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
        self.n_passed += self.ahead().iter().take_while(|row| row.pc == pc).count();
    }

    #[inline]
    fn ahead(&self) -> &'a [AccessRow] {
        self.rows.get(self.n_passed..).unwrap_or(&[])
    }
}

/// Whether a row tells of anything: a string instruction may do nothing at all.
#[inline]
pub fn is_any(row: &AccessRow) -> bool {
    row.size != 0 || row.is_unread == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[(u64, u8)]) -> Vec<AccessRow> {
        let blank =
            AccessRow { pc: 0, address: 0, value: 0, size: 8, kind: 1, is_further: 0, is_unread: 0, reserved: 0 };
        of.iter().map(|(pc, is_further)| AccessRow { pc: *pc, is_further: *is_further, ..blank }).collect()
    }

    #[test]
    fn executions_are_told_apart() {
        let rows = rows(&[(16, 0), (18, 0), (18, 1), (16, 0), (16, 0), (40, 0)]);
        let mut accesses = Accesses::new(&rows, true);
        for expected in [3, 1, 1, 0] {
            let count = accesses.count_within(16, 32);
            assert_eq!(count, expected);
            accesses.take(count);
        }
        assert_eq!((accesses.count_within(32, 48), accesses.n_passed()), (1, 5));
        accesses.drop_at(39);
        assert_eq!(accesses.count_within(32, 48), 1);
        accesses.drop_at(40);
        assert_eq!((accesses.count_within(0, u64::MAX), accesses.n_passed()), (0, 6));
        assert!(accesses.take(1).is_empty());
    }
}
