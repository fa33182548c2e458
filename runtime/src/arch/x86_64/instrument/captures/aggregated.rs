//! What is captured is added to a row of a table by translated code, where keys and value are integers and the row is there.
//!
//! Other threads add to the same row: each word is changed by a locked instruction. Whatever is in the way, such as a key that is new, the
//! thread leaves before anything is added, and the dispatcher does the same (instrument/captures/aggregates.rs).

extern crate alloc;
use super::super::super::emit::Emitter;
use super::super::super::{Gpr, RAX, RCX, RDX};
use super::code::{missing, slot, BELOW, LESS, NOT_ABOVE, NOT_BELOW, NOT_GREATER, NOT_ZERO, ZERO};
use super::integers::jump_unless_negative;
use crate::context::addresses::CachePc;
use crate::instrument::captures::aggregates::{Table, READY};
use crate::instrument::captures::layout::Program;
use crate::protocol::{AggregateRow, AGGREGATE_HASH_FACTOR, AGGREGATE_PROBES};
use alloc::vec::Vec;
use core::mem::{offset_of, size_of};

/// Condition code: at least, of signed numbers.
const NOT_LESS: u8 = LESS ^ 1;

/// Emits what adds the fields of a capture to its row, all tables being at `base`; `leaving` get where the dispatcher is to do it.
pub fn emit(emitter: &mut Emitter, program: &Program, table: &Table, base: u64, leaving: &mut Vec<CachePc>) {
    let fields: Vec<usize> = program.form.fields.iter().map(|field| usize::from(*field)).collect();
    for field in fields.iter().filter(|field| program.may_miss[**field]) {
        emitter.compare_gs_byte_zero(missing(program, *field));
        leaving.push(emitter.jump_condition(NOT_ZERO));
    }
    let (keys, values) = fields.split_at(table.n_keys);
    emit_first_row(emitter, program, table, keys, base);
    let found = emit_search(emitter, program, table, keys, leaving);
    if let Some(place) = found {
        emitter.bind(place);
    }
    emitter.add_locked(offset_of!(AggregateRow, count), None);
    let Some(value) = values.first().filter(|_| table.has_values) else {
        return;
    };
    let is_signed = program.form.kind_of(*value).is_signed();
    emit_sum(emitter, slot(program, *value), is_signed);
    // What is held stays where it is at most the value, or at least.
    let (at_most, at_least) = if is_signed { (NOT_GREATER, NOT_LESS) } else { (NOT_ABOVE, NOT_BELOW) };
    emit_replacement(emitter, slot(program, *value), offset_of!(AggregateRow, least), at_most);
    emit_replacement(emitter, slot(program, *value), offset_of!(AggregateRow, most), at_least);
    if table.has_histograms {
        emit_bucket(emitter, slot(program, *value), is_signed);
    }
}

/// Emits the address of the row that the keys' hash tells to rdx.
fn emit_first_row(emitter: &mut Emitter, program: &Program, table: &Table, keys: &[usize], base: u64) {
    emitter.load_immediate(RDX, table.rows_at(base));
    if table.hash_shift() == 64 || keys.is_empty() {
        return;
    }
    emitter.load_immediate(RCX, AGGREGATE_HASH_FACTOR);
    for (index, key) in keys.iter().enumerate() {
        if index == 0 {
            emitter.load_gs(RAX, slot(program, *key));
        } else {
            // rol rax, 29; xor rax, gs:[key]
            emitter.bytes(&[0x48, 0xc1, 0xc0, 29]);
            emitter.xor_gs(RAX, slot(program, *key));
        }
        // imul rax, rcx
        emitter.bytes(&[0x48, 0x0f, 0xaf, 0xc1]);
    }
    // shr rax, shift; imul rax, rax, row bytes; add rdx, rax
    emitter.bytes(&[0x48, 0xc1, 0xe8, table.hash_shift() as u8, 0x48, 0x69, 0xc0]);
    emitter.dword(table.row_bytes() as u32);
    emitter.operate(0x01, RDX, RAX);
}

/// Emits a search for the keys' row from rdx on. Returns the branches that are taken where rdx is the row; what leaves does so where
/// there is none yet.
fn emit_search(
    emitter: &mut Emitter,
    program: &Program,
    table: &Table,
    keys: &[usize],
    leaving: &mut Vec<CachePc>,
) -> Option<CachePc> {
    emitter.load_immediate(RCX, AGGREGATE_PROBES);
    let again = emitter.address();
    emitter.load_row(RAX, offset_of!(AggregateRow, state));
    if keys.is_empty() {
        emitter.compare_immediate(RAX, READY as i32);
        leaving.push(emitter.jump_condition(NOT_ZERO));
        return None;
    }
    emitter.operate(0x85, RAX, RAX);
    leaving.push(emitter.jump_condition(ZERO));
    emitter.compare_immediate(RAX, READY as i32);
    let mut others = [emitter.jump_condition(NOT_ZERO)].to_vec();
    for (index, key) in keys.iter().enumerate() {
        emitter.load_row(RAX, offset_of!(AggregateRow, keys) + 8 * index);
        emitter.compare_with_gs(RAX, slot(program, *key));
        others.push(emitter.jump_condition(NOT_ZERO));
    }
    let found = emitter.jump();
    for place in others {
        emitter.bind(place);
    }
    emitter.add_immediate(RDX, table.row_bytes() as i32);
    // dec ecx
    emitter.bytes(&[0xff, 0xc9]);
    leaving.push(emitter.jump_condition(ZERO));
    emitter.jump_to(again);
    Some(found)
}

/// Emits that a value is added to the row's sum, of twice as many bits.
fn emit_sum(emitter: &mut Emitter, value: u32, is_signed: bool) {
    emitter.load_gs(RAX, value);
    emitter.clear(RCX);
    if is_signed {
        // mov rcx, rax; sar rcx, 63
        emitter.copy_register(RCX, RAX);
        emitter.bytes(&[0x48, 0xc1, 0xf9, 63]);
    }
    emitter.add_locked(offset_of!(AggregateRow, sum_low), Some(RAX));
    let is_low = emitter.jump_condition(NOT_BELOW);
    // inc rcx
    emitter.bytes(&[0x48, 0xff, 0xc1]);
    emitter.bind(is_low);
    emitter.operate(0x85, RCX, RCX);
    let is_nothing = emitter.jump_condition(ZERO);
    emitter.add_locked(offset_of!(AggregateRow, sum_high), Some(RCX));
    emitter.bind(is_nothing);
}

/// Emits that a value takes the place of what the row holds at `offset`, but where what is held `stays` compared with it.
fn emit_replacement(emitter: &mut Emitter, value: u32, offset: usize, stays: u8) {
    emitter.load_gs(RCX, value);
    let again = emitter.address();
    emitter.load_row(RAX, offset);
    emitter.operate(0x39, RAX, RCX);
    let is_better = emitter.jump_condition(stays);
    // lock cmpxchg [rdx + offset], rcx
    emitter.bytes(&[0xf0, 0x48, 0x0f, 0xb1, 0x4a, offset as u8]);
    let is_replaced = emitter.jump_condition(ZERO);
    emitter.jump_to(again);
    emitter.bind(is_better);
    emitter.bind(is_replaced);
}

/// Emits that a value counts in the row's histogram (`bucket_of` in instrument/captures/aggregates.rs).
fn emit_bucket(emitter: &mut Emitter, value: u32, is_signed: bool) {
    emitter.load_gs(RAX, value);
    if is_signed {
        let is_positive = jump_unless_negative(emitter);
        emitter.clear(RAX);
        emitter.bind(is_positive);
    }
    emitter.compare_immediate(RAX, 4);
    let is_small = emitter.jump_condition(BELOW);
    // bsr rcx, rax; lea rcx, [rcx - 2]; shr rax, cl; and eax, 3; lea rax, [rax + 4 * rcx + 4]
    emitter.bytes(&[0x48, 0x0f, 0xbd, 0xc8, 0x48, 0x8d, 0x49, 0xfe, 0x48, 0xd3, 0xe8, 0x83, 0xe0, 3]);
    emitter.bytes(&[0x48, 0x8d, 0x44, 0x88, 4]);
    emitter.bind(is_small);
    // lock inc qword [rdx + 8 * rax + size of the row]
    emitter.bytes(&[0xf0, 0x48, 0xff, 0x84, 0xc2]);
    emitter.dword(size_of::<AggregateRow>() as u32);
}

impl Emitter<'_> {
    /// mov register, [rdx + offset], of the first eight registers
    fn load_row(&mut self, register: Gpr, offset: usize) {
        self.bytes(&[0x48, 0x8b, 0x42 | register.0 << 3, offset as u8]);
    }

    /// lock add [rdx + offset], register of the first eight; or lock inc qword [rdx + offset]
    fn add_locked(&mut self, offset: usize, register: Option<Gpr>) {
        match register {
            Some(register) => self.bytes(&[0xf0, 0x48, 0x01, 0x42 | register.0 << 3, offset as u8]),
            None => self.bytes(&[0xf0, 0x48, 0xff, 0x42, offset as u8]),
        }
    }

    /// xor register, qword gs:[displacement], of the first eight registers
    fn xor_gs(&mut self, register: Gpr, displacement: u32) {
        self.gs_operand(&[], 0x48, &[0x33], register.0, displacement, 0);
    }
}

const _: () = assert!(size_of::<AggregateRow>() == 128);
