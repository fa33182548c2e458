//! Tables of aggregates, in the shared memory: what threads add up, by keys.
//!
//! Threads of the process add to a row at once; the controller reads at any time. A row is taken by who writes its keys, and is ready
//! from then on; it stays until the table is given up. Translated code adds to rows that are ready (cpu::instrument::captures); the
//! dispatcher comes here for all else. What the program may have put into a table makes numbers wrong, and nothing else.

use super::form::Kind;
use crate::protocol::{
    AggregateHead, AggregateRow, CapturePlace, AGGREGATES_BYTES, AGGREGATE_BUCKETS, AGGREGATE_HASH_FACTOR,
    AGGREGATE_KEY_WORDS, AGGREGATE_PROBES, MAX_AGGREGATE_ROWS_LOG2,
};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

const LINE_BYTES: u64 = 128;
/// `AggregateRow::state` of a row whose keys are being written.
const TAKEN: u64 = 1;
/// And of one whose keys are all there, none of them missing.
pub const READY: u64 = 2;
const MISSING_SHIFT: u32 = 2;
/// Who takes a row writes it at once; a thread that was killed meanwhile never does.
const PATIENCE: u32 = 10_000;

/// A table, as a place asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Where it is, counted from the start of all of them.
    start: u32,
    pub n_keys: usize,
    rows_log2: u32,
    pub has_values: bool,
    pub has_histograms: bool,
}

impl Table {
    /// The one that a place asks for; `None`: there can't be such a table.
    pub fn of(place: &CapturePlace) -> Option<Table> {
        let table = Table {
            start: place.table_start,
            n_keys: place.table_keys.into(),
            rows_log2: place.table_rows_log2.into(),
            has_values: place.table_has_values != 0,
            has_histograms: place.table_has_histograms != 0,
        };
        let is_sound = u64::from(table.rows_log2) <= MAX_AGGREGATE_ROWS_LOG2
            && table.n_keys as u64 <= AGGREGATE_KEY_WORDS
            && u64::from(table.start) % LINE_BYTES == 0
            && u64::from(table.start) + table.size_bytes() <= AGGREGATES_BYTES;
        is_sound.then_some(table)
    }

    fn size_bytes(&self) -> u64 {
        size_of::<AggregateHead>() as u64 + ((1 << self.rows_log2) + AGGREGATE_PROBES) * self.row_bytes()
    }

    pub fn row_bytes(&self) -> u64 {
        let histogram = if self.has_histograms { 8 * AGGREGATE_BUCKETS } else { 0 };
        (size_of::<AggregateRow>() as u64 + histogram).next_multiple_of(LINE_BYTES)
    }

    /// The first row of the table, where all of them begin at `base`.
    pub fn rows_at(&self, base: u64) -> u64 {
        base + u64::from(self.start) + size_of::<AggregateHead>() as u64
    }

    /// How far a hash is shifted to be the number of a row; 64: there is one.
    pub fn hash_shift(&self) -> u32 {
        64 - self.rows_log2
    }

    /// Adds to the row of some keys, of which some are `missing`; `None`: there is no value, or it is missing.
    ///
    /// # Safety
    /// All tables are mapped from `base` on.
    pub unsafe fn add(&self, base: u64, keys: &[u64], missing: u64, value: Option<(u64, Kind)>) {
        let mut words = [0; AGGREGATE_KEY_WORDS as usize];
        let n = keys.len().min(words.len());
        words[..n].copy_from_slice(&keys[..n]);
        let hash = words[..n]
            .iter()
            .fold(0u64, |hash, word| (hash.rotate_left(29) ^ word).wrapping_mul(AGGREGATE_HASH_FACTOR));
        let first = hash.checked_shr(self.hash_shift()).unwrap_or(0);
        for number in first..first + AGGREGATE_PROBES {
            // SAFETY: `Table::of` has seen that all rows are inside the tables.
            let row = unsafe { Row::at(self.rows_at(base) + number * self.row_bytes()) };
            if row.is_of(&words, READY | missing << MISSING_SHIFT, value.map(|(_, kind)| kind)) {
                row.count(value, self.has_values);
                if let Some((value, kind)) = value.filter(|_| self.has_histograms) {
                    row.count_bucket(bucket_of(value, kind));
                }
                return;
            }
        }
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr((base + u64::from(self.start)) as *mut u64) }.fetch_add(1, Ordering::Relaxed);
    }
}

/// A row of a table, which threads and the controller have at the same time.
struct Row(u64);

impl Row {
    /// # Safety
    /// A row is mapped there.
    unsafe fn at(address: u64) -> Row {
        Row(address)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside a row, which the maker knows to be mapped; words of it are aligned.
        unsafe { AtomicU64::from_ptr((self.0 + offset as u64) as *mut u64) }
    }

    /// Whether the row is of these keys: it becomes it if it is free.
    fn is_of(&self, keys: &[u64; AGGREGATE_KEY_WORDS as usize], ready: u64, kind: Option<Kind>) -> bool {
        let state = self.word(offset_of!(AggregateRow, state));
        let key = |index: usize| self.word(offset_of!(AggregateRow, keys) + 8 * index);
        let is_free = state.load(Ordering::Relaxed) == 0;
        if is_free && state.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            keys.iter().enumerate().for_each(|(index, word)| key(index).store(*word, Ordering::Relaxed));
            let (least, most) = match kind {
                Some(kind) if kind.is_float() => (f64::INFINITY.to_bits(), f64::NEG_INFINITY.to_bits()),
                Some(kind) if kind.is_signed() => (i64::MAX.cast_unsigned(), i64::MIN.cast_unsigned()),
                _ => (u64::MAX, 0),
            };
            self.word(offset_of!(AggregateRow, least)).store(least, Ordering::Relaxed);
            self.word(offset_of!(AggregateRow, most)).store(most, Ordering::Relaxed);
            state.store(ready, Ordering::Release);
            return true;
        }
        for _ in 0..PATIENCE {
            if state.load(Ordering::Acquire) != TAKEN {
                break;
            }
            core::hint::spin_loop();
        }
        state.load(Ordering::Acquire) == ready
            && keys.iter().enumerate().all(|(index, word)| key(index).load(Ordering::Relaxed) == *word)
    }

    fn count(&self, value: Option<(u64, Kind)>, has_values: bool) {
        self.word(offset_of!(AggregateRow, count)).fetch_add(1, Ordering::Relaxed);
        match value {
            Some((value, kind)) if kind.is_float() => self.add_float(as_f64(value, kind)),
            Some((value, kind)) => self.add_integer(value, kind),
            None if has_values => {
                self.word(offset_of!(AggregateRow, n_missing)).fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
    }

    fn add_integer(&self, value: u64, kind: Kind) {
        let before = self.word(offset_of!(AggregateRow, sum_low)).fetch_add(value, Ordering::Relaxed);
        let carry = u64::from(before.checked_add(value).is_none());
        let sign = if kind.is_signed() { (value.cast_signed() >> 63).cast_unsigned() } else { 0 };
        let high = sign.wrapping_add(carry);
        if high != 0 {
            self.word(offset_of!(AggregateRow, sum_high)).fetch_add(high, Ordering::Relaxed);
        }
        let (least, most) = (self.word(offset_of!(AggregateRow, least)), self.word(offset_of!(AggregateRow, most)));
        if kind.is_signed() {
            let is_less = |a: u64, b: u64| a.cast_signed() < b.cast_signed();
            replace_if(least, value, |held| is_less(value, held));
            replace_if(most, value, |held| is_less(held, value));
        } else {
            replace_if(least, value, |held| value < held);
            replace_if(most, value, |held| held < value);
        }
    }

    fn add_float(&self, value: f64) {
        let sum = self.word(offset_of!(AggregateRow, sum_low));
        let mut held = sum.load(Ordering::Relaxed);
        let added = |held: u64| (f64::from_bits(held) + value).to_bits();
        while let Err(now) = sum.compare_exchange_weak(held, added(held), Ordering::Relaxed, Ordering::Relaxed) {
            held = now;
        }
        replace_if(self.word(offset_of!(AggregateRow, least)), value.to_bits(), |held| value < f64::from_bits(held));
        replace_if(self.word(offset_of!(AggregateRow, most)), value.to_bits(), |held| value > f64::from_bits(held));
    }

    fn count_bucket(&self, bucket: u64) {
        self.word(size_of::<AggregateRow>() + 8 * bucket as usize).fetch_add(1, Ordering::Relaxed);
    }
}

/// Stores a value as long as `is_better` says so of what is there.
fn replace_if(word: &AtomicU64, value: u64, is_better: impl Fn(u64) -> bool) {
    let mut held = word.load(Ordering::Relaxed);
    while is_better(held) {
        match word.compare_exchange_weak(held, value, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => held = now,
        }
    }
}

fn as_f64(value: u64, kind: Kind) -> f64 {
    if kind == Kind::F32 {
        f64::from(f32::from_bits(value as u32))
    } else {
        f64::from_bits(value)
    }
}

/// Which bucket of a histogram has a value: the first one all that are not above 0.
fn bucket_of(value: u64, kind: Kind) -> u64 {
    let value = match kind {
        kind if kind.is_float() => as_f64(value, kind) as u64,
        kind if kind.is_signed() => value.cast_signed().max(0).cast_unsigned(),
        _ => value,
    };
    match value.checked_ilog2().map(u64::from) {
        Some(power) if power >= 2 => 4 * (power - 1) + (value >> (power - 2) & 3),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const I64: Option<Kind> = Some(Kind::I64);

    fn table(n_keys: usize, rows_log2: u32) -> Table {
        Table { start: 0, n_keys, rows_log2, has_values: true, has_histograms: true }
    }

    fn memory(table: &Table) -> Vec<u64> {
        vec![0; table.size_bytes() as usize / 8]
    }

    fn rows(table: &Table, memory: &[u64]) -> Vec<Vec<u64>> {
        let rows = memory[size_of::<AggregateHead>() / 8..].chunks(table.row_bytes() as usize / 8);
        rows.filter(|row| row[0] != 0).map(<[u64]>::to_vec).collect()
    }

    fn add(table: &Table, memory: &mut [u64], keys: &[u64], missing: u64, value: Option<u64>, kind: Option<Kind>) {
        let value = value.and_then(|value| Some((value, kind?)));
        // SAFETY: the memory holds the table.
        unsafe { table.add(memory.as_mut_ptr() as u64, keys, missing, value) };
    }

    #[test]
    fn a_row_has_what_was_added() {
        let table = table(1, 4);
        let mut memory = memory(&table);
        for value in [5i64, -7, 40] {
            add(&table, &mut memory, &[3], 0, Some(value.cast_unsigned()), I64);
        }
        add(&table, &mut memory, &[3], 0, None, I64);
        let [row] = &rows(&table, &memory)[..] else { panic!("one row") };
        assert_eq!(row[..2], [READY, 3]);
        assert_eq!(row[9..15], [4, 38, 0, (-7i64).cast_unsigned(), 40, 1]);
        let buckets = &row[16..][..AGGREGATE_BUCKETS as usize];
        let found: Vec<(usize, u64)> = buckets.iter().copied().enumerate().filter(|(_, count)| *count != 0).collect();
        assert_eq!(found, [(0, 1), (5, 1), (17, 1)]);
    }

    #[test]
    fn sums_have_twice_the_bits() {
        let table = table(0, 0);
        for (kind, value, expected) in [
            (Kind::U64, u64::MAX, 2 * i128::from(u64::MAX)),
            (Kind::I64, 1 << 63, 2 * i128::from(i64::MIN)),
            (Kind::I64, u64::MAX, -2),
        ] {
            let mut memory = memory(&table);
            for _ in 0..2 {
                add(&table, &mut memory, &[], 0, Some(value), Some(kind));
            }
            let row = &rows(&table, &memory)[0];
            assert_eq!((u128::from(row[11]) << 64 | u128::from(row[10])).cast_signed(), expected);
        }
        let mut memory = memory(&table);
        for value in [1.5f32, -3.0] {
            add(&table, &mut memory, &[], 0, Some(value.to_bits().into()), Some(Kind::F32));
        }
        let row = &rows(&table, &memory)[0];
        assert_eq!([row[10], row[12], row[13]].map(f64::from_bits), [-1.5, -3.0, 1.5]);
    }

    #[test]
    fn keys_that_find_no_room_are_counted() {
        let table = table(2, 1);
        let mut memory = memory(&table);
        for key in 0..20 {
            add(&table, &mut memory, &[key, 1], 0, Some(1), I64);
            add(&table, &mut memory, &[key, 1], 2, Some(1), I64);
        }
        let counted: u64 = rows(&table, &memory).iter().map(|row| row[9]).sum();
        assert_eq!(counted + memory[0], 40);
        assert!(counted >= AGGREGATE_PROBES && memory[0] > 0);
        assert!(rows(&table, &memory).iter().any(|row| row[0] == (READY | 2 << MISSING_SHIFT)), "a missing key is one");
    }

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let of = |value| bucket_of(value, Kind::U64);
        assert_eq!([0, 1, 2, 3, 4, 5, 7, 8, 9, 10].map(of), [0, 1, 2, 3, 4, 5, 7, 8, 8, 9]);
        assert_eq!(of(u64::MAX), AGGREGATE_BUCKETS - 1);
        assert!((1..1000u64).all(|value| of(value) - of(value - 1) <= 1));
        assert_eq!(bucket_of((-5i64).cast_unsigned(), Kind::I64), 0);
        assert_eq!(bucket_of(9.7f64.to_bits(), Kind::F64), 8);
    }

    #[test]
    fn what_does_not_fit_is_no_table() {
        let place = CapturePlace {
            pc: 0,
            number: 0,
            action: 0,
            form_start: 0,
            form_bytes: 0,
            table_start: 128,
            table_keys: 2,
            table_rows_log2: 10,
            table_has_values: 1,
            table_has_histograms: 1,
            call_kind: 0,
            tells_left: 0,
        };
        assert!(Table::of(&place).is_some_and(|table| table.n_keys == 2));
        assert!(Table::of(&CapturePlace { table_start: 129, ..place }).is_none());
        assert!(Table::of(&CapturePlace { table_keys: 9, ..place }).is_none());
        assert!(Table::of(&CapturePlace { table_rows_log2: 17, ..place }).is_none());
        assert!(Table::of(&CapturePlace { table_start: AGGREGATES_BYTES as u32 - 128, ..place }).is_none());
    }
}
