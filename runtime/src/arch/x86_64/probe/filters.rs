//! Conditions that are decided in front of everything else in a handler: on registers and constants, by a register alone.
//!
//! Most threads that come to such a probe want nothing there. So nothing of the thread's block is touched before it is known that
//! they do; then the condition is worked out once more with the rest.

extern crate alloc;
use super::super::emit::Emitter;
use super::super::{Gpr, RAX, RCX, RSP};
use super::aside::{ASIDE_BYTES, RAX_ASIDE, RCX_ASIDE};
use crate::context::addresses::CachePc;
use crate::instrument::captures::form::{Form, Kind, Operation};
use crate::instrument::captures::layout::Program;
use crate::instrument::captures::places::Place;
use crate::protocol::{capture_operation as op, capture_type};
use alloc::vec::Vec;

/// Condition codes of branches (Intel SDM volume 2, appendix B.1.4); another one's opposite differs in the lowest bit.
const BELOW: u8 = 2;
const ZERO: u8 = 4;
const NOT_ABOVE: u8 = 6;
const LESS: u8 = 12;
const NOT_GREATER: u8 = 14;
const OPPOSITE: u8 = 1;
/// Operations on rcx and a number, as the group 81 has them; and with a register, the opcode for r/m and register.
const ADD: u8 = 0;
const OR: u8 = 1;
const AND: u8 = 4;
const SUBTRACT: u8 = 5;
const XOR: u8 = 6;
const COMPARE: u8 = 7;

/// General registers that a form can name.
const N_GENERAL: u64 = 16;

/// Emits a branch that is taken where none of a place's captures is to be taken, rax and rcx being aside and the flags in rax; `None`: that
/// can't be told so early.
pub fn emit(emitter: &mut Emitter, place: &Place) -> Option<Vec<CachePc>> {
    let mut conditions: Vec<(&Form, u16)> = Vec::new();
    for program in &place.programs {
        let condition = early_condition(program)?;
        // A function's probe has the same one where its call begins and where that is recorded.
        let is_same = |other: &(&Form, u16)| other.1 == condition && other.0.operations == program.form.operations;
        if !conditions.iter().any(is_same) {
            conditions.push((&program.form, condition));
        }
    }
    let mut held = Vec::new();
    let (last, others) = conditions.split_last()?;
    for (form, condition) in others {
        Filter { form, emitter }.branch(usize::from(*condition), true, &mut held);
    }
    let mut nothing = Vec::new();
    Filter { form: last.0, emitter }.branch(usize::from(last.1), false, &mut nothing);
    for place in held {
        emitter.bind(place);
    }
    Some(nothing)
}

/// A capture's condition, if it is one that can be decided early.
fn early_condition(program: &Program) -> Option<u16> {
    let condition = program.form.condition.filter(|_| program.returned == 0)?;
    is_decided(&program.form, condition.into()).then_some(condition)
}

/// Whether an operation can be told to hold or not.
fn is_decided(form: &Form, index: usize) -> bool {
    let one = &form.operations[index];
    let (a, b) = (usize::from(one.a), usize::from(one.b));
    match one.code {
        op::LOGICAL_AND | op::LOGICAL_OR => is_decided(form, a) && is_decided(form, b),
        op::LOGICAL_NOT => is_decided(form, a),
        op::EQUAL..=op::LESS_EQUAL => !one.kind.is_float() && is_value(form, a) && is_operand(form, b),
        _ => is_value(form, index),
    }
}

/// Whether an operation's value can be made in rcx.
fn is_value(form: &Form, index: usize) -> bool {
    let one = &form.operations[index];
    if one.kind.is_float() || one.kind == Kind::TEXT {
        return false;
    }
    match one.code {
        _ if constant(form, index).is_some() => true,
        op::REGISTER => one.immediate < N_GENERAL,
        op::CONVERT => !Kind(one.immediate as u8).is_float() && is_value(form, one.a.into()),
        op::ADD | op::SUBTRACT | op::BIT_AND | op::BIT_OR | op::BIT_XOR => {
            is_value(form, one.a.into()) && is_operand(form, one.b.into())
        }
        _ => false,
    }
}

/// Whether an operation is what instructions take as their second operand: a number, or a whole register.
fn is_operand(form: &Form, index: usize) -> bool {
    plain_register(&form.operations[index]).is_some() || constant(form, index).is_some()
}

/// The value of an operation on constants alone.
fn constant(form: &Form, index: usize) -> Option<u64> {
    let one = &form.operations[index];
    if one.kind.is_float() || one.kind == Kind::TEXT {
        return None;
    }
    let of = || constant(form, one.a.into());
    Some(one.kind.widen(match one.code {
        op::CONSTANT => one.immediate,
        op::CONVERT => of()?,
        op::NEGATE => of()?.wrapping_neg(),
        op::COMPLEMENT => !of()?,
        _ => return None,
    }))
}

/// The register that an operation is, if that holds what the program has there: neither of those that are used, nor the stack pointer.
fn plain_register(one: &Operation) -> Option<Gpr> {
    let is_plain = one.code == op::REGISTER
        && one.immediate < N_GENERAL
        && ![RAX, RCX, RSP].map(|used| u64::from(used.0)).contains(&one.immediate);
    is_plain.then_some(Gpr(one.immediate as u8))
}

/// A condition under construction.
struct Filter<'f, 'e, 'a> {
    form: &'f Form,
    emitter: &'e mut Emitter<'a>,
}

impl Filter<'_, '_, '_> {
    /// Emits branches that are taken where an operation holds, or where it does not.
    fn branch(&mut self, index: usize, where_it_holds: bool, places: &mut Vec<CachePc>) {
        let one = &self.form.operations[index];
        let (a, b) = (usize::from(one.a), usize::from(one.b));
        match one.code {
            op::LOGICAL_NOT => self.branch(a, !where_it_holds, places),
            op::LOGICAL_AND | op::LOGICAL_OR => {
                let is_either = one.code == op::LOGICAL_OR;
                if is_either == where_it_holds {
                    self.branch(a, where_it_holds, places);
                    self.branch(b, where_it_holds, places);
                } else {
                    let mut decided = Vec::new();
                    self.branch(a, !where_it_holds, &mut decided);
                    self.branch(b, where_it_holds, places);
                    for place in decided {
                        self.emitter.bind(place);
                    }
                }
            }
            op::EQUAL..=op::LESS_EQUAL => {
                self.compare(a, b);
                let condition = match (one.code, one.kind.is_signed()) {
                    (op::EQUAL, _) => ZERO,
                    (op::NOT_EQUAL, _) => ZERO ^ OPPOSITE,
                    (op::LESS, true) => LESS,
                    (op::LESS, false) => BELOW,
                    (_, true) => NOT_GREATER,
                    (_, false) => NOT_ABOVE,
                };
                places.push(self.emitter.jump_condition(condition ^ u8::from(!where_it_holds)));
            }
            _ => {
                self.value(index);
                self.emitter.operate(0x85, RCX, RCX);
                places.push(self.emitter.jump_condition(ZERO ^ u8::from(where_it_holds)));
            }
        }
    }

    /// Emits a comparison of two values.
    fn compare(&mut self, a: usize, b: usize) {
        let left = plain_register(&self.form.operations[a]).unwrap_or_else(|| {
            self.value(a);
            RCX
        });
        self.operate(COMPARE, left, b);
    }

    /// Emits a value to rcx.
    fn value(&mut self, index: usize) {
        let one = &self.form.operations[index];
        if let Some(value) = constant(self.form, index) {
            self.emitter.load_immediate(RCX, value);
            return;
        }
        match one.code {
            op::REGISTER if one.immediate == u64::from(RAX.0) => self.emitter.load_from_stack(RCX, RAX_ASIDE),
            op::REGISTER if one.immediate == u64::from(RCX.0) => self.emitter.load_from_stack(RCX, RCX_ASIDE),
            op::REGISTER if one.immediate == u64::from(RSP.0) => {
                self.emitter.add_registers(RCX, RSP, None, 1, ASIDE_BYTES);
            }
            op::REGISTER => self.emitter.copy_register(RCX, Gpr(one.immediate as u8)),
            op::CONVERT => {
                self.value(one.a.into());
                self.widen(one.kind);
            }
            code => {
                self.value(one.a.into());
                let operation = match code {
                    op::ADD => ADD,
                    op::SUBTRACT => SUBTRACT,
                    op::BIT_AND => AND,
                    op::BIT_OR => OR,
                    _ => XOR,
                };
                self.operate(operation, RCX, one.b.into());
                self.widen(one.kind);
            }
        }
    }

    /// Emits an operation of 64 bits on a register and an operand.
    fn operate(&mut self, operation: u8, target: Gpr, operand: usize) {
        let one = &self.form.operations[operand];
        let (low, high) = (target.0 & 7, target.0 >> 3);
        if let Some(register) = plain_register(one) {
            // operation target, register
            let rex = 0x48 | (register.0 >> 3) << 2 | high;
            self.emitter.bytes(&[rex, operation << 3 | 1, 0xc0 | (register.0 & 7) << 3 | low]);
            return;
        }
        let value = constant(self.form, operand).unwrap_or_default();
        if value.cast_signed() == i64::from(value as i32) {
            self.emitter.bytes(&[0x48 | high, 0x81, 0xc0 | operation << 3 | low]);
            self.emitter.dword(value as u32);
        } else {
            // operation target, [rip + literal]
            self.emitter.bytes(&[0x48 | high << 2, operation << 3 | 3, 5 | low << 3]);
            let place = self.emitter.address();
            self.emitter.dword(0);
            self.emitter.literal(place, value);
        }
    }

    /// Widens the low bits of rcx to a value of a type.
    fn widen(&mut self, kind: Kind) {
        self.emitter.bytes(match kind.0 {
            capture_type::I8 => &[0x48, 0x0f, 0xbe, 0xc9],
            capture_type::U8 => &[0x0f, 0xb6, 0xc9],
            capture_type::I16 => &[0x48, 0x0f, 0xbf, 0xc9],
            capture_type::U16 => &[0x0f, 0xb7, 0xc9],
            capture_type::I32 => &[0x48, 0x63, 0xc9],
            capture_type::U32 => &[0x89, 0xc9],
            _ => &[],
        });
    }
}
