//! A probe's handler takes what it is to, or leaves with nothing done, and the thread goes on as it was.

extern crate std;
use super::handler::{emit, Handler};
use crate::context::addresses::AppPc;
use crate::context::numbers::ExitId;
use crate::context::ThreadContext;
use crate::cpu::instrument::captures::native::{
    place_asked, run_made, went_on, Machine, Ring, Run, MISSED, RETURN_PC, RING_BYTES,
};
use crate::cpu::thread_pointer;
use crate::instrument::captures::form::samples::operation;
use crate::instrument::captures::form::{Form, Kind, Operation};
use crate::instrument::captures::open_calls::{CallHead, OpenCalls, RETURN_ADDRESS_BYTES, TICK_NS};
use crate::instrument::captures::places::Outlets;
use crate::instrument::captures::places::Place;
use crate::protocol::{capture_action, capture_context, capture_operation as op, CapturePlace, CaptureRecord};
use core::sync::atomic::Ordering;

/// Runs a place's handler, as a thread that has come there; `set_up` sees its context, and its open calls, before.
pub fn run_handler(
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
pub const RDI: u64 = 7;

pub fn register(number: u64) -> Operation {
    operation(op::REGISTER, Kind::U64, 0, 0, number)
}

fn asked(action: u32, call_kind: u32) -> CapturePlace {
    // SAFETY: all zeros are a place.
    CapturePlace { action, call_kind, ..unsafe { core::mem::zeroed() } }
}

pub fn form(operations: &[Operation], fields: &[u16], condition: Option<u16>) -> Form {
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
pub fn assert_same(run: &Run, before: &Machine) -> u64 {
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
