//! A probe's handler takes what it is to, or leaves with nothing done, and the thread goes on as it was.

extern crate std;
use super::handler::{emit, Handler};
use crate::context::addresses::AppPc;
use crate::context::numbers::ExitId;
use crate::context::ThreadContext;
use crate::cpu::instrument::captures::native::{
    place_asked, place_of, run_made, went_on, Machine, Ring, Run, MISSED, RETURN_PC, RING_BYTES,
};
use crate::cpu::thread_pointer;
use crate::instrument::captures::evaluate::{evaluate, Asked, Value};
use crate::instrument::captures::form::samples::operation;
use crate::instrument::captures::form::{Form, Kind, Operation};
use crate::instrument::captures::open_calls::{CallHead, OpenCalls, RETURN_ADDRESS_BYTES, TICK_NS};
use crate::instrument::captures::places::Outlets;
use crate::instrument::captures::places::Place;
use crate::protocol::{
    capture_action, capture_context, capture_operation as op, capture_type, CapturePlace, CaptureRecord,
    ContinuationRecord,
};
use core::sync::atomic::Ordering;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

/// Runs a place's handler, as a thread that has come there; `set_up` sees its context, and its open calls, before.
fn run_handler(
    aggregates: u64,
    place: &Place,
    machine: &Machine,
    set_up: impl FnOnce(&mut ThreadContext, OpenCalls),
) -> Run {
    run_overwriting(false, aggregates, place, machine, set_up)
}

fn run_overwriting(
    overwrites: bool,
    aggregates: u64,
    place: &Place,
    machine: &Machine,
    set_up: impl FnOnce(&mut ThreadContext, OpenCalls),
) -> Run {
    let set_up = |context: &mut ThreadContext| {
        // SAFETY: the window is a part of the block.
        let table = unsafe { OpenCalls::of(context.self_address) };
        table.clear();
        context.capture.has_open_calls = 1;
        (context.probe.owner, context.probe.process) = (thread_pointer(), std::process::id());
        set_up(context, table);
    };
    run_made(place, machine, set_up, |emitter, outlets| {
        let handler = Handler {
            place,
            pc: AppPc::from_raw(0x1000),
            exit: ExitId::from_raw(7),
            outlets: Outlets { aggregates, overwrites, before_return: true, ..outlets },
            resume: went_on(),
            missed: MISSED.as_ptr() as u64,
            // No thread without a block comes here.
            claim: 0,
            skipped_bytes: 13,
        };
        emit(emitter, &handler);
    })
}

const KIND: u32 = 3;
const RSP: u64 = 4;
const RDI: u64 = 7;

fn register(number: u64) -> Operation {
    operation(op::REGISTER, Kind::U64, 0, 0, number)
}

fn constant(kind: Kind, bits: u64) -> Operation {
    operation(op::CONSTANT, kind, 0, 0, bits)
}

fn asked(action: u32, call_kind: u32) -> CapturePlace {
    // SAFETY: all zeros are a place.
    CapturePlace { action, call_kind, ..unsafe { core::mem::zeroed() } }
}

fn form(operations: &[Operation], fields: &[u16], condition: Option<u16>) -> Form {
    Form { operations: operations.to_vec(), fields: fields.to_vec(), condition, ..Form::default() }
}

/// A function's entry: where it returns to and its first argument are recorded, and a call begins that keeps the argument.
fn entry(condition: Option<u16>) -> std::sync::Arc<Place> {
    let operations = [
        register(RSP),
        operation(op::LOAD, Kind::U64, 0, 0, 0),
        register(RDI),
        operation(op::LESS, Kind::U64, 1, 2, 0),
    ];
    place_asked(&[
        (asked(capture_action::RECORD, 0), form(&operations, &[1, 2], condition)),
        (asked(capture_action::CALL, KIND), form(&operations, &[2], condition)),
    ])
}

/// Where it returns: how long it took is recorded, and what was kept.
fn exit() -> std::sync::Arc<Place> {
    let operations = [
        operation(op::CONTEXT, Kind::U64, 0, 0, u64::from(capture_context::DURATION)),
        operation(op::KEPT, Kind::U64, 0, 0, 0),
    ];
    place_asked(&[(asked(capture_action::RECORD, KIND), form(&operations, &[0, 1], None))])
}

/// That nothing of the machine is another than it was; where its stack was.
fn assert_same(run: &Run, before: &Machine) -> u64 {
    let stack = run.machine.general[RSP as usize];
    let mut expected = before.clone();
    expected.general[RSP as usize] = stack;
    expected.has_left = run.machine.has_left;
    // Interrupts are on, and the bit that is always set.
    expected.flags |= 0x202;
    assert_eq!(run.machine, expected);
    stack
}

#[test]
fn a_call_is_recorded_where_it_begins_and_where_it_returns() {
    let machine = Machine::sample();
    TICK_NS.store(1 << 32, Ordering::Relaxed);
    let (mut ring, mut began, mut stack, mut table) = (Ring::new(0), 0, 0, None);
    for (n, place) in [entry(None), exit()].iter().enumerate() {
        let run = run_handler(0, place, &machine, |context, own| {
            ring.lend(context);
            table = Some(own);
            if n == 1 {
                // The table was cleared.
                let head =
                    CallHead { stack_pointer: stack, return_pc: RETURN_PC, function: 0x1000, ..CallHead::default() };
                assert_eq!(own.open(&CallHead { tsc: began, kind: KIND, ..head }, &[77]), None);
            }
        });
        stack = assert_same(&run, &machine);
        assert_eq!((run.machine.has_left, ring.slot.ring_head), (0, 64 * (n as u64 + 1)));
        // SAFETY: any bytes are records.
        let record: CaptureRecord = unsafe { ring.read(64 * n as u64) };
        let expected = [(RETURN_PC, machine.general[RDI as usize]), (record.tsc.wrapping_sub(began), 77)][n];
        assert_eq!((record.pc, record.missing, record.number), (0x1000, 0, 0));
        assert_eq!((record.values[0], record.values[1]), expected);
        began = record.tsc;
    }
    assert_eq!(table.unwrap().all().count(), 0, "it is closed");
}

#[test]
fn what_an_entry_opens_is_what_returns() {
    let machine = Machine::sample();
    let mut ring = Ring::new(0);
    let mut table = None;
    let run = run_handler(0, &entry(None), &machine, |context, own| {
        ring.lend(context);
        table = Some(own);
    });
    // SAFETY: any bytes are records.
    let record: CaptureRecord = unsafe { ring.read(0) };
    let stack = run.machine.general[RSP as usize];
    let table = table.unwrap();
    let found = table.find(stack + RETURN_ADDRESS_BYTES, AppPc::from_raw(RETURN_PC), |kind| kind == KIND);
    let (_, call) = table.all().find(|(place, _)| Some(*place) == found).unwrap();
    assert_eq!((call.function, call.tsc, call.missing), (0x1000, record.tsc, 0));
    assert_eq!(call.values[0], machine.general[RDI as usize]);
}

#[test]
fn who_leaves_has_done_nothing() {
    let machine = Machine::sample();
    let mut full = Ring::new(0);
    full.slot.ring_head = u64::from(RING_BYTES);
    let mut table = None;
    let run = run_handler(0, &entry(None), &machine, |context, own| {
        full.lend(context);
        table = Some(own);
    });
    assert_same(&run, &machine);
    assert_eq!((run.machine.has_left, full.slot.ring_head), (1, u64::from(RING_BYTES)));
    assert_eq!(table.unwrap().all().count(), 0);
    let mut ring = Ring::new(0);
    let without_table = |context: &mut ThreadContext, _: OpenCalls| {
        ring.lend(context);
        context.capture.has_open_calls = 0;
    };
    let run = run_handler(0, &entry(None), &machine, without_table);
    assert_same(&run, &machine);
    assert_eq!(
        (run.machine.has_left, ring.slot.ring_head),
        (1, 0),
        "the call can't begin, so it is not recorded either"
    );
}

#[test]
fn the_oldest_records_are_written_over_where_nobody_takes_any() {
    let machine = Machine::sample();
    let mut full = Ring::new(0);
    full.slot.ring_head = u64::from(RING_BYTES);
    let run = run_overwriting(true, 0, &entry(None), &machine, |context, _| full.lend(context));
    assert_same(&run, &machine);
    assert_eq!((run.machine.has_left, full.slot.ring_head), (0, u64::from(RING_BYTES) + 64));
    // SAFETY: any bytes are records.
    let record: CaptureRecord = unsafe { full.read(0) };
    assert_eq!((record.pc, record.values[1]), (0x1000, machine.general[RDI as usize]));
}

#[test]
fn a_return_without_a_call_is_nothing() {
    let machine = Machine::sample();
    let mut ring = Ring::new(0);
    let run = run_handler(0, &exit(), &machine, |context, _| ring.lend(context));
    assert_same(&run, &machine);
    assert_eq!((run.machine.has_left, ring.slot.ring_head), (0, 0));
}

#[test]
fn a_handler_within_a_handler_takes_nothing_and_counts_that() {
    let machine = Machine::sample();
    let mut ring = Ring::new(0);
    let run = run_handler(0, &entry(None), &machine, |context, _| {
        ring.lend(context);
        context.probe.is_busy = 1;
    });
    assert_same(&run, &machine);
    assert_eq!((ring.slot.ring_head, run.missed), (0, 1));
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
