//! Emitted captures do what the schema says, and leave the program's state alone.

extern crate alloc;
extern crate std;
use super::native::{place_of, run, Machine, Ring, Run, Value, CLOCK, RING_BYTES};
use crate::cache::slab::HOT_ROOM_BYTES;
use crate::context::capture::UNPREPARED;
use crate::instrument::captures::form::samples::operation;
use crate::instrument::captures::form::{Form, Kind, Operation};
use crate::instrument::captures::places::Place;
use crate::protocol::{
    capture_action, capture_operation as op, capture_type, record_kind, CaptureRecord, ContinuationRecord,
    MAX_CAPTURE_FIELDS, MAX_CAPTURE_VALUES,
};
use core::sync::atomic::Ordering;
use std::sync::Arc;
use std::vec::Vec;

const I8: Kind = Kind(capture_type::I8);
const U16: Kind = Kind(capture_type::U16);

fn form(operations: &[Operation], condition: Option<u16>) -> Form {
    let fields = (0..operations.len() as u16).collect();
    Form { operations: operations.to_vec(), fields, condition, data: b"needle".to_vec() }
}

fn run_one(operations: &[Operation], condition: Option<u16>) -> Run {
    run(&place_of(&[(capture_action::RECORD, form(operations, condition))]), &Machine::sample(), |_| {})
}

/// The value of the last operation.
fn last(operations: &[Operation]) -> Value {
    run_one(operations, None).values[0].pop().unwrap()
}

fn constant(kind: Kind, bits: u64) -> Operation {
    operation(op::CONSTANT, kind, 0, 0, bits)
}

/// What an operation makes of two constants.
fn of_two(code: u8, kind: Kind, a: u64, b: u64) -> Value {
    last(&[constant(kind, a), constant(kind, b), operation(code, kind, 0, 1, 0)])
}

#[test]
fn the_programs_state_is_as_it_was() {
    let operations = [
        operation(op::REGISTER, Kind::U64, 0, 0, 2),
        operation(op::CONVERT, Kind::F64, 0, 0, u64::from(Kind::U64.0)),
        operation(op::DIVIDE, Kind::F64, 1, 1, 0),
        operation(op::REGISTER, Kind::U64, 0, 0, 17),
        operation(op::DIVIDE, Kind::U64, 0, 3, 0),
        operation(op::LOAD, Kind::U64, 0, 0, 0),
        constant(Kind::I32, 0),
    ];
    for (condition, has_left) in [(None, 1), (Some(6), 0)] {
        let mut machine = Machine::sample();
        let run = run(&place_of(&[(capture_action::RECORD, form(&operations, condition))]), &machine, |_| {});
        assert_eq!((run.outcome, run.machine.has_left), (has_left, has_left));
        machine.has_left = has_left;
        machine.general[4] = run.machine.general[4];
        machine.flags |= 0x202;
        assert_eq!(run.machine, machine);
    }
}

#[test]
fn registers_are_the_programs() {
    let machine = Machine::sample();
    let numbers = (0..18).filter(|number| *number != 4);
    let operations: Vec<Operation> =
        numbers.clone().map(|number| operation(op::REGISTER, Kind::U64, 0, 0, number)).collect();
    let run = run_one(&operations, None);
    for (value, number) in run.values[0].iter().zip(numbers) {
        let expected = match number {
            16 => 0x1000,
            17 => machine.flags | 0x202,
            _ => machine.general[number as usize],
        };
        assert_eq!(*value, Value::Number(expected), "register {number}");
    }
    let vector = |number| operation(op::VECTOR, Kind::F64, 0, 0, number);
    for with_floats in [false, true] {
        let mut operations = [vector(0), vector(1), vector(3), vector(20)].to_vec();
        operations.extend(with_floats.then(|| operation(op::ADD, Kind::F64, 0, 1, 0)));
        let values = run_one(&operations, None).values.remove(0);
        let expected = [0, 1, 3].map(|number: usize| Value::Number(machine.vectors[number]));
        assert_eq!((&values[..3], &values[3]), (&expected[..], &Value::Missing));
    }
}

#[test]
fn integers_are_computed_as_their_type_has_it() {
    let number = |value: i64| Value::Number(value.cast_unsigned());
    assert_eq!(of_two(op::ADD, Kind::I32, 0x7fff_ffff, 1), number(-0x8000_0000));
    assert_eq!(of_two(op::ADD, Kind::U32, 0xffff_ffff, 1), number(0));
    assert_eq!(of_two(op::MULTIPLY, Kind::I64, u64::MAX, 5), number(-5));
    assert_eq!(
        of_two(op::DIVIDE, Kind::I64, 1 << 63, u64::MAX),
        number(i64::MIN),
        "which the processor has no result for"
    );
    assert_eq!(of_two(op::REMAINDER, Kind::I64, 1 << 63, u64::MAX), number(0));
    assert_eq!(of_two(op::DIVIDE, Kind::I32, 7u64.wrapping_neg(), 2), number(-3));
    assert_eq!(of_two(op::REMAINDER, Kind::I32, 7u64.wrapping_neg(), 2), number(-1));
    assert_eq!(of_two(op::DIVIDE, Kind::U64, u64::MAX, 2), number(i64::MAX));
    assert_eq!(of_two(op::DIVIDE, Kind::U64, 1, 0), Value::Missing);
    assert_eq!(of_two(op::SHIFT_RIGHT, Kind::I32, 8u64.wrapping_neg(), 33), number(-4));
    assert_eq!(of_two(op::SHIFT_RIGHT, Kind::U32, 8u64.wrapping_neg(), 1), number(0x7fff_fffc));
    assert_eq!(of_two(op::SHIFT_LEFT, Kind::U32, 1, 31), number(0x8000_0000));
    assert_eq!(of_two(op::LESS, Kind::I64, u64::MAX, 1), number(1));
    assert_eq!(of_two(op::LESS, Kind::U64, u64::MAX, 1), number(0));
    assert_eq!(of_two(op::LESS_EQUAL, Kind::U64, 1, 1), number(1));
    let convert = |from: Kind, bits: u64, to: Kind| {
        last(&[constant(from, bits), operation(op::CONVERT, to, 0, 0, u64::from(from.0))])
    };
    assert_eq!(convert(Kind::I32, 0x1ff, I8), number(-1));
    assert_eq!(convert(I8, 0xff, U16), number(0xffff));
    assert_eq!(last(&[constant(Kind::I32, 1), operation(op::NEGATE, Kind::I32, 0, 0, 0)]), number(-1));
    assert_eq!(last(&[constant(Kind::U32, 1), operation(op::COMPLEMENT, Kind::U32, 0, 0, 0)]), number(0xffff_fffe));
}

#[test]
fn floating_point_numbers_are_computed_to_the_nearest() {
    let double = |value: f64| value.to_bits();
    let single = |value: f32| u64::from(value.to_bits());
    assert_eq!(of_two(op::DIVIDE, Kind::F64, double(1.0), double(3.0)), Value::Number(double(1.0 / 3.0)));
    assert_eq!(of_two(op::DIVIDE, Kind::F64, double(-1.0), double(0.0)), Value::Number(double(f64::NEG_INFINITY)));
    assert_eq!(of_two(op::MULTIPLY, Kind::F32, single(0.1), single(3.0)), Value::Number(single(0.1 * 3.0)));
    for (code, ordered, unordered) in
        [(op::EQUAL, 0, 0), (op::NOT_EQUAL, 1, 1), (op::LESS, 1, 0), (op::LESS_EQUAL, 1, 0)]
    {
        assert_eq!(of_two(code, Kind::F64, double(1.0), double(2.0)), Value::Number(ordered));
        assert_eq!(of_two(code, Kind::F64, double(1.0), double(f64::NAN)), Value::Number(unordered));
        assert_eq!(of_two(code, Kind::F32, single(f32::NAN), single(2.0)), Value::Number(unordered));
    }
    let convert = |from: Kind, bits: u64, to: Kind| {
        last(&[constant(from, bits), operation(op::CONVERT, to, 0, 0, u64::from(from.0))])
    };
    for value in [0, 1, u64::MAX, 1 << 63, (1 << 63) | 1, 0xffff_ffff_ffff_fbff, 0xffff_ffff_ffff_fc00] {
        assert_eq!(convert(Kind::U64, value, Kind::F64), Value::Number(double(value as f64)), "{value}");
        assert_eq!(convert(Kind::U64, value, Kind::F32), Value::Number(single(value as f32)), "{value}");
        let signed = value.cast_signed();
        assert_eq!(convert(Kind::I64, value, Kind::F32), Value::Number(single(signed as f32)), "{value}");
    }
    assert_eq!(convert(Kind::F64, double(-2.9), Kind::I32), Value::Number(2u64.wrapping_neg()));
    assert_eq!(convert(Kind::F64, double(1e30), Kind::I64), Value::Number(1 << 63), "no integer is that");
    assert_eq!(convert(Kind::F64, double(0.1), Kind::F32), Value::Number(single(0.1)));
    assert_eq!(
        last(&[constant(Kind::F32, single(2.5)), operation(op::NEGATE, Kind::F32, 0, 0, 0)]),
        Value::Number(single(-2.5))
    );
}

/// Code that reads at an address.
fn reading(code: u8, kind: Kind, address: u64, immediate: u64) -> Value {
    last(&[constant(Kind::U64, address), constant(Kind::U64, 5), operation(code, kind, 0, 1, immediate)])
}

#[test]
fn memory_is_read_or_missing() {
    let memory = *b"\xfe\xff\xffneedles\0in hay";
    let start = memory.as_ptr() as u64;
    assert_eq!(reading(op::LOAD, I8, start, 0), Value::Number(2u64.wrapping_neg()));
    assert_eq!(reading(op::LOAD, Kind::U32, start, 0), Value::Number(0x6eff_fffe));
    assert_eq!(reading(op::STRING, Kind::TEXT, start + 3, 100), Value::Bytes(b"needles".to_vec()));
    assert_eq!(reading(op::STRING, Kind::TEXT, start + 3, 6), Value::Bytes(b"needle".to_vec()));
    assert_eq!(reading(op::STRING, Kind::TEXT, start + 10, 6), Value::Bytes(Vec::new()));
    assert_eq!(reading(op::BYTES, Kind::TEXT, start, 100), Value::Bytes(memory[..5].to_vec()));
    assert_eq!(reading(op::BYTES, Kind::TEXT, start, 2), Value::Bytes(memory[..2].to_vec()));
    for (code, kind) in
        [(op::LOAD, Kind::U64), (op::STRING, Kind::TEXT), (op::BYTES, Kind::TEXT), (op::WORDS, Kind::TEXT)]
    {
        assert_eq!(reading(code, kind, 8, 96), Value::Missing);
        assert_eq!(reading(code, kind, 1 << 62, 96), Value::Missing, "which no address is");
    }
}

#[test]
fn words_end_with_one_that_is_zero() {
    // Words of which each has a byte that is zero, at an odd address.
    let mut memory = [0u8; 41];
    for word in 0..3 {
        memory[1 + 8 * word] = 0xff;
        memory[8 * word + 8] = 1;
    }
    let words = |limit| reading(op::WORDS, Kind::TEXT, memory.as_ptr() as u64 + 1, limit);
    assert_eq!(words(64), Value::Bytes(memory[1..25].to_vec()));
    assert_eq!(words(24), Value::Bytes(memory[1..25].to_vec()));
    assert_eq!(words(16), Value::Bytes(memory[1..17].to_vec()));
    assert_eq!(reading(op::WORDS, Kind::TEXT, memory.as_ptr() as u64 + 25, 64), Value::Bytes(Vec::new()));
}

#[test]
fn bytes_are_compared() {
    let memory = *b"needle\0needles\0";
    let start = memory.as_ptr() as u64;
    let equal = |a: Operation, b: Operation| {
        let operations = [constant(Kind::U64, start), constant(Kind::U64, start + 7), constant(Kind::U64, 8), a, b];
        let mut operations = operations.to_vec();
        operations.push(operation(op::TEXT_EQUAL, Kind::TEXT, 3, 4, 0));
        last(&operations)
    };
    let string = |operand, limit| operation(op::STRING, Kind::TEXT, operand, 0, limit);
    let literal = |start: u64, size: u64| operation(op::LITERAL, Kind::TEXT, 0, 0, size << 32 | start);
    let (yes, no) = (Value::Number(1), Value::Number(0));
    assert_eq!(equal(string(0, 64), literal(0, 6)), yes);
    assert_eq!(equal(literal(0, 6), string(0, 64)), yes);
    assert_eq!(equal(string(1, 64), literal(0, 6)), no);
    assert_eq!(equal(string(1, 6), literal(0, 6)), yes);
    assert_eq!(equal(string(0, 64), literal(0, 5)), no);
    assert_eq!(equal(string(0, 64), string(1, 64)), no);
    assert_eq!(equal(string(0, 64), string(1, 6)), yes);
    assert_eq!(equal(string(2, 64), literal(0, 6)), Value::Missing);
    assert_eq!(equal(literal(0, 2), literal(2, 2)), no);
    assert_eq!(equal(literal(1, 1), literal(2, 1)), yes);
}

#[test]
fn what_is_not_asked_for_is_not_missing() {
    let missing = [constant(Kind::U64, 8), operation(op::LOAD, Kind::I32, 0, 0, 0)];
    let logic = |code: u8, left: Operation, right: u16| {
        let mut operations = missing.to_vec();
        operations.extend([left, operation(code, Kind::I32, 2, right, 0)]);
        last(&operations)
    };
    let (zero, two) = (constant(Kind::I32, 0), constant(Kind::I32, 2));
    assert_eq!(logic(op::LOGICAL_AND, zero, 1), Value::Number(0));
    assert_eq!(logic(op::LOGICAL_AND, two, 1), Value::Missing);
    assert_eq!(logic(op::LOGICAL_AND, two, 2), Value::Number(1));
    assert_eq!(logic(op::LOGICAL_OR, two, 1), Value::Number(1));
    assert_eq!(logic(op::LOGICAL_OR, zero, 1), Value::Missing);
    assert_eq!(logic(op::LOGICAL_OR, zero, 2), Value::Number(0));
    let left_missing = [missing[0], missing[1], two, operation(op::LOGICAL_OR, Kind::I32, 1, 2, 0)];
    assert_eq!(last(&left_missing), Value::Missing);
}

#[test]
fn each_condition_decides_for_itself() {
    let of = |value: u64| form(&[constant(Kind::I32, value)], Some(0));
    let missing = form(&[constant(Kind::U64, 8), operation(op::LOAD, Kind::I32, 0, 0, 0)], Some(1));
    let forms = [of(1), of(0), missing, of(2u64.wrapping_neg()), form(&[], None)];
    let run = run(&place_of(&forms.map(|form| (capture_action::STOP, form))), &Machine::sample(), |_| {});
    assert_eq!((run.outcome, run.machine.has_left), (0b11001, 1));
}

#[test]
fn where_faults_are_blocked_the_dispatcher_is_asked_first() {
    let reads = [constant(Kind::U64, 8), operation(op::LOAD, Kind::I32, 0, 0, 0)];
    let place = place_of(&[(capture_action::RECORD, form(&reads, Some(1)))]);
    let blocked = run(&place, &Machine::sample(), |context| context.signals.blocks_faults = 1);
    assert_eq!((blocked.outcome, blocked.machine.has_left), (UNPREPARED, 1));
    let prepared = run(&place, &Machine::sample(), |context| {
        (context.signals.blocks_faults, context.capture.is_prepared) = (1, 1);
    });
    assert_eq!((prepared.outcome, prepared.machine.has_left), (0, 1), "it leaves in any case");
    let reads_nothing = place_of(&[(capture_action::RECORD, form(&reads[..1], None))]);
    assert_eq!(run(&reads_nothing, &Machine::sample(), |context| context.signals.blocks_faults = 1).outcome, 1);
}

#[test]
fn a_places_longest_code_leaves_room_for_a_block() {
    let longest = [
        operation(op::CONVERT, Kind::F64, 0, 0, u64::from(Kind::U64.0)),
        operation(op::LOAD, Kind::U64, 0, 0, 0),
        operation(op::REMAINDER, Kind::I64, 1, 1, 0),
        operation(op::BYTES, Kind::TEXT, 0, 0, 1),
    ];
    for one in longest {
        let mut operations = [constant(Kind::U64, 1), constant(Kind::I64, 1)].to_vec();
        operations.resize(MAX_CAPTURE_FIELDS as usize, one);
        let one_form = (capture_action::RECORD, form(&operations, None));
        let place = place_of(&alloc::vec![one_form; (MAX_CAPTURE_VALUES / MAX_CAPTURE_FIELDS) as usize]);
        let bytes = run(&place, &Machine::sample(), |_| {}).code_bytes as u64;
        assert!(bytes < HOT_ROOM_BYTES / 2, "{one:?}: {bytes} bytes");
    }
}

#[test]
fn the_thread_pointer_is_the_threads() {
    use crate::protocol::capture_context::THREAD_POINTER;
    let operations = [operation(op::CONTEXT, Kind::U64, 0, 0, u64::from(THREAD_POINTER))];
    assert_eq!(last(&operations), Value::Number(crate::cpu::thread_pointer()));
}

#[test]
fn a_vector_register_may_hold_a_single() {
    let of = |kind| last(&[operation(op::VECTOR, kind, 0, 0, 3)]);
    let (Value::Number(whole), Value::Number(single)) = (of(Kind::F64), of(Kind::F32)) else {
        panic!("both are there");
    };
    assert_eq!(single, whole & 0xffff_ffff);
}

/// A place with six numbers, the second of which is missing, of number 1; and one of number 0 whose condition does not hold.
fn place_of_records() -> Arc<Place> {
    let mut operations: Vec<Operation> = (0..6).map(|n| constant(Kind::U64, 0x1111_1111_1111_1111 * (n + 1))).collect();
    operations[0] = constant(Kind::U64, 8);
    operations[1] = operation(op::LOAD, Kind::U64, 0, 0, 0);
    let fields = Form { operations, fields: [0, 1, 2, 3, 4, 5].to_vec(), ..Form::default() };
    let not = form(&[constant(Kind::I32, 0)], Some(0));
    place_of(&[(capture_action::RECORD, not), (capture_action::RECORD, fields)])
}

#[test]
fn numbers_are_written_into_the_ring() {
    for head in [0, 3 * u64::from(RING_BYTES) - 64] {
        let mut ring = Ring::new(head);
        let run = run(&place_of_records(), &Machine::sample(), |context| {
            context.tid = 77;
            ring.lend(context);
        });
        assert_eq!((run.machine.has_left, ring.slot.ring_head), (0, head + 128));
        // SAFETY: any bytes are records.
        let (record, part) = unsafe { (ring.read::<CaptureRecord>(head), ring.read::<ContinuationRecord>(head + 64)) };
        assert_eq!((record.kind, record.continuations, record.tid), (record_kind::CAPTURE, 1, 77));
        assert_eq!((record.pc, record.number, record.missing), (0x1000, 1, 0b10));
        assert_eq!((record.values[0], record.values[2], record.values[3]), (8, u64::MAX / 5, u64::MAX / 15 * 4));
        assert!(record.tsc > 0);
        assert_eq!((part.kind, part.index), (record_kind::CONTINUATION, 0));
        assert_eq!(part.payload[..8], [0x55; 8]);
        assert_eq!(part.payload[8..16], [0x66; 8]);
        let sample = Machine::sample();
        assert_eq!(
            (run.machine.general[..3].to_vec(), run.machine.flags & 0x8d5),
            (sample.general[..3].to_vec(), 0x895)
        );
    }
}

#[test]
fn words_may_lie_in_two_continuations() {
    let operations: Vec<Operation> = (0..20).map(|n| constant(Kind::U64, 0x0101_0101_0101_0101 * (n + 1))).collect();
    let form = Form { operations, fields: (0..20).collect(), ..Form::default() };
    let mut ring = Ring::new(0);
    let run = run(&place_of(&[(capture_action::RECORD, form)]), &Machine::sample(), |context| ring.lend(context));
    assert_eq!((run.machine.has_left, ring.slot.ring_head), (0, 64 * 4));
    // SAFETY: any bytes are records.
    let payload: Vec<u8> =
        (1..4).flat_map(|n| unsafe { ring.read::<ContinuationRecord>(64 * n) }.payload[..].to_vec()).collect();
    let expected: Vec<u8> = (5..=20).flat_map(|n| [n; 8]).collect();
    assert_eq!(payload[..128], expected);
}

#[test]
fn who_can_not_write_leaves() {
    let leaves = |ring: &mut Ring| {
        let before = ring.slot.ring_head;
        let run = run(&place_of_records(), &Machine::sample(), |context| ring.lend(context));
        assert_eq!(ring.slot.ring_head == before, run.machine.has_left == 1);
        assert_eq!(run.outcome, 0b10);
        run.machine.has_left == 1
    };
    let mut full = Ring::new(0);
    full.slot.ring_head = u64::from(RING_BYTES) - 64;
    // Three records may be written, one fits.
    assert!(leaves(&mut full));
    full.slot.ring_tail = 128;
    assert!(!leaves(&mut full));
    let mut ring = Ring::new(0);
    let late = run(&place_of_records(), &Machine::sample(), |context| {
        ring.lend(context);
        CLOCK.fetch_sub(1 << 26, Ordering::Relaxed);
    });
    assert_eq!((late.machine.has_left, ring.slot.ring_head), (1, 0), "the dispatcher keeps the clock");
    let stops = place_of(&[(capture_action::STOP, form(&[], None)), (capture_action::RECORD, form(&[], None))]);
    let mut ring = Ring::new(0);
    let run = run(&stops, &Machine::sample(), |context| ring.lend(context));
    assert_eq!((run.machine.has_left, run.outcome, ring.slot.ring_head), (1, 0b11, 0));
}
