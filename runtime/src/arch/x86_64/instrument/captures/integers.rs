//! Operations of captures on integers. Values are kept in 64 bits, widened as their type has it.

extern crate alloc;
use super::super::super::emit::Emitter;
use super::super::super::{RAX, RCX, RDX};
use super::code::{slot, Code, BELOW, LESS, NEGATIVE, NOT_ABOVE, NOT_BELOW, NOT_GREATER, NOT_ZERO, ZERO};
use crate::context::addresses::CachePc;
use crate::instrument::captures::form::{Kind, Operation};
use crate::protocol::{capture_operation as op, capture_type};
use alloc::vec::Vec;

/// Opcodes of operations on two registers.
const ADD: u8 = 0x01;
const OR: u8 = 0x09;
const AND: u8 = 0x21;
const SUBTRACT: u8 = 0x29;
const XOR: u8 = 0x31;
const COMPARE: u8 = 0x39;
const TEST: u8 = 0x85;
/// Operations on one.
const NOT: u8 = 2;
const NEGATE: u8 = 3;
const DIVIDE: u8 = 6;
const DIVIDE_SIGNED: u8 = 7;
const SHIFT_LEFT: u8 = 4;
const SHIFT_RIGHT: u8 = 5;
const SHIFT_RIGHT_SIGNED: u8 = 7;

/// Widens the low bits of rax to a value of a type.
pub fn emit_widening(code: &mut Code, kind: Kind) {
    code.emitter.bytes(match kind.0 {
        capture_type::I8 => &[0x48, 0x0f, 0xbe, 0xc0],
        capture_type::U8 => &[0x0f, 0xb6, 0xc0],
        capture_type::I16 => &[0x48, 0x0f, 0xbf, 0xc0],
        capture_type::U16 => &[0x0f, 0xb7, 0xc0],
        capture_type::I32 => &[0x48, 0x63, 0xc0],
        capture_type::U32 | capture_type::F32 => &[0x89, 0xc0],
        _ => &[],
    });
}

/// Emits the program's memory at value `a` to rax; `ends` get where it goes on if it can't be read.
pub fn emit_load(code: &mut Code, a: usize, kind: Kind, ends: &mut Vec<CachePc>) {
    code.load(RAX, a);
    ends.push(code.begin_reading());
    code.emitter.bytes(match kind.0 {
        capture_type::I8 => &[0x48, 0x0f, 0xbe, 0x00],
        capture_type::U8 => &[0x0f, 0xb6, 0x00],
        capture_type::I16 => &[0x48, 0x0f, 0xbf, 0x00],
        capture_type::U16 => &[0x0f, 0xb7, 0x00],
        capture_type::I32 => &[0x48, 0x63, 0x00],
        capture_type::U32 | capture_type::F32 => &[0x8b, 0x00],
        _ => &[0x48, 0x8b, 0x00],
    });
    code.end_reading();
}

/// Emits the thread pointer to rax, by the word at its own address; `ends` get where it goes on if there is none yet.
pub fn emit_thread_pointer(code: &mut Code, ends: &mut Vec<CachePc>) {
    ends.push(code.begin_reading());
    // mov rax, fs:[0]
    code.emitter.bytes(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0]);
    code.end_reading();
}

/// Emits arithmetic of two values; `ends` get where it goes on if there is no result.
pub fn emit_arithmetic(code: &mut Code, one: &Operation, ends: &mut Vec<CachePc>) {
    code.load(RAX, usize::from(one.a));
    code.load(RCX, usize::from(one.b));
    let emitter = &mut *code.emitter;
    match one.code {
        op::ADD => emitter.operate(ADD, RAX, RCX),
        op::SUBTRACT => emitter.operate(SUBTRACT, RAX, RCX),
        // imul rax, rcx
        op::MULTIPLY => emitter.bytes(&[0x48, 0x0f, 0xaf, 0xc1]),
        op::BIT_AND => emitter.operate(AND, RAX, RCX),
        op::BIT_OR => emitter.operate(OR, RAX, RCX),
        op::BIT_XOR => emitter.operate(XOR, RAX, RCX),
        op::SHIFT_LEFT | op::SHIFT_RIGHT => {
            emitter.and_immediate(RCX, 8 * one.kind.size_bytes() - 1);
            emitter.shift_by_cl(match (one.code, one.kind.is_signed()) {
                (op::SHIFT_LEFT, _) => SHIFT_LEFT,
                (_, true) => SHIFT_RIGHT_SIGNED,
                (_, false) => SHIFT_RIGHT,
            });
        }
        _ => {
            emitter.operate(TEST, RCX, RCX);
            ends.push(emitter.jump_condition(ZERO));
            emit_division(code, one);
        }
    }
    emit_widening(code, one.kind);
}

/// Emits rax by rcx, which is not 0: towards zero.
fn emit_division(code: &mut Code, one: &Operation) {
    let emitter = &mut *code.emitter;
    let is_remainder = one.code == op::REMAINDER;
    let mut past = None;
    if one.kind.is_signed() {
        // The processor has no result for the least number by -1 (Intel SDM, IDIV).
        emitter.compare_immediate(RCX, -1);
        let is_other = emitter.jump_condition(NOT_ZERO);
        emitter.operate_alone(NEGATE, RAX);
        emitter.clear(RDX);
        past = Some(emitter.jump());
        emitter.bind(is_other);
        // cqo
        emitter.bytes(&[0x48, 0x99]);
        emitter.operate_alone(DIVIDE_SIGNED, RCX);
    } else {
        emitter.clear(RDX);
        emitter.operate_alone(DIVIDE, RCX);
    }
    if let Some(past) = past {
        emitter.bind(past);
    }
    if is_remainder {
        emitter.copy_register(RAX, RDX);
    }
}

pub fn emit_unary(code: &mut Code, operation: u8, a: usize, kind: Kind) {
    code.load(RAX, a);
    code.emitter.operate_alone(if operation == op::NEGATE { NEGATE } else { NOT }, RAX);
    emit_widening(code, kind);
}

pub fn emit_comparison(code: &mut Code, one: &Operation) {
    code.load(RAX, usize::from(one.a));
    code.load(RCX, usize::from(one.b));
    code.emitter.operate(COMPARE, RAX, RCX);
    code.set_by(match (one.code, one.kind.is_signed()) {
        (op::EQUAL, _) => ZERO,
        (op::NOT_EQUAL, _) => NOT_ZERO,
        (op::LESS, true) => LESS,
        (op::LESS, false) => BELOW,
        (_, true) => NOT_GREATER,
        (_, false) => NOT_ABOVE,
    });
}

pub fn emit_not(code: &mut Code, a: usize) {
    code.emitter.compare_gs_word_zero(slot(code.program, a));
    code.set_by(ZERO);
}

/// Emits `&&` or `||`: the right operand is asked for only where the left one does not decide.
pub fn emit_logical(code: &mut Code, one: &Operation, ends: &mut Vec<CachePc>) {
    let (a, b) = (usize::from(one.a), usize::from(one.b));
    let decides = if one.code == op::LOGICAL_AND { ZERO } else { NOT_ZERO };
    code.load(RAX, a);
    code.emitter.operate(TEST, RAX, RAX);
    let is_decided = code.emitter.jump_condition(decides);
    ends.extend(code.jump_if_missing(b));
    code.load(RAX, b);
    code.emitter.operate(TEST, RAX, RAX);
    code.emitter.bind(is_decided);
    code.set_by(NOT_ZERO);
}

/// A branch that is taken where rax has no sign.
pub fn jump_unless_negative(emitter: &mut Emitter) -> CachePc {
    emitter.operate(TEST, RAX, RAX);
    emitter.jump_condition(NEGATIVE ^ 1)
}

/// A branch that is taken where the index in rcx has come to what a slot holds.
pub fn jump_at_end(code: &mut Code, displacement: u32) -> CachePc {
    code.emitter.compare_with_gs(RCX, displacement);
    code.emitter.jump_condition(NOT_BELOW)
}
