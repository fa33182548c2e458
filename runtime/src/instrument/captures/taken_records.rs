//! What is made of a capture's fields: a record in a thread's ring, or a part of a row.

extern crate alloc;
use super::aggregates::Table;
use super::few::Few;
use super::layout::Program;
use super::taken::Taken;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::protocol::{
    record_kind, CaptureRecord, AGGREGATE_KEY_WORDS, CAPTURE_RECORD_VALUES, CONTINUATION_PAYLOAD_BYTES,
};
use alloc::vec::Vec;

/// Whose capture a record has, where and when it was taken, and under which number.
pub struct Heading {
    pub tid: u32,
    pub pc: AppPc,
    pub tsc: u64,
    pub number: u32,
}

/// Writes a capture's record.
pub fn record(writer: &RingWriter, heading: &Heading, taken: &Taken) {
    let Taken { missing, words, bytes } = taken;
    let others = words.get(CAPTURE_RECORD_VALUES as usize..).unwrap_or_default();
    let mut payload: Vec<u8> = others.iter().flat_map(|word| word.to_le_bytes()).collect();
    payload.extend_from_slice(bytes);
    let record = CaptureRecord {
        kind: record_kind::CAPTURE,
        continuations: (payload.len() as u64).div_ceil(CONTINUATION_PAYLOAD_BYTES) as u16,
        tid: heading.tid,
        pc: heading.pc.raw(),
        tsc: heading.tsc,
        number: heading.number,
        missing: *missing,
        values: core::array::from_fn(|index| words.get(index).copied().unwrap_or(0)),
    };
    writer.write(&record, &payload);
}

/// Adds a capture's fields to a row of its table, where all of these begin at `base`.
pub fn add(taken: &Taken, program: &Program, table: &Table, base: u64) {
    let Taken { missing, words, bytes } = taken;
    let fields = program.form.fields.iter().map(|field| usize::from(*field));
    // A word for each key, then the bytes of those that are bytes, as far as there is room.
    let mut keys = Few::<{ AGGREGATE_KEY_WORDS as usize }>::default();
    words.iter().take(table.n_keys).for_each(|word| keys.push(*word));
    for part in bytes.chunks(8) {
        keys.push(u64::from_le_bytes(core::array::from_fn(|index| part.get(index).copied().unwrap_or(0))));
    }
    let is_missing = |index: usize| missing >> index & 1 != 0;
    let value = fields.zip(words.iter()).nth(table.n_keys).filter(|_| table.has_values && !is_missing(table.n_keys));
    let value = value.map(|(field, word)| (*word, program.form.kind_of(field)));
    // SAFETY: the tables are a part of the shared memory, mapped as long as the runtime runs.
    unsafe { table.add(base, &keys, u64::from(*missing) & ((1 << table.n_keys) - 1), value) };
}
