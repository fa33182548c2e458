//! The typed form of a capture: operations without loops or jumps, each of which makes one value of values before it.
//!
//! Pure. What each operation means is in the schema; in the controller src/clew/capture/form.py checks by the same rules. A form comes out of
//! memory that the program can write to, so nothing in it is believed.

extern crate alloc;
use crate::protocol::{
    capture_context, capture_operation as op, capture_type, CaptureForm, CaptureInstruction, MAX_BACKTRACE_FRAMES,
    MAX_CAPTURE_OPERATIONS, MAX_CAPTURE_TEXT, MAX_KEPT_VALUES, NO_CONDITION,
};
use alloc::vec::Vec;

const HEAD_BYTES: usize = size_of::<CaptureForm>();
const OPERATION_BYTES: usize = size_of::<CaptureInstruction>();
/// Numbers of registers end here.
const MAX_REGISTERS: u64 = 64;

/// The type of a value (enum CaptureType).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kind(pub u8);

impl Kind {
    pub const I32: Kind = Kind(capture_type::I32);
    pub const U32: Kind = Kind(capture_type::U32);
    pub const I64: Kind = Kind(capture_type::I64);
    pub const U64: Kind = Kind(capture_type::U64);
    pub const F32: Kind = Kind(capture_type::F32);
    pub const F64: Kind = Kind(capture_type::F64);
    pub const TEXT: Kind = Kind(capture_type::TEXT);

    fn is_known(self) -> bool {
        self.0 <= capture_type::TEXT
    }

    pub fn is_float(self) -> bool {
        self == Kind::F32 || self == Kind::F64
    }

    pub fn is_signed(self) -> bool {
        self.0 <= capture_type::U64 && self.0 & 1 == 0
    }

    /// How a number is kept whose low bits are these: widened to 64.
    pub fn widen(self, bits: u64) -> u64 {
        match self.0 {
            capture_type::I8 => i64::from(bits as i8).cast_unsigned(),
            capture_type::U8 => u64::from(bits as u8),
            capture_type::I16 => i64::from(bits as i16).cast_unsigned(),
            capture_type::U16 => u64::from(bits as u16),
            capture_type::I32 => i64::from(bits as i32).cast_unsigned(),
            capture_type::U32 | capture_type::F32 => u64::from(bits as u32),
            _ => bits,
        }
    }

    /// Bytes of a number.
    pub fn size_bytes(self) -> u32 {
        match self {
            Kind::F32 => 4,
            Kind::F64 => 8,
            Kind(integer) => 1 << (integer / 2),
        }
    }
}

/// One operation: `kind` is the type that it works on, `a` and `b` are numbers of operations before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    pub code: u8,
    pub kind: Kind,
    pub a: u16,
    pub b: u16,
    pub immediate: u64,
}

impl Operation {
    /// The type of its value.
    pub fn result(&self) -> Kind {
        let is_answer = (op::EQUAL..=op::TEXT_EQUAL).contains(&self.code);
        if is_answer || self.code == op::TEXT_MATCH {
            Kind::I32
        } else {
            self.kind
        }
    }

    pub fn n_operands(&self) -> usize {
        match self.code {
            op::CONSTANT | op::REGISTER | op::VECTOR | op::CONTEXT | op::LITERAL | op::KEPT | op::BACKTRACE => 0,
            op::LOAD
            | op::STRING
            | op::WORDS
            | op::CONVERT
            | op::NEGATE
            | op::COMPLEMENT
            | op::LOGICAL_NOT
            | op::DESCRIPTOR_PATH => 1,
            _ => 2,
        }
    }

    /// The operands that it has.
    pub fn operands(&self) -> impl Iterator<Item = usize> {
        [self.a, self.b].into_iter().take(self.n_operands()).map(usize::from)
    }

    /// Whether only the dispatcher can do it (evaluate.rs).
    pub fn is_interpreted(&self) -> bool {
        matches!(self.code, op::TEXT_MATCH | op::DESCRIPTOR_PATH)
    }

    /// Whether it is a backtrace.
    pub fn is_backtrace(&self) -> bool {
        self.code == op::BACKTRACE
    }

    /// Whether it is what was kept when the call began.
    pub fn is_kept(&self) -> bool {
        self.code == op::KEPT
    }

    /// Of what was kept when the call began: the field, and of bytes how many there are at most.
    pub fn kept(&self) -> (usize, usize) {
        ((self.immediate & 0xffff_ffff) as usize, (self.immediate >> 32) as usize)
    }

    /// A literal's first byte among the form's data, and how many it has.
    pub fn literal(&self) -> (usize, usize) {
        ((self.immediate & 0xffff_ffff) as usize, (self.immediate >> 32) as usize)
    }
}

/// A form that was checked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Form {
    pub operations: Vec<Operation>,
    /// The operations whose values are taken.
    pub fields: Vec<u16>,
    /// The one, an i32, where which is 0 or missing nothing is taken.
    pub condition: Option<u16>,
    pub data: Vec<u8>,
}

impl Form {
    /// Reads what the controller packed; `None`: it is no form.
    pub fn parse(bytes: &[u8]) -> Option<Form> {
        // SAFETY: any bytes are one.
        let head: CaptureForm = unsafe { read(bytes, 0) }?;
        let (n_operations, n_fields) = (usize::from(head.n_operations), usize::from(head.n_fields));
        if n_operations as u64 > MAX_CAPTURE_OPERATIONS || n_fields as u64 > MAX_CAPTURE_OPERATIONS {
            return None;
        }
        let fields_at = HEAD_BYTES + n_operations * OPERATION_BYTES;
        let data = bytes.get(fields_at + n_fields * size_of::<u16>()..)?;
        if data.len() != usize::from(head.data_bytes) || data.len() as u64 > MAX_CAPTURE_TEXT {
            return None;
        }
        let operation = |index: usize| read_operation(bytes, HEAD_BYTES + index * OPERATION_BYTES);
        // SAFETY: as above.
        let field = |index: usize| unsafe { read::<u16>(bytes, fields_at + index * size_of::<u16>()) };
        let form = Form {
            operations: (0..n_operations).map(operation).collect::<Option<_>>()?,
            fields: (0..n_fields).map(field).collect::<Option<_>>()?,
            condition: Some(head.condition).filter(|condition| *condition != NO_CONDITION),
            data: data.to_vec(),
        };
        form.is_sound().then_some(form)
    }

    /// The type of a value.
    pub fn kind_of(&self, operation: usize) -> Kind {
        self.operations[operation].result()
    }

    fn is_sound(&self) -> bool {
        let n = self.operations.len();
        let are_sound = (0..n).all(|number| self.is_operation_sound(number));
        let are_fields_there = self.fields.iter().all(|field| usize::from(*field) < n);
        let asks = |condition: u16| usize::from(condition) < n && self.kind_of(condition.into()) == Kind::I32;
        are_sound && are_fields_there && self.condition.is_none_or(asks)
    }

    fn is_operation_sound(&self, number: usize) -> bool {
        let one = self.operations[number];
        if !one.kind.is_known() || one.operands().any(|operand| operand >= number) {
            return false;
        }
        // It is worked out behind all others.
        if one.operands().any(|operand| self.operations[operand].is_backtrace()) {
            return false;
        }
        let mut kinds = [None; 2];
        for (kind, operand) in kinds.iter_mut().zip(one.operands()) {
            *kind = Some(self.kind_of(operand));
        }
        let are = |kind: Kind| kinds.iter().flatten().all(|found| *found == kind);
        let kind = one.kind;
        match one.code {
            op::LITERAL => {
                let (start, size) = one.literal();
                kind == Kind::TEXT && start + size <= self.data.len()
            }
            op::STRING | op::BYTES => {
                kind == Kind::TEXT && are(Kind::U64) && (1..=MAX_CAPTURE_TEXT).contains(&one.immediate)
            }
            op::WORDS => {
                let is_size_sound = one.immediate.is_multiple_of(8) && (8..=MAX_CAPTURE_TEXT).contains(&one.immediate);
                kind == Kind::TEXT && are(Kind::U64) && is_size_sound
            }
            op::BACKTRACE => kind == Kind::TEXT && (1..=MAX_BACKTRACE_FRAMES).contains(&one.immediate),
            op::DESCRIPTOR_PATH => {
                kind == Kind::TEXT && are(Kind::I32) && (1..=MAX_CAPTURE_TEXT).contains(&one.immediate)
            }
            op::TEXT_EQUAL | op::TEXT_MATCH => are(Kind::TEXT),
            op::KEPT => {
                let (field, size) = one.kept();
                let is_size_sound = match kind {
                    Kind::TEXT => (1..=MAX_CAPTURE_TEXT).contains(&(size as u64)),
                    _ => size == 0,
                };
                (field as u64) < MAX_KEPT_VALUES && is_size_sound
            }
            op::CONTEXT => match one.immediate {
                what if what == u64::from(capture_context::COMM) => kind == Kind::TEXT,
                what if what == u64::from(capture_context::TIME) => kind == Kind::U64,
                what if what == u64::from(capture_context::THREAD_POINTER) => kind == Kind::U64,
                what if what == u64::from(capture_context::DURATION) => kind == Kind::U64,
                what if what == u64::from(capture_context::BEGAN) => kind == Kind::U64,
                what if what == u64::from(capture_context::FRAME) => kind == Kind::U64,
                what if what == u64::from(capture_context::BEHIND) => kind == Kind::U32,
                what if what == u64::from(capture_context::INJECTED) => kind == Kind::U32,
                what if what == u64::from(capture_context::DELAY_EXIT) => kind == Kind::U64,
                what => what < u64::from(capture_context::COMM) && kind == Kind::U32,
            },
            _ if kind == Kind::TEXT => false,
            op::REGISTER => kind == Kind::U64 && one.immediate < MAX_REGISTERS,
            op::VECTOR => kind.is_float() && one.immediate < MAX_REGISTERS,
            op::LOAD => are(Kind::U64),
            op::CONVERT => !are(Kind::TEXT) && kinds[0].is_some_and(|found| u64::from(found.0) == one.immediate),
            op::LOGICAL_AND | op::LOGICAL_OR | op::LOGICAL_NOT => are(Kind::I32),
            op::CONSTANT => true,
            op::REMAINDER
            | op::BIT_AND
            | op::BIT_OR
            | op::BIT_XOR
            | op::SHIFT_LEFT
            | op::SHIFT_RIGHT
            | op::COMPLEMENT => kind >= Kind::I32 && !kind.is_float() && are(kind),
            op::ADD | op::SUBTRACT | op::MULTIPLY | op::DIVIDE | op::NEGATE => kind >= Kind::I32 && are(kind),
            op::EQUAL | op::NOT_EQUAL | op::LESS | op::LESS_EQUAL => kind >= Kind::I32 && are(kind),
            _ => false,
        }
    }
}

fn read_operation(bytes: &[u8], at: usize) -> Option<Operation> {
    // SAFETY: any bytes are one.
    let one: CaptureInstruction = unsafe { read(bytes, at) }?;
    let CaptureInstruction { operation, value_type, a, b, immediate, .. } = one;
    Some(Operation { code: operation, kind: Kind(value_type), a, b, immediate })
}

/// What lies at a place of some bytes; `None`: they end before.
///
/// # Safety
/// Any bytes are a `T`.
unsafe fn read<T: Copy>(bytes: &[u8], at: usize) -> Option<T> {
    let place = bytes.get(at..)?.get(..size_of::<T>())?;
    // SAFETY: as many bytes are there, wherever they lie; the caller promises that they are one.
    Some(unsafe { place.as_ptr().cast::<T>().read_unaligned() })
}

#[cfg(test)]
pub mod samples {
    use super::*;

    /// An operation; its operands and immediate are 0 but for those given.
    pub fn operation(code: u8, kind: Kind, a: u16, b: u16, immediate: u64) -> Operation {
        Operation { code, kind, a, b, immediate }
    }

    /// A form as the controller packs it.
    pub fn pack(form: &Form) -> Vec<u8> {
        let head = CaptureForm {
            n_operations: form.operations.len() as u16,
            n_fields: form.fields.len() as u16,
            condition: form.condition.unwrap_or(NO_CONDITION),
            data_bytes: form.data.len() as u16,
        };
        let mut bytes = bytes_of(&head);
        for one in &form.operations {
            let Operation { code: operation, kind: Kind(value_type), a, b, immediate } = *one;
            bytes.extend(bytes_of(&CaptureInstruction { operation, value_type, a, b, reserved: 0, immediate }));
        }
        bytes.extend(form.fields.iter().flat_map(|field| field.to_le_bytes()));
        bytes.extend(&form.data);
        bytes
    }

    fn bytes_of<T: Copy>(row: &T) -> Vec<u8> {
        // SAFETY: the rows above have no gaps.
        unsafe { core::slice::from_raw_parts((row as *const T).cast::<u8>(), size_of::<T>()) }.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{operation, pack};
    use super::*;

    /// Register 7 is not 5; the bytes that it points to are taken.
    fn sample() -> Form {
        Form {
            operations: [
                operation(op::REGISTER, Kind::U64, 0, 0, 7),
                operation(op::CONSTANT, Kind::U64, 0, 0, 5),
                operation(op::NOT_EQUAL, Kind::U64, 0, 1, 0),
                operation(op::STRING, Kind::TEXT, 0, 0, 16),
            ]
            .to_vec(),
            fields: [3].to_vec(),
            condition: Some(2),
            data: b"abc".to_vec(),
        }
    }

    #[test]
    fn what_was_packed_is_read() {
        assert_eq!(Form::parse(&pack(&sample())), Some(sample()));
        assert_eq!(Form::parse(&pack(&Form::default())), Some(Form::default()));
    }

    #[test]
    fn no_part_of_a_form_is_one() {
        let packed = pack(&sample());
        for size in 0..packed.len() {
            assert_eq!(Form::parse(&packed[..size]), None, "{size} bytes");
        }
    }

    #[test]
    fn operands_of_another_type_are_refused() {
        let change = |index: usize, one: Operation| {
            let mut form = sample();
            form.operations[index] = one;
            Form::parse(&pack(&form))
        };
        assert_eq!(change(2, operation(op::NOT_EQUAL, Kind::I64, 0, 1, 0)), None);
        assert_eq!(change(2, operation(op::NOT_EQUAL, Kind::U64, 0, 2, 0)), None, "of itself");
        assert_eq!(change(2, operation(op::ADD, Kind::U64, 0, 1, 0)), None, "a condition is an i32");
        assert_eq!(change(3, operation(op::STRING, Kind::TEXT, 0, 0, 0)), None);
        assert_eq!(change(3, operation(op::STRING, Kind::U64, 0, 0, 16)), None);
        assert_eq!(change(3, operation(op::LITERAL, Kind::TEXT, 0, 0, 2 << 32 | 2)), None, "past the data");
        assert_eq!(change(3, operation(op::BACKTRACE, Kind::TEXT, 0, 0, 0)), None);
        assert!(change(3, operation(op::BACKTRACE, Kind::TEXT, 0, 0, 8)).is_some());
        assert_eq!(change(1, operation(99, Kind::U64, 0, 0, 0)), None);
        assert_eq!(change(1, operation(op::CONSTANT, Kind(11), 0, 0, 0)), None);
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let mut state = 1u64;
        let mut n_forms = 0;
        for _ in 0..200_000 {
            let mut packed = pack(&sample());
            for _ in 0..3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (state >> 33) as usize % packed.len();
                packed[at] = (state >> 55) as u8;
            }
            n_forms += usize::from(Form::parse(&packed).is_some());
        }
        assert!(n_forms > 0);
    }
}
