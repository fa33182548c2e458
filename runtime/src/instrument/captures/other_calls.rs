//! Calls that are open and found no room in their threads' tables (open_calls.rs), and what calls keep that is bytes.
//!
//! In memory of the runtime's own. Of bytes there is a copy in the window of calls (text_cells.rs), as far as it holds them, for the
//! controller, should a signal end the process; how many calls are here it finds there as well.

extern crate alloc;
use super::open_calls::{CallHead, OpenCall, OpenCalls, RETURN_ADDRESS_BYTES};
use super::text_cells::{cells_of, pack, KeptText, TextCells, CELL_BYTES};
use crate::context::addresses::AppPc;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Calls that found no room in their threads' tables, and what calls keep that is bytes.
#[derive(Default)]
pub struct OtherCalls {
    /// By private block and stack pointer.
    calls: BTreeMap<(u64, u64), Vec<OpenCall>>,
    /// By private block and number, in the order of fields.
    texts: BTreeMap<(u64, u64), Vec<KeptText>>,
    n_texts: u64,
    /// By private block: where such bytes are in the window that the controller shares.
    cells: BTreeMap<u64, TextCells>,
    /// Those of the thread that makes a process: its child has a window of its own.
    passed: Vec<(u64, OpenCall)>,
}

impl OtherCalls {
    pub const fn new() -> OtherCalls {
        OtherCalls {
            calls: BTreeMap::new(),
            texts: BTreeMap::new(),
            n_texts: 0,
            cells: BTreeMap::new(),
            passed: Vec::new(),
        }
    }

    /// Has a call open that keeps those values in a thread's table, or beside it; those that are open no more, since it begins where they
    /// did.
    pub fn open(&mut self, table: OpenCalls, call: &CallHead, values: &[u64]) -> Vec<OpenCall> {
        let mut left = Vec::new();
        if !self.calls.is_empty() {
            let key = (table.block(), call.stack_pointer);
            if let Some(others) = self.calls.get_mut(&key) {
                left.extend(others.extract_if(.., |other| other.is_same(call)));
                if others.is_empty() {
                    self.calls.remove(&key);
                }
            }
        }
        match table.open(call, values) {
            Some(before) if before.is_same(call) => left.push(before),
            Some(before) => self.calls.entry((table.block(), before.stack_pointer)).or_default().push(before),
            None => {}
        }
        left
    }

    /// All calls of a thread that are open, the latest first; those in its table with their places.
    pub fn all(&self, table: OpenCalls) -> Vec<(Option<u64>, OpenCall)> {
        let others = self.calls.range((table.block(), 0)..=(table.block(), u64::MAX)).flat_map(|(_, calls)| calls);
        let others = others.map(|call| (None, *call));
        let mut all: Vec<_> = table.all().map(|(place, call)| (Some(place), call)).chain(others).collect();
        all.sort_unstable_by_key(|(_, call)| core::cmp::Reverse(call.tsc));
        all
    }

    /// Has those calls in the thread's table that return to `pc` with that stack pointer.
    pub fn fetch(&mut self, table: OpenCalls, stack_pointer: u64, pc: AppPc) {
        let key = (table.block(), stack_pointer.wrapping_sub(RETURN_ADDRESS_BYTES));
        let Some(calls) = self.calls.remove(&key) else { return };
        let (wanted, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.return_pc == pc.raw());
        if !others.is_empty() {
            self.calls.insert(key, others);
        }
        for call in wanted {
            for left in self.open(table, &call.head, &call.values) {
                self.drop_texts(table, left.texts);
            }
        }
    }

    /// How many of a thread's are beside its table.
    pub fn count(&self, table: OpenCalls) -> usize {
        if self.calls.is_empty() {
            return 0;
        }
        self.calls.range((table.block(), 0)..=(table.block(), u64::MAX)).map(|(_, calls)| calls.len()).sum()
    }

    /// Keeps bytes of a call; the number of these.
    pub fn keep_texts(&mut self, table: OpenCalls, texts: Vec<KeptText>) -> u64 {
        if texts.is_empty() {
            return 0;
        }
        self.n_texts = self.n_texts % u64::from(u32::MAX) + 1;
        let packed = pack(&texts);
        let n = packed.len().div_ceil(CELL_BYTES);
        let first = self.cells.entry(table.block()).or_default().take(n);
        if let Some(first) = first {
            table.write_texts(first, &packed);
        }
        let number = self.n_texts << 32 | first.map_or(0, |first| (first << 16 | n) as u64);
        self.texts.insert((table.block(), number), texts);
        number
    }

    /// The bytes that a call keeps of a field.
    pub fn text(&self, table: OpenCalls, call: &CallHead, field: usize) -> Option<&[u8]> {
        let texts = self.texts.get(&(table.block(), call.texts))?;
        texts.iter().find(|(own, _)| *own == field).map(|(_, bytes)| &bytes[..])
    }

    /// The bytes that a call keeps, by their number.
    pub fn texts_of(&self, table: OpenCalls, texts: u64) -> &[KeptText] {
        self.texts.get(&(table.block(), texts)).map_or(&[], |texts| &texts[..])
    }

    /// The bytes that a call kept, which is open no more.
    pub fn take_texts(&mut self, table: OpenCalls, texts: u64) -> Vec<KeptText> {
        if texts == 0 {
            // None of its values is bytes.
            return Vec::new();
        }
        // What the program wrote there is no number that was given.
        let Some(found) = self.texts.remove(&(table.block(), texts)) else { return Vec::new() };
        if let Some(cells) = self.cells.get_mut(&table.block()) {
            cells.give_back(cells_of(texts));
        }
        found
    }

    /// A call is open no more.
    pub fn drop_texts(&mut self, table: OpenCalls, texts: u64) {
        self.take_texts(table, texts);
    }

    /// None of a thread's is.
    pub fn forget(&mut self, table: OpenCalls) {
        self.calls.retain(|(block, _), _| *block != table.block());
        self.texts.retain(|(block, _), _| *block != table.block());
        self.cells.remove(&table.block());
    }

    /// The thread of that table is about to make a process; then it has, and is there still.
    pub fn pass(&mut self, table: Option<OpenCalls>) {
        self.passed = table.map_or(Vec::new(), |table| table.all().collect());
    }

    /// In that process, whose table is mapped anew: what its parent's thread had open is open here, too.
    pub fn inherit(&mut self, table: OpenCalls) {
        table.write_all(&core::mem::take(&mut self.passed));
        table.tell_others(self.count(table) as u64);
        for ((_, number), texts) in self.texts.range((table.block(), 0)..=(table.block(), u64::MAX)) {
            let cells = cells_of(*number);
            if !cells.is_empty() {
                table.write_texts(cells.start, &pack(texts));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::open_calls::samples::{call, with_table};
    use super::*;

    #[test]
    fn what_found_no_room_is_found_again() {
        let mut others = OtherCalls::new();
        with_table(|table| {
            let depth = 5000;
            let stacks: Vec<u64> = (0..depth).map(|number| 0x7fff_0008 - 48 * number).collect();
            for (number, stack) in stacks.iter().enumerate() {
                others.open(table, &call(*stack, 0x1000, number as u64), &[number as u64]);
            }
            assert!(others.count(table) > 0);
            for stack in stacks.iter().rev() {
                others.fetch(table, stack + 8, AppPc::from_raw(0x500));
                let place = table.find(stack + 8, AppPc::from_raw(0x500), |kind| kind == 1).unwrap();
                // SAFETY: nobody else has the table.
                let found = *unsafe { table.at(place) };
                assert_eq!((found.stack_pointer, found.values[0]), (*stack, found.tsc));
                table.close(place);
            }
            assert_eq!(others.count(table), 0);
        });
    }

    #[test]
    fn a_child_has_what_its_parent_had_open() {
        let mut others = OtherCalls::new();
        with_table(|parent| {
            let texts = others.keep_texts(parent, alloc::vec![(1, b"some bytes".to_vec())]);
            others.open(parent, &CallHead { texts, ..call(0x7008, 0x1000, 1) }, &[5, 10]);
            others.open(parent, &call(0x7008, 0x2000, 2), &[6]);
            let before: Vec<_> = parent.all().collect();
            others.pass(Some(parent));
            parent.clear();
            others.inherit(parent);
            assert!(parent.all().eq(before) && others.texts_of(parent, texts)[0].1 == b"some bytes");
        });
    }

    #[test]
    fn texts_leave_their_cells() {
        let mut others = OtherCalls::new();
        with_table(|table| {
            let long = || alloc::vec![(0, alloc::vec![7; 4000]), (2, alloc::vec![8; 4000])];
            let numbers: Vec<u64> = (0..40).map(|_| others.keep_texts(table, long())).collect();
            assert!(!cells_of(numbers[0]).is_empty() && cells_of(numbers[39]).is_empty());
            for number in numbers.into_iter().rev() {
                assert_eq!(others.take_texts(table, number), long());
            }
            let number = others.keep_texts(table, long());
            assert_eq!(cells_of(number).start, 0);
        });
    }
}
