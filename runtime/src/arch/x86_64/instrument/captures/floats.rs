//! Operations of captures on floating-point numbers, by xmm0 and xmm1, and conversions.

use super::super::super::{RAX, RCX};
use super::code::{slot, vector, Code, ABOVE, NOT_BELOW, NOT_ZERO, NO_PARITY, PARITY, ZERO};
use super::integers::{emit_widening, jump_unless_negative};
use crate::instrument::captures::form::{Kind, Operation};
use crate::protocol::capture_operation as op;

/// What floating-point operations have at the start of a program: nothing is told, the nearest number is taken (MXCSR).
pub const STATE: u32 = 0x1f80;

/// The prefix of scalar operations of a type.
fn prefix(kind: Kind) -> u8 {
    if kind == Kind::F64 {
        0xf2
    } else {
        0xf3
    }
}

impl Code<'_, '_> {
    fn load_float(&mut self, number: u8, operation: usize, kind: Kind) {
        self.emitter.load_gs_float(number, slot(self.program, operation), kind == Kind::F64);
    }

    /// rax = the bits of xmm0.
    fn take_float(&mut self, kind: Kind) {
        // movq rax, xmm0; or movd eax, xmm0
        self.emitter.bytes(if kind == Kind::F64 { &[0x66, 0x48, 0x0f, 0x7e, 0xc0] } else { &[0x66, 0x0f, 0x7e, 0xc0] });
    }

    /// rax = the low half of one of the program's vector registers; `false`: there is none of that number.
    pub fn load_vector(&mut self, number: u64) -> bool {
        match number {
            0..2 if self.uses_floats => self.emitter.load_gs(RAX, vector(number as usize)),
            // movq rax, xmm
            0..16 => {
                let number = number as u8;
                self.emitter.bytes(&[0x66, 0x48 | (number >> 3) << 2, 0x0f, 0x7e, 0xc0 | (number & 7) << 3]);
            }
            _ => return false,
        }
        true
    }
}

pub fn emit_arithmetic(code: &mut Code, one: &Operation) {
    let opcode = match one.code {
        op::ADD => 0x58,
        op::MULTIPLY => 0x59,
        op::SUBTRACT => 0x5c,
        _ => 0x5e,
    };
    code.load_float(0, usize::from(one.a), one.kind);
    code.load_float(1, usize::from(one.b), one.kind);
    code.emitter.bytes(&[prefix(one.kind), 0x0f, opcode, 0xc1]);
    code.take_float(one.kind);
}

/// Emits a comparison: with what is no number, nothing is equal and nothing is less (Intel SDM, UCOMISD).
pub fn emit_comparison(code: &mut Code, one: &Operation) {
    let (mut first, mut second) = (usize::from(one.a), usize::from(one.b));
    let is_order = matches!(one.code, op::LESS | op::LESS_EQUAL);
    if is_order {
        // The other way round the unordered ones are none.
        (first, second) = (second, first);
    }
    code.load_float(0, first, one.kind);
    code.load_float(1, second, one.kind);
    // ucomisd xmm0, xmm1, or ucomiss
    code.emitter.bytes(if one.kind == Kind::F64 { &[0x66, 0x0f, 0x2e, 0xc1] } else { &[0x0f, 0x2e, 0xc1] });
    if is_order {
        code.set_by(if one.code == op::LESS { ABOVE } else { NOT_BELOW });
        return;
    }
    let is_equal = one.code == op::EQUAL;
    code.emitter.set_byte(if is_equal { ZERO } else { NOT_ZERO }, RAX);
    code.emitter.set_byte(if is_equal { NO_PARITY } else { PARITY }, RCX);
    // and eax, ecx; or eax, ecx
    code.emitter.bytes(&[if is_equal { 0x21 } else { 0x09 }, 0xc8]);
    code.emitter.widen_byte(RAX);
}

pub fn emit_negation(code: &mut Code, a: usize, kind: Kind) {
    code.load(RAX, a);
    // btc rax, 63; btc eax, 31
    code.emitter.bytes(if kind == Kind::F64 { &[0x48, 0x0f, 0xba, 0xf8, 63] } else { &[0x0f, 0xba, 0xf8, 31] });
}

/// Emits a value of one type as one of another.
pub fn emit_conversion(code: &mut Code, a: usize, from: Kind, to: Kind) {
    match (from.is_float(), to.is_float()) {
        (false, false) => {
            code.load(RAX, a);
            emit_widening(code, to);
        }
        (false, true) => {
            code.load(RAX, a);
            emit_from_integer(code, from, to);
            code.take_float(to);
        }
        (true, false) => {
            code.load_float(0, a, from);
            // cvttsd2si rax, xmm0, or cvttss2si
            code.emitter.bytes(&[prefix(from), 0x48, 0x0f, 0x2c, 0xc0]);
            emit_widening(code, to);
        }
        (true, true) => {
            code.load_float(0, a, from);
            if from != to {
                // cvtsd2ss xmm0, xmm0, or cvtss2sd
                code.emitter.bytes(&[prefix(from), 0x0f, 0x5a, 0xc0]);
            }
            code.take_float(to);
        }
    }
}

/// Emits rax as a floating-point number to xmm0.
fn emit_from_integer(code: &mut Code, from: Kind, to: Kind) {
    // cvtsi2sd xmm0, rax, or cvtsi2ss
    let convert = [prefix(to), 0x48, 0x0f, 0x2a, 0xc0];
    if from != Kind::U64 {
        code.emitter.bytes(&convert);
        return;
    }
    // What looks negative is halved, its last bit kept for rounding, and doubled again.
    let is_small = jump_unless_negative(code.emitter);
    // mov rcx, rax; shr rax, 1; and ecx, 1; or rax, rcx
    code.emitter.bytes(&[0x48, 0x89, 0xc1, 0x48, 0xd1, 0xe8, 0x83, 0xe1, 0x01, 0x48, 0x09, 0xc8]);
    code.emitter.bytes(&convert);
    // addsd xmm0, xmm0, or addss
    code.emitter.bytes(&[prefix(to), 0x0f, 0x58, 0xc0]);
    let past = code.emitter.jump();
    code.emitter.bind(is_small);
    code.emitter.bytes(&convert);
    code.emitter.bind(past);
}
