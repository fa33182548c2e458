//! The fields of a capture, as a record or a row has them; and what an open call keeps of one.

extern crate alloc;
use super::evaluate::{evaluate, Asked, Value};
use super::few::Few;
use super::layout::Program;
use super::open_calls::OpenCall;
use super::text_cells::KeptText;
use crate::protocol::MAX_CAPTURE_FIELDS;
use alloc::vec::Vec;

const MAX_FIELDS: usize = MAX_CAPTURE_FIELDS as usize;

/// The fields of a capture: which are missing, a word for each, and the bytes of those that are bytes.
#[derive(Default)]
pub struct Taken {
    pub missing: u32,
    pub words: Few<MAX_FIELDS>,
    pub bytes: Vec<u8>,
}

impl Taken {
    /// Takes what a capture comes to where no code is emitted for it. `false`: its condition does not hold.
    pub fn evaluate(&mut self, program: &Program, asked: &impl Asked) -> bool {
        evaluate(program, asked, |index, value| match value {
            Value::Missing => self.add_missing(index),
            Value::Number(number) => self.words.push(*number),
            Value::Bytes(bytes) => self.add_bytes(bytes),
        })
    }

    pub fn add_missing(&mut self, index: usize) {
        self.missing |= 1 << index;
        self.words.push(0);
    }

    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.words.push(bytes.len() as u64);
        self.bytes.extend(bytes);
    }
}

/// What a call keeps of a field.
pub fn kept_of(call: &OpenCall, texts: &[KeptText], field: usize, is_text: bool) -> Value {
    if call.missing >> field & 1 != 0 {
        return Value::Missing;
    }
    if !is_text {
        return call.values.get(field).map_or(Value::Missing, |value| Value::Number(*value));
    }
    let found = texts.iter().find(|(own, _)| *own == field);
    found.map_or(Value::Missing, |(_, bytes)| Value::Bytes(bytes.clone()))
}
