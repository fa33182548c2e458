//! Conditions that a probe's handler decides early, and what it reads of memory, are what they are when worked out otherwise.

extern crate std;
use super::tests::{assert_same, form, register, run_handler, RDI};
use crate::cpu::instrument::captures::native::{place_of, Machine, Ring, Value as Taken, RETURN_PC, RING_BYTES};
use crate::cpu::unwinding::set_tables;
use crate::cpu::unwinding::tests::{Made, CODE, LOCK};
use crate::instrument::captures::evaluate::{evaluate, Asked, Value};
use crate::instrument::captures::form::samples::operation;
use crate::instrument::captures::form::{Kind, Operation};
use crate::instrument::captures::layout::take_backtraces;
use crate::protocol::{
    backtrace_end, capture_action, capture_operation as op, capture_type, CaptureRecord, ContinuationRecord,
};
use clew_pathcodec::frame_rules::{Kind as FrameKind, Rule, Saved};
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

fn constant(kind: Kind, bits: u64) -> Operation {
    operation(op::CONSTANT, kind, 0, 0, bits)
}

/// The machine, for what captures are worked out by otherwise.
struct Registers<'m>(&'m Machine);

impl Asked for Registers<'_> {
    fn register(&self, number: u64) -> Option<u64> {
        self.0.general.get(number as usize).copied()
    }

    fn read(&self, _: u64, _: &mut [u8]) -> usize {
        0
    }

    fn context(&self, _: u8) -> Value {
        Value::Missing
    }

    fn descriptor_path(&self, _: i32, _: usize) -> Value {
        Value::Missing
    }

    fn kept(&self, _: usize, _: bool) -> Value {
        Value::Missing
    }
}

#[test]
fn early_conditions_decide_as_all_others_do() {
    let kinds = [
        capture_type::I8,
        capture_type::U16,
        capture_type::I32,
        capture_type::U32,
        capture_type::I64,
        capture_type::U64,
    ];
    let numbers = [0u64, 1, 5, 0x7f, 0x80, 0xffff, 0x8000_0000, u64::MAX, u64::MAX - 4, 1 << 40];
    let comparisons = [op::EQUAL, op::NOT_EQUAL, op::LESS, op::LESS_EQUAL];
    let mut n_held = 0;
    let mut n = 0;
    for narrow in kinds.map(Kind) {
        for (which, number) in
            [0u64, 1, 2, RDI, 9, 15].into_iter().flat_map(|which| numbers.map(|number| (which, number)))
        {
            let kind = [Kind::I32, Kind::U32, Kind::I64, Kind::U64][n / 2 % 4];
            let code = comparisons[n % comparisons.len()];
            let logic = [op::LOGICAL_AND, op::LOGICAL_OR][n / 4 % 2];
            let arithmetic = [op::ADD, op::SUBTRACT, op::BIT_AND, op::BIT_OR, op::BIT_XOR][n / 3 % 5];
            let mut machine = Machine::sample();
            machine.general[which as usize] = numbers[n % 7] ^ (n as u64 % 3);
            machine.general[10] = numbers[n / 2 % 10];
            n += 1;
            let operations = [
                register(which),
                operation(op::CONVERT, narrow, 0, 0, u64::from(Kind::U64.0)),
                constant(kind, number),
                operation(op::NEGATE, kind, 2, 0, 0),
                operation(op::CONVERT, kind, 1, 0, u64::from(narrow.0)),
                operation(arithmetic, kind, 4, 3, 0),
                operation(code, kind, 5, 2, 0),
                register(10),
                operation(op::LESS, Kind::U64, 0, 7, 0),
                operation(op::LOGICAL_NOT, Kind::I32, 8, 0, 0),
                operation(logic, Kind::I32, 6, 9, 0),
            ];
            let place = place_of(&[(capture_action::RECORD, form(&operations, &[0], Some(10)))]);
            let holds = evaluate(&place.programs[0], &Registers(&machine), |_, _| {});
            let mut ring = Ring::new(0);
            let run = run_handler(0, &place, &machine, |context, _| ring.lend(context));
            assert_same(&run, &machine);
            assert_eq!(ring.slot.ring_head != 0, holds, "{operations:?} {machine:?}");
            n_held += usize::from(holds);
            // What is decided early does not look whether the thread is in a handler already.
            let run = run_handler(0, &place, &machine, |context, _| context.probe.is_busy = 1);
            assert_same(&run, &machine);
            assert_eq!(run.missed, u64::from(holds));
        }
    }
    assert!(n_held > n / 10 && n_held < n - n / 10, "{n_held} of {n}");
}

/// What a handler records of a string, of at most so many bytes; `None`: it is missing.
fn string(address: u64, limit: u64) -> Option<Vec<u8>> {
    let mut machine = Machine::sample();
    machine.general[RDI as usize] = address;
    let operations = [register(RDI), operation(op::STRING, Kind::TEXT, 0, 0, limit)];
    let place = place_of(&[(capture_action::RECORD, form(&operations, &[0, 0, 0, 0, 1], None))]);
    // The ring is about to begin anew.
    let start = 3 * u64::from(RING_BYTES) - 64;
    let mut ring = Ring::new(start);
    let run = run_handler(0, &place, &machine, |context, _| ring.lend(context));
    assert_same(&run, &machine);
    assert_eq!(run.machine.has_left, 0);
    // SAFETY: any bytes are records.
    let record: CaptureRecord = unsafe { ring.read(start) };
    assert_eq!(ring.slot.ring_head, start + 64 * (1 + u64::from(record.continuations)));
    let parts = (1..=u64::from(record.continuations)).map(|part| {
        // SAFETY: as above.
        let one: ContinuationRecord = unsafe { ring.read(start + 64 * part) };
        assert_eq!(u64::from(one.index), part - 1);
        one.payload
    });
    let payload: Vec<u8> = parts.flatten().collect();
    let size = u64::from_le_bytes(payload[..8].try_into().unwrap()) as usize;
    assert_eq!(payload.len(), (8 + size).div_ceil(60) * 60);
    (record.missing == 0).then(|| payload[8..8 + size].to_vec())
}

#[test]
fn strings_are_read_wherever_they_are() {
    // One that is larger than a page, so that some of it is next to the stack pointer and some is not.
    let mut own = [0u8; 9000];
    let mut heap = vec![0u8; 9000].into_boxed_slice();
    for memory in [&mut own[..], &mut heap[..]] {
        memory.iter_mut().enumerate().for_each(|(index, byte)| *byte = 1 + (index % 255) as u8);
        let bytes: Box<[u8]> = memory.into();
        let start = memory.as_ptr() as u64;
        let page = (start.next_multiple_of(4096) - start) as usize;
        for at in [0, 1, 7, page.saturating_sub(9), page.saturating_sub(3), page, page + 4090] {
            for size in [0, 1, 7, 8, 9, 31, 32, 33, 100, 300] {
                memory[at + size] = 0;
                for limit in [1, 8, 32, 200] {
                    let expected = &bytes[at..at + size.min(limit)];
                    assert_eq!(
                        string(start + at as u64, limit as u64).as_deref(),
                        Some(expected),
                        "{at} {size} {limit}"
                    );
                }
                memory[at + size] = bytes[at + size];
            }
        }
    }
    assert_eq!(string(8, 32), None);
    assert_eq!(string(u64::MAX - 3, 32), None);
    assert_eq!(string(0x1234_5678_9abc_def0, 32), None);
}

#[test]
fn numbers_are_read_wherever_they_are() {
    let heap = Box::new([0x8182_8384_8586_8788u64; 4]);
    let own = [0x8182_8384_8586_8788u64; 600];
    let read = |address: u64, kind: Kind| {
        let mut machine = Machine::sample();
        machine.general[RDI as usize] = address;
        let operations = [register(RDI), operation(op::LOAD, kind, 0, 0, 0)];
        let place = place_of(&[(capture_action::RECORD, form(&operations, &[1], None))]);
        let mut ring = Ring::new(0);
        let run = run_handler(0, &place, &machine, |context, _| ring.lend(context));
        assert_same(&run, &machine);
        // SAFETY: any bytes are records.
        let record: CaptureRecord = unsafe { ring.read(0) };
        assert_eq!((run.machine.has_left, ring.slot.ring_head), (0, 64));
        (record.missing == 0).then_some(record.values[0])
    };
    let bytes = 0x8182_8384_8586_8788u64.to_le_bytes().repeat(3);
    for kind in
        [capture_type::I8, capture_type::U8, capture_type::I16, capture_type::U32, capture_type::I32, capture_type::U64]
            .map(Kind)
    {
        for offset in 0..9 {
            let mut word = [0; 8];
            let size = kind.size_bytes() as usize;
            word[..size].copy_from_slice(&bytes[offset..offset + size]);
            let expected = Some(kind.widen(u64::from_le_bytes(word)));
            for start in [heap.as_ptr() as u64, own.as_ptr() as u64, &raw const own[500] as u64] {
                assert_eq!(read(start + offset as u64, kind), expected, "{kind:?} {offset}");
            }
        }
        assert_eq!((read(16, kind), read(1 << 63, kind)), (None, None));
    }
}

/// A flag that the program may have, and compiled code does not expect: backwards.
const DIRECTION: u64 = 1 << 10;

#[test]
fn a_backtrace_is_recorded_or_the_runtime_is_asked() {
    let _guard = LOCK.lock().unwrap_or_else(|error| error.into_inner());
    take_backtraces();
    // The handler's instruction is in a function that has pushed nothing, whose caller is the first one.
    let own = Rule::new(FrameKind::Stack, 8, Saved::Same);
    let rules = [(0xf0, Rule::OUTERMOST), (0x100, Rule::NOTHING), (0xc00, own), (0xd00, Rule::NOTHING)];
    let made = Made::new(&rules);
    let mut moved = made.area.clone();
    for image in moved.chunks_mut(4).filter(|image| image[0] == CODE) {
        // Where the handler says that it is, and what lies on the stack there.
        (image[0], image[1], image[2]) = (0x400, 0x1200, 0x400);
    }
    let operations = [operation(op::BACKTRACE, Kind::TEXT, 0, 0, 8), register(RDI)];
    let place = place_of(&[(capture_action::RECORD, form(&operations, &[1, 0], None))]);
    for (area, n_frames, has_left) in [(&moved, 2u32, 0), (&made.area, 1, 1)] {
        set_tables(area.as_ptr() as u64, &raw const made.state as u64);
        for flags in [0, DIRECTION] {
            let mut machine = Machine::sample();
            machine.flags |= flags;
            let mut ring = Ring::new(64);
            let run = run_handler(0, &place, &machine, |context, _| ring.lend(context));
            assert_same(&run, &machine);
            assert_eq!((run.machine.has_left, run.outcome), (has_left, 1));
            let Taken::Bytes(bytes) = &run.values[0][0] else { panic!("it is bytes") };
            let word = |index: usize| u64::from_le_bytes(bytes[8 * index..][..8].try_into().unwrap());
            let end = if has_left == 0 { backtrace_end::OUTERMOST } else { backtrace_end::ASKS };
            assert_eq!((word(0) as u8, (word(0) >> 32) as u32, word(1)), (end, n_frames, 0x1000));
            assert_eq!(ring.slot.ring_head, if has_left == 0 { 64 * 3 } else { 64 });
            if has_left == 0 {
                assert_eq!((word(2), bytes.len()), (RETURN_PC, 24));
                // SAFETY: any bytes are records.
                let (record, part): (CaptureRecord, ContinuationRecord) = unsafe { (ring.read(64), ring.read(128)) };
                assert_eq!(
                    (record.values[0], record.values[1], record.missing),
                    (machine.general[RDI as usize], 24, 0)
                );
                assert_eq!(part.payload[..24], bytes[..]);
            }
        }
    }
    set_tables(0, 0);
}
