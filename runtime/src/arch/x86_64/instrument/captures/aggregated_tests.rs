//! What translated code adds up is what the dispatcher does.

extern crate std;
use super::native::{place_asked, run_beside, Machine};
use crate::instrument::captures::aggregates::Table;
use crate::instrument::captures::form::samples::operation;
use crate::instrument::captures::form::{Form, Kind, Operation};
use crate::protocol::{capture_action, capture_operation as op, CapturePlace};
use std::vec;
use std::vec::Vec;

const BASE_BYTES: usize = 1 << 19;

fn asked(keys: usize, rows_log2: u8, has_values: bool, has_histograms: bool) -> CapturePlace {
    // SAFETY: all zeros are a place.
    let nothing: CapturePlace = unsafe { core::mem::zeroed() };
    CapturePlace {
        action: capture_action::AGGREGATE,
        table_start: 128,
        table_keys: keys as u8,
        table_rows_log2: rows_log2,
        table_has_values: has_values.into(),
        table_has_histograms: has_histograms.into(),
        ..nothing
    }
}

/// Adds the same by translated code, where that does not leave, and by the dispatcher alone. How often it left.
fn compare(asked: &CapturePlace, rows: &[(Vec<u64>, Option<u64>)], kind: Kind) -> usize {
    let table = Table::of(asked).expect("a table");
    let (mut emitted, mut expected) = (vec![0u64; BASE_BYTES / 8], vec![0u64; BASE_BYTES / 8]);
    let mut n_left = 0;
    for (keys, value) in rows {
        let constant = |bits: &u64, kind: Kind| operation(op::CONSTANT, kind, 0, 0, *bits);
        let mut operations: Vec<Operation> = keys.iter().map(|key| constant(key, Kind::U64)).collect();
        operations.extend(value.iter().map(|value| constant(value, kind)));
        let fields = (0..operations.len() as u16).collect();
        let place = place_asked(&[(*asked, Form { operations, fields, ..Form::default() })]);
        let machine = Machine::sample();
        let run = run_beside(emitted.as_mut_ptr() as u64, &place, &machine, |_| {});
        assert_eq!((run.outcome, run.machine.general[3]), (1, machine.general[3]));
        let typed = value.map(|value| (value, kind));
        // SAFETY: the memory holds the table.
        unsafe {
            if run.machine.has_left != 0 {
                n_left += 1;
                table.add(emitted.as_mut_ptr() as u64, keys, 0, typed);
            }
            table.add(expected.as_mut_ptr() as u64, keys, 0, typed);
        }
        assert!(emitted == expected, "{keys:?} {value:?}");
    }
    n_left
}

const VALUES: [u64; 12] = [5, 0, 1, 3, 4, 7, 8, 0x8000_0000_0000_0000, u64::MAX, u64::MAX - 6, 12345, 1 << 62];

#[test]
fn without_keys_only_the_first_is_the_dispatchers() {
    for kind in [Kind::U64, Kind::I64] {
        let rows: Vec<_> = VALUES.iter().map(|value| (Vec::new(), Some(*value))).collect();
        assert_eq!(compare(&asked(0, 0, true, true), &rows, kind), 1);
        assert_eq!(compare(&asked(0, 0, true, false), &rows, kind), 1);
    }
    assert_eq!(compare(&asked(0, 0, false, false), &vec![(Vec::new(), None); 5], Kind::U64), 1);
}

#[test]
fn keys_that_are_known_are_found() {
    let rows: Vec<_> =
        (0..200u64).map(|n| (vec![n % 20 * 4096, n % 3], Some(VALUES[n as usize % VALUES.len()]))).collect();
    assert_eq!(compare(&asked(2, 7, true, true), &rows, Kind::I64), 60, "once for each key");
    let single: Vec<_> = (0..100u64).map(|n| (vec![n % 10], None)).collect();
    assert_eq!(compare(&asked(1, 6, false, false), &single, Kind::U64), 10);
}

#[test]
fn what_finds_no_room_is_the_dispatchers() {
    let rows: Vec<_> = (0..60u64).map(|n| (vec![n % 30], Some(n))).collect();
    assert!(compare(&asked(1, 1, true, false), &rows, Kind::U64) > 30);
}

#[test]
fn floats_are_the_dispatchers() {
    let rows: Vec<_> = (0..5).map(|n| (Vec::new(), Some(f64::from(n).to_bits()))).collect();
    assert_eq!(compare(&asked(0, 0, true, true), &rows, Kind::F64), 5);
}
