//! What a capture comes to where no code is emitted for it: at system calls, whose thread is in the dispatcher anyway.
//!
//! Pure, but for what it asks of the place. It does what emitted code does (cpu::instrument::captures), except that it knows no
//! floating-point numbers: these are missing.

extern crate alloc;
use super::form::{Kind, Operation};
use super::globs;
use super::layout::{Program, MAX_PLAIN};
use crate::protocol::capture_operation as op;
use alloc::vec::Vec;
use core::mem::MaybeUninit;

/// A value of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    Missing,
    /// Widened as its type has it.
    Number(u64),
    Bytes(Vec<u8>),
}

/// What is asked of the place where something is captured.
pub trait Asked {
    /// A general register, as forms number them.
    fn register(&self, number: u64) -> Option<u64>;
    /// Reads the program's memory; how many bytes of it could be read.
    fn read(&self, address: u64, target: &mut [u8]) -> usize;
    /// What is known of the thread (CaptureContext).
    fn context(&self, what: u8) -> Value;
    /// Where a descriptor of the process leads to, so many bytes of it at most.
    fn descriptor_path(&self, descriptor: i32, limit: usize) -> Value;
    /// A field that was kept when the call began.
    fn kept(&self, field: usize, is_text: bool) -> Value;
    /// The calls that are open, so many frames at most.
    fn backtrace(&self, _n_frames: usize) -> Value {
        Value::Missing
    }
}

/// Works a capture out, and gives the values of its fields; or none, if its condition does not hold: whether it does.
pub fn evaluate(program: &Program, asked: &impl Asked, mut take: impl FnMut(usize, &Value)) -> bool {
    if program.is_plain {
        return evaluate_plain(program, asked, |index, number| match number {
            Some(number) => take(index, &Value::Number(number)),
            None => take(index, &Value::Missing),
        });
    }
    let mut values = alloc::vec![Value::Missing; program.form.operations.len()];
    for (index, one) in program.wanted() {
        values[index] = evaluate_one(program, one, &values, asked);
    }
    if let Some(Value::Missing | Value::Number(0)) = program.form.condition.map(|at| &values[usize::from(at)]) {
        return false;
    }
    program.form.fields.iter().enumerate().for_each(|(index, field)| take(index, &values[usize::from(*field)]));
    true
}

/// The same of a capture that is plain: most are, and are worked out at every call.
fn evaluate_plain(program: &Program, asked: &impl Asked, mut take: impl FnMut(usize, Option<u64>)) -> bool {
    let mut numbers = Numbers { values: [const { MaybeUninit::uninit() }; MAX_PLAIN], known: 0 };
    for (index, one) in program.wanted() {
        let number = match one.code {
            op::CONTEXT => number_of(asked.context(one.immediate as u8)),
            op::KEPT => number_of(asked.kept(one.kept().0, false)),
            _ => of_numbers(one, numbers.get(one.a), numbers.get(one.b), asked),
        };
        if let Some(number) = number {
            numbers.set(index, number);
        }
    }
    if let Some(None | Some(0)) = program.form.condition.map(|at| numbers.get(at)) {
        return false;
    }
    program.form.fields.iter().enumerate().for_each(|(index, field)| take(index, numbers.get(*field)));
    true
}

fn number_of(value: Value) -> Option<u64> {
    match value {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

/// What operations came to, as far as they came to anything.
struct Numbers {
    values: [MaybeUninit<u64>; MAX_PLAIN],
    /// A bit for each value that is there.
    known: u32,
}

impl Numbers {
    fn get(&self, index: u16) -> Option<u64> {
        let is_known = self.known.unbounded_shr(index.into()) & 1 != 0;
        // SAFETY: the bit says that it was written.
        is_known.then(|| unsafe { self.values[usize::from(index)].assume_init() })
    }

    fn set(&mut self, index: usize, value: u64) {
        self.values[index].write(value);
        self.known |= 1 << index;
    }
}

fn evaluate_one(program: &Program, one: &Operation, values: &[Value], asked: &impl Asked) -> Value {
    let number = |index: u16| match values[usize::from(index)] {
        Value::Number(value) => Some(value),
        _ => None,
    };
    if one.kind.is_float() && one.code != op::KEPT {
        return Value::Missing;
    }
    match one.code {
        op::CONTEXT => asked.context(one.immediate as u8),
        op::KEPT => asked.kept(one.kept().0, one.kind == Kind::TEXT),
        op::BACKTRACE => asked.backtrace(one.immediate as usize),
        op::LITERAL => {
            let (start, size) = one.literal();
            Value::Bytes(program.form.data[start..start + size].to_vec())
        }
        op::STRING => number(one.a).map_or(Value::Missing, |address| string(asked, address, one.immediate as usize)),
        op::WORDS => number(one.a).map_or(Value::Missing, |address| words(asked, address, one.immediate as usize)),
        op::BYTES => match (number(one.a), number(one.b)) {
            (Some(address), Some(size)) => bytes(asked, address, size.min(one.immediate) as usize),
            _ => Value::Missing,
        },
        op::TEXT_EQUAL => match (&values[usize::from(one.a)], &values[usize::from(one.b)]) {
            (Value::Bytes(a), Value::Bytes(b)) => Value::Number(u64::from(a == b)),
            _ => Value::Missing,
        },
        op::TEXT_MATCH => match (&values[usize::from(one.a)], &values[usize::from(one.b)]) {
            (Value::Bytes(text), Value::Bytes(pattern)) => Value::Number(u64::from(globs::matches(text, pattern))),
            _ => Value::Missing,
        },
        op::DESCRIPTOR_PATH => {
            let limit = one.immediate as usize;
            number(one.a).map_or(Value::Missing, |descriptor| asked.descriptor_path(descriptor as i32, limit))
        }
        _ => of_numbers(one, number(one.a), number(one.b), asked).map_or(Value::Missing, Value::Number),
    }
}

/// What an operation makes of the numbers that its operands are, as far as it has some and they are there.
fn of_numbers(one: &Operation, a: Option<u64>, b: Option<u64>, asked: &impl Asked) -> Option<u64> {
    match one.code {
        op::CONSTANT => return Some(one.kind.widen(one.immediate)),
        op::REGISTER => return asked.register(one.immediate),
        op::VECTOR => return None,
        op::LOGICAL_AND if a? == 0 => return Some(0),
        op::LOGICAL_OR if a? != 0 => return Some(1),
        _ => {}
    }
    let a = a?;
    match one.code {
        op::LOAD => return load(asked, a, one.kind),
        // What is converted is widened already, or is a floating-point number, which is missing.
        op::CONVERT => return Some(one.kind.widen(a)),
        op::NEGATE => return Some(one.kind.widen(a.wrapping_neg())),
        op::COMPLEMENT => return Some(one.kind.widen(!a)),
        op::LOGICAL_NOT => return Some(u64::from(a == 0)),
        _ => {}
    }
    let b = b?;
    let (signed_a, signed_b) = (a.cast_signed(), b.cast_signed());
    let is_signed = one.kind.is_signed();
    let count = (b & u64::from(8 * one.kind.size_bytes() - 1)) as u32;
    Some(match one.code {
        op::LOGICAL_AND | op::LOGICAL_OR => u64::from(b != 0),
        op::EQUAL => u64::from(a == b),
        op::NOT_EQUAL => u64::from(a != b),
        op::LESS => u64::from(if is_signed { signed_a < signed_b } else { a < b }),
        op::LESS_EQUAL => u64::from(if is_signed { signed_a <= signed_b } else { a <= b }),
        op::ADD => one.kind.widen(a.wrapping_add(b)),
        op::SUBTRACT => one.kind.widen(a.wrapping_sub(b)),
        op::MULTIPLY => one.kind.widen(a.wrapping_mul(b)),
        op::BIT_AND => one.kind.widen(a & b),
        op::BIT_OR => one.kind.widen(a | b),
        op::BIT_XOR => one.kind.widen(a ^ b),
        op::SHIFT_LEFT => one.kind.widen(a << count),
        op::SHIFT_RIGHT if is_signed => (signed_a >> count).cast_unsigned(),
        op::SHIFT_RIGHT => a >> count,
        op::DIVIDE | op::REMAINDER if b == 0 => return None,
        op::DIVIDE if is_signed => one.kind.widen(signed_a.wrapping_div(signed_b).cast_unsigned()),
        op::DIVIDE => a / b,
        op::REMAINDER if is_signed => one.kind.widen(signed_a.wrapping_rem(signed_b).cast_unsigned()),
        op::REMAINDER => a % b,
        _ => return None,
    })
}

fn load(asked: &impl Asked, address: u64, kind: Kind) -> Option<u64> {
    let mut word = [0; 8];
    let size = kind.size_bytes() as usize;
    (asked.read(address, &mut word[..size]) == size).then(|| kind.widen(u64::from_le_bytes(word)))
}

/// The bytes up to a zero byte, so many at most; missing where memory ends before either.
fn string(asked: &impl Asked, address: u64, limit: usize) -> Value {
    const STEP: usize = 64;
    let mut text = Vec::new();
    while text.len() < limit {
        let start = text.len();
        let step = (limit - start).min(STEP);
        text.resize(start + step, 0);
        let n_read = asked.read(address.wrapping_add(start as u64), &mut text[start..]);
        if let Some(end) = text[start..start + n_read].iter().position(|byte| *byte == 0) {
            text.truncate(start + end);
            return Value::Bytes(text);
        }
        if n_read < step {
            return Value::Missing;
        }
    }
    Value::Bytes(text)
}

fn words(asked: &impl Asked, address: u64, limit: usize) -> Value {
    let mut found = Vec::new();
    while found.len() < limit {
        let mut word = [0; 8];
        if asked.read(address.wrapping_add(found.len() as u64), &mut word) < word.len() {
            return Value::Missing;
        }
        if word == [0; 8] {
            break;
        }
        found.extend(word);
    }
    Value::Bytes(found)
}

fn bytes(asked: &impl Asked, address: u64, size: usize) -> Value {
    let mut text = alloc::vec![0; size];
    if asked.read(address, &mut text) == size {
        Value::Bytes(text)
    } else {
        Value::Missing
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::samples::operation;
    use super::super::form::Form;
    use super::super::layout::Room;
    use super::*;
    use crate::protocol::{capture_action, CapturePlace};

    const MEMORY: &[u8] = b"\xfe\xff\xff\xff text\0 and an end";
    const START: u64 = 0x1000;

    struct Made;

    impl Asked for Made {
        fn register(&self, number: u64) -> Option<u64> {
            (number < 16).then_some(START + number)
        }

        fn read(&self, address: u64, target: &mut [u8]) -> usize {
            let Some(rest) = address.checked_sub(START).and_then(|at| MEMORY.get(at as usize..)) else { return 0 };
            let size = rest.len().min(target.len());
            target[..size].copy_from_slice(&rest[..size]);
            size
        }

        fn context(&self, what: u8) -> Value {
            if what == 0 {
                Value::Number(7)
            } else {
                Value::Missing
            }
        }

        fn descriptor_path(&self, descriptor: i32, limit: usize) -> Value {
            let path = b"/etc/passwd";
            if descriptor == 3 {
                Value::Bytes(path[..limit.min(path.len())].to_vec())
            } else {
                Value::Missing
            }
        }

        fn kept(&self, field: usize, is_text: bool) -> Value {
            if is_text {
                Value::Bytes(b"kept".to_vec())
            } else {
                Value::Number(field as u64)
            }
        }
    }

    fn of(operations: &[Operation], condition: Option<u16>, data: &[u8]) -> Option<Vec<Value>> {
        let fields = (0..operations.len() as u16).collect();
        let form = Form { operations: operations.to_vec(), fields, condition, data: data.to_vec() };
        // SAFETY: all zeros are one.
        let asked = CapturePlace { action: capture_action::RECORD, ..unsafe { core::mem::zeroed() } };
        let (program, mut found) = (Program::lay_out(&asked, form, &mut Room::default()).unwrap(), Vec::new());
        evaluate(&program, &Made, |_, value| found.push(value.clone())).then_some(found)
    }

    fn last(operations: &[Operation]) -> Value {
        of(operations, None, b"text").unwrap().pop().unwrap()
    }

    fn of_two(code: u8, kind: Kind, a: i64, b: i64) -> Value {
        let constant = |value: i64| operation(op::CONSTANT, kind, 0, 0, value.cast_unsigned());
        last(&[constant(a), constant(b), operation(code, kind, 0, 1, 0)])
    }

    fn number(value: i64) -> Value {
        Value::Number(value.cast_unsigned())
    }

    #[test]
    fn numbers_are_what_emitted_code_makes_of_them() {
        assert_eq!(of_two(op::ADD, Kind::I32, 0x7fff_ffff, 1), number(-0x8000_0000));
        assert_eq!(of_two(op::ADD, Kind::U32, 0xffff_ffff, 1), number(0));
        assert_eq!(of_two(op::DIVIDE, Kind::I64, i64::MIN, -1), number(i64::MIN));
        assert_eq!(of_two(op::REMAINDER, Kind::I64, i64::MIN, -1), number(0));
        assert_eq!(of_two(op::DIVIDE, Kind::I32, -7, 2), number(-3));
        assert_eq!(of_two(op::DIVIDE, Kind::U64, 1, 0), Value::Missing);
        assert_eq!(of_two(op::SHIFT_RIGHT, Kind::I32, -8, 33), number(-4));
        assert_eq!(of_two(op::SHIFT_LEFT, Kind::U32, 1, 31), number(0x8000_0000));
        assert_eq!(of_two(op::LESS, Kind::I64, -1, 1), number(1));
        assert_eq!(of_two(op::LESS, Kind::U64, -1, 1), number(0));
        assert_eq!(of_two(op::ADD, Kind::F64, 1, 1), Value::Missing);
    }

    #[test]
    fn memory_is_read_as_far_as_it_goes() {
        let at = |offset: u64| operation(op::CONSTANT, Kind::U64, 0, 0, START + offset);
        assert_eq!(last(&[at(0), operation(op::LOAD, Kind::I32, 0, 0, 0)]), number(-2));
        assert_eq!(last(&[at(5), operation(op::STRING, Kind::TEXT, 0, 0, 100)]), Value::Bytes(b"text".to_vec()));
        assert_eq!(last(&[at(5), operation(op::STRING, Kind::TEXT, 0, 0, 2)]), Value::Bytes(b"te".to_vec()));
        assert_eq!(last(&[at(11), operation(op::STRING, Kind::TEXT, 0, 0, 100)]), Value::Missing);
        let size = |size: u64| operation(op::CONSTANT, Kind::U64, 0, 0, size);
        let taken = |n| last(&[at(5), size(n), operation(op::BYTES, Kind::TEXT, 0, 1, 50)]);
        assert_eq!((taken(4), taken(60)), (Value::Bytes(b"text".to_vec()), Value::Missing));
    }

    /// The same of a form that only the dispatcher works out: it has fields of an injection, and one operation as its condition.
    fn holds(operations: &[Operation], condition: u16, data: &[u8]) -> bool {
        let zero = operations.len() as u16;
        let mut operations = operations.to_vec();
        operations.push(operation(op::CONSTANT, Kind::U64, 0, 0, 0));
        let fields = [zero; super::super::injections::N_FIELDS].to_vec();
        let form = Form { operations, fields, condition: Some(condition), data: data.to_vec() };
        // SAFETY: all zeros are one.
        let asked = CapturePlace { action: capture_action::INJECT, ..unsafe { core::mem::zeroed() } };
        let program = Program::lay_out(&asked, form, &mut Room::default()).unwrap();
        evaluate(&program, &Made, |_, _| {})
    }

    #[test]
    fn patterns_and_descriptors_are_for_injections() {
        let of_path = |descriptor: u64, limit: u64, size: u64| {
            let operations = [
                operation(op::CONSTANT, Kind::I32, 0, 0, descriptor),
                operation(op::DESCRIPTOR_PATH, Kind::TEXT, 0, 0, limit),
                operation(op::LITERAL, Kind::TEXT, 0, 0, size << 32),
                operation(op::TEXT_MATCH, Kind::TEXT, 1, 2, 0),
            ];
            holds(&operations, 3, b"/etc/*wd")
        };
        assert!(of_path(3, 100, 8) && of_path(3, 5, 6) && !of_path(3, 5, 5 - 1) && !of_path(3, 6, 8));
        assert!(!of_path(4, 100, 8), "there is no such descriptor");
        let emitted = Form {
            operations: [operation(op::LITERAL, Kind::TEXT, 0, 0, 0), operation(op::TEXT_MATCH, Kind::TEXT, 0, 0, 0)]
                .to_vec(),
            fields: [1].to_vec(),
            ..Form::default()
        };
        // SAFETY: as above.
        let asked = CapturePlace { action: capture_action::RECORD, ..unsafe { core::mem::zeroed() } };
        assert!(Program::lay_out(&asked, emitted, &mut Room::default()).is_none());
    }

    #[test]
    fn what_a_condition_decides_is_not_asked_further() {
        let constant = |value| operation(op::CONSTANT, Kind::I32, 0, 0, value);
        let missing = operation(op::LOAD, Kind::I32, 0, 0, 0);
        let address = operation(op::CONSTANT, Kind::U64, 0, 0, 8);
        let and = |a| operation(op::LOGICAL_AND, Kind::I32, a, 1, 0);
        assert_eq!(last(&[address, missing, constant(0), and(2)]), number(0));
        assert_eq!(last(&[address, missing, constant(1), and(2)]), Value::Missing);
        assert!(of(&[constant(0)], Some(0), b"").is_none());
        assert!(of(&[address, missing], Some(1), b"").is_none());
        let equal = [
            operation(op::KEPT, Kind::TEXT, 0, 0, 5 << 32),
            operation(op::LITERAL, Kind::TEXT, 0, 0, 4 << 32),
            operation(op::TEXT_EQUAL, Kind::TEXT, 0, 1, 0),
        ];
        assert_eq!(of(&equal, None, b"kept").unwrap()[2], number(1));
    }
}
