//! Operations of captures on bytes: read from the program's memory into room of the thread's, and compared.

extern crate alloc;
use super::super::super::displacements::GS_SELF_ADDRESS;
use super::super::super::{RAX, RCX, RDX};
use super::code::{slot, text, Code, NOT_ABOVE, NOT_ZERO, ZERO};
use super::integers::jump_at_end;
use crate::context::addresses::CachePc;
use crate::instrument::captures::form::Operation;
use crate::protocol::capture_operation as op;
use alloc::vec::Vec;

/// Emits the bytes at a value up to a zero byte, their number to rax; `ends` get where it goes on if memory ends before.
pub fn emit_string(code: &mut Code, index: usize, one: &Operation, ends: &mut Vec<CachePc>) {
    code.load(RAX, usize::from(one.a));
    ends.push(code.begin_reading());
    let emitter = &mut *code.emitter;
    emitter.clear(RCX);
    let again = emitter.address();
    emitter.load_byte_at();
    emitter.operate(0x85, RDX, RDX);
    let is_zero = emitter.jump_condition(ZERO);
    emitter.store_gs_byte_at_rcx(text(code.program, index));
    emitter.add_immediate(RCX, 1);
    emitter.compare_immediate(RCX, one.immediate as i32);
    let is_full = emitter.jump_condition(ZERO);
    emitter.jump_to(again);
    emitter.bind(is_zero);
    emitter.bind(is_full);
    emitter.copy_register(RAX, RCX);
    code.end_reading();
}

/// Emits the words at a value up to one that is zero, how many bytes they are to rax; `ends` get where it goes on if memory ends before.
pub fn emit_words(code: &mut Code, index: usize, one: &Operation, ends: &mut Vec<CachePc>) {
    const WORD_BYTES: u32 = 8;
    code.load(RAX, usize::from(one.a));
    ends.push(code.begin_reading());
    let emitter = &mut *code.emitter;
    emitter.clear(RCX);
    let again = emitter.address();
    // Byte by byte: the program may have alignment checks on.
    emitter.load_byte_at();
    emitter.store_gs_byte_at_rcx(text(code.program, index));
    emitter.add_immediate(RCX, 1);
    // test cl, 7
    emitter.bytes(&[0xf6, 0xc1, 7]);
    let is_within = emitter.jump_condition(NOT_ZERO);
    // cmp qword gs:[rcx + the word behind which it is], 0
    emitter.bytes(&[0x65, 0x48, 0x83, 0xb9]);
    emitter.dword(text(code.program, index).wrapping_sub(WORD_BYTES));
    emitter.bytes(&[0]);
    let is_zero = emitter.jump_condition(ZERO);
    emitter.compare_immediate(RCX, one.immediate as i32);
    let is_full = emitter.jump_condition(ZERO);
    emitter.bind(is_within);
    emitter.jump_to(again);
    emitter.bind(is_zero);
    emitter.add_immediate(RCX, -(WORD_BYTES as i32));
    emitter.bind(is_full);
    emitter.copy_register(RAX, RCX);
    code.end_reading();
}

/// Emits so many bytes at a value as another one says, within a limit; their number to rax.
pub fn emit_bytes(code: &mut Code, index: usize, one: &Operation, ends: &mut Vec<CachePc>) {
    code.load(RDX, usize::from(one.b));
    code.emitter.compare_immediate(RDX, one.immediate as i32);
    let is_within = code.emitter.jump_condition(NOT_ABOVE);
    code.emitter.load_immediate(RDX, one.immediate);
    code.emitter.bind(is_within);
    code.emitter.store_gs(slot(code.program, index), RDX);
    code.load(RAX, usize::from(one.a));
    ends.push(code.begin_reading());
    code.emitter.clear(RCX);
    let again = code.emitter.address();
    let is_done = jump_at_end(code, slot(code.program, index));
    code.emitter.load_byte_at();
    code.emitter.store_gs_byte_at_rcx(text(code.program, index));
    code.emitter.add_immediate(RCX, 1);
    code.emitter.jump_to(again);
    code.emitter.bind(is_done);
    code.emitter.copy_register(RAX, RCX);
    code.end_reading();
}

/// Emits whether two values are the same bytes.
pub fn emit_equal(code: &mut Code, a: usize, b: usize) {
    let is_literal = |operation: usize| code.program.form.operations[operation].code == op::LITERAL;
    match (is_literal(a), is_literal(b)) {
        (true, true) => {
            let is_same = literal(code, a) == literal(code, b);
            code.emitter.load_immediate(RAX, u64::from(is_same));
        }
        (false, true) => emit_comparison(code, a, Some(b), b),
        (true, false) => emit_comparison(code, b, Some(a), a),
        (false, false) => emit_comparison(code, a, None, b),
    }
}

fn literal<'p>(code: &Code<'p, '_>, operation: usize) -> &'p [u8] {
    let (start, size) = code.program.form.operations[operation].literal();
    &code.program.form.data[start..start + size]
}

/// Emits whether the bytes of `kept` are those of a literal, or of `other`.
fn emit_comparison(code: &mut Code, kept: usize, is_literal: Option<usize>, other: usize) {
    code.load(RCX, kept);
    let bytes = is_literal.map(|operation| literal(code, operation));
    match bytes {
        Some(bytes) => code.emitter.compare_immediate(RCX, bytes.len() as i32),
        None => code.emitter.compare_with_gs(RCX, slot(code.program, other)),
    }
    let is_longer = code.emitter.jump_condition(NOT_ZERO);
    let emitter = &mut *code.emitter;
    match bytes {
        Some(bytes) => {
            // lea rax, [rip + 5]: behind the jump over the bytes.
            emitter.bytes(&[0x48, 0x8d, 0x05]);
            emitter.dword(5);
            let over = emitter.jump();
            emitter.bytes(bytes);
            emitter.bind(over);
        }
        None => {
            emitter.load_gs(RAX, GS_SELF_ADDRESS);
            emitter.add_immediate(RAX, text(code.program, other) as i32);
        }
    }
    // From the last byte to the first.
    let again = emitter.address();
    emitter.operate(0x85, RCX, RCX);
    let is_equal = emitter.jump_condition(ZERO);
    emitter.add_immediate(RCX, -1);
    emitter.load_byte_at();
    emitter.compare_gs_byte_at_rcx(text(code.program, kept));
    let is_other = emitter.jump_condition(NOT_ZERO);
    emitter.jump_to(again);
    emitter.bind(is_longer);
    emitter.bind(is_other);
    emitter.clear(RAX);
    let past = emitter.jump();
    emitter.bind(is_equal);
    emitter.load_immediate(RAX, 1);
    emitter.bind(past);
}
