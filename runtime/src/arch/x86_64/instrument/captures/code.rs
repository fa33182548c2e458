//! The instructions that captures are made of, and where their values are.

extern crate alloc;
use super::super::super::displacements::{
    GS_CAPTURE_LANDING, GS_CAPTURE_MISSING, GS_CAPTURE_SPILLED, GS_CAPTURE_TEXTS, GS_CAPTURE_VALUES, GS_CAPTURE_VECTORS,
};
use super::super::super::emit::Emitter;
use super::super::super::{Gpr, RAX, RCX};
use crate::context::addresses::{AppPc, CachePc};
use crate::instrument::captures::form::Operation;
use crate::instrument::captures::layout::Program;
use crate::instrument::captures::places::Outlets;
use crate::protocol::capture_operation as op;
use alloc::vec::Vec;

/// Condition codes of branches and of `setcc` (Intel SDM volume 2, appendix B.1.4).
pub const BELOW: u8 = 2;
pub const NOT_BELOW: u8 = 3;
pub const ZERO: u8 = 4;
pub const NOT_ZERO: u8 = 5;
pub const NOT_ABOVE: u8 = 6;
pub const ABOVE: u8 = 7;
pub const NEGATIVE: u8 = 8;
pub const PARITY: u8 = 10;
pub const NO_PARITY: u8 = 11;
pub const LESS: u8 = 12;
pub const NOT_GREATER: u8 = 14;
pub const GREATER: u8 = 15;

/// REX.W.
const WIDE: u8 = 0x48;

/// The gs displacement of an operation's value.
pub fn slot(program: &Program, operation: usize) -> u32 {
    GS_CAPTURE_VALUES + 8 * program.slot(operation)
}

/// That of the byte which says whether it is missing.
pub fn missing(program: &Program, operation: usize) -> u32 {
    GS_CAPTURE_MISSING + program.slot(operation)
}

/// That of its bytes.
pub fn text(program: &Program, operation: usize) -> u32 {
    GS_CAPTURE_TEXTS + program.texts[operation]
}

/// Those of what was put aside.
pub fn spilled(index: usize) -> u32 {
    GS_CAPTURE_SPILLED + 8 * index as u32
}

pub fn vector(index: usize) -> u32 {
    GS_CAPTURE_VECTORS + 16 * index as u32
}

/// One capture under construction.
pub struct Code<'e, 'a> {
    pub emitter: &'e mut Emitter<'a>,
    pub program: &'e Program,
    /// Which of the place's captures it is.
    pub number: usize,
    /// Vector registers were put aside.
    pub uses_floats: bool,
    /// It is a probe where a call begins, or is about to return: the return address is where the stack pointer leads.
    pub is_at_call: bool,
    /// Where the block is.
    pub pc: AppPc,
    pub outlets: Outlets,
}

impl Code<'_, '_> {
    pub fn load(&mut self, register: Gpr, operation: usize) {
        self.emitter.load_gs(register, slot(self.program, operation));
    }

    /// Emits that a value is missing until `end_missing`, and leads there if an operand is. What `&&` and `||` do not ask for does not count.
    pub fn begin_missing(&mut self, index: usize, one: &Operation) -> Vec<CachePc> {
        self.emitter.store_gs_byte(missing(self.program, index), 1);
        let is_asked_later = matches!(one.code, op::LOGICAL_AND | op::LOGICAL_OR);
        let operands: Vec<usize> = one.operands().take(if is_asked_later { 1 } else { 2 }).collect();
        operands.into_iter().filter_map(|operand| self.jump_if_missing(operand)).collect()
    }

    pub fn end_missing(&mut self, index: usize) {
        self.emitter.store_gs_byte(missing(self.program, index), 0);
    }

    /// A branch that is taken where a value is missing; `None`: it never is.
    pub fn jump_if_missing(&mut self, operation: usize) -> Option<CachePc> {
        self.program.may_miss[operation].then(|| {
            self.emitter.compare_gs_byte_zero(missing(self.program, operation));
            self.emitter.jump_condition(NOT_ZERO)
        })
    }

    /// Branches that are taken where a value is 0 or missing.
    pub fn jump_unless(&mut self, operation: usize) -> Vec<CachePc> {
        let mut places: Vec<CachePc> = self.jump_if_missing(operation).into_iter().collect();
        self.emitter.compare_gs_word_zero(slot(self.program, operation));
        places.push(self.emitter.jump_condition(ZERO));
        places
    }

    /// From here on a fault goes on at the place that is returned, for `bind`; rcx is lost.
    pub fn begin_reading(&mut self) -> CachePc {
        // lea rcx, [rip + landing]
        self.emitter.bytes(&[WIDE, 0x8d, 0x0d]);
        let place = self.emitter.address();
        self.emitter.dword(0);
        self.emitter.store_gs(GS_CAPTURE_LANDING, RCX);
        place
    }

    pub fn end_reading(&mut self) {
        self.emitter.store_gs_zero(GS_CAPTURE_LANDING);
    }

    /// rax = 1 where the condition holds, or else 0.
    pub fn set_by(&mut self, condition: u8) {
        self.emitter.set_byte(condition, RAX);
        self.emitter.widen_byte(RAX);
    }
}

impl Emitter<'_> {
    /// cmp dword gs:[displacement], 0
    pub fn compare_gs_zero(&mut self, displacement: u32) {
        self.gs_operand(&[], 0, &[0x83], 7, displacement, 1);
        self.bytes(&[0]);
    }

    /// cmp qword gs:[displacement], 0
    pub fn compare_gs_word_zero(&mut self, displacement: u32) {
        self.gs_operand(&[], WIDE, &[0x83], 7, displacement, 1);
        self.bytes(&[0]);
    }

    /// test dword gs:[displacement], mask
    pub fn test_gs(&mut self, displacement: u32, mask: u32) {
        self.gs_operand(&[], 0, &[0xf7], 0, displacement, 4);
        self.dword(mask);
    }

    /// movzx register (32 bits), byte gs:[displacement]
    pub fn load_gs_byte(&mut self, register: Gpr, displacement: u32) {
        self.gs_operand(&[], 0, &[0x0f, 0xb6], register.0, displacement, 0);
    }

    /// add register, qword gs:[displacement]
    pub fn add_gs(&mut self, register: Gpr, displacement: u32) {
        self.gs_operand(&[], WIDE, &[0x03], register.0, displacement, 0);
    }

    /// cmp register, qword gs:[displacement]
    pub fn compare_with_gs(&mut self, register: Gpr, displacement: u32) {
        self.gs_operand(&[], WIDE, &[0x3b], register.0, displacement, 0);
    }

    /// mov byte gs:[displacement], value
    pub fn store_gs_byte(&mut self, displacement: u32, value: u8) {
        self.gs_operand(&[], 0, &[0xc6], 0, displacement, 1);
        self.bytes(&[value]);
    }

    /// or dword gs:[displacement], immediate
    pub fn or_gs(&mut self, displacement: u32, immediate: u32) {
        self.gs_operand(&[], 0, &[0x81], 1, displacement, 4);
        self.dword(immediate);
    }

    /// movups gs:[displacement], xmm
    pub fn store_gs_vector(&mut self, displacement: u32, number: u8) {
        self.gs_operand(&[], 0, &[0x0f, 0x11], number, displacement, 0);
    }

    /// movups xmm, gs:[displacement]
    pub fn load_gs_vector(&mut self, number: u8, displacement: u32) {
        self.gs_operand(&[], 0, &[0x0f, 0x10], number, displacement, 0);
    }

    /// stmxcsr gs:[displacement]
    pub fn store_gs_float_state(&mut self, displacement: u32) {
        self.gs_operand(&[], 0, &[0x0f, 0xae], 3, displacement, 0);
    }

    /// ldmxcsr gs:[displacement]
    pub fn load_gs_float_state(&mut self, displacement: u32) {
        self.gs_operand(&[], 0, &[0x0f, 0xae], 2, displacement, 0);
    }

    /// movsd xmm, gs:[displacement], or movss
    pub fn load_gs_float(&mut self, number: u8, displacement: u32, is_double: bool) {
        self.gs_operand(&[if is_double { 0xf2 } else { 0xf3 }], 0, &[0x0f, 0x10], number, displacement, 0);
    }

    /// pushfq
    pub fn push_flags(&mut self) {
        self.bytes(&[0x9c]);
    }

    /// pop register, one of the first eight
    pub fn pop(&mut self, register: Gpr) {
        self.bytes(&[0x58 | register.0]);
    }

    /// An operation of 64 bits on two of the first eight registers: the opcode of its form with the target in r/m.
    pub fn operate(&mut self, opcode: u8, target: Gpr, source: Gpr) {
        self.bytes(&[WIDE, opcode, 0xc0 | source.0 << 3 | target.0]);
    }

    /// An operation of 64 bits of the group F7: not 2, neg 3, div 6, idiv 7.
    pub fn operate_alone(&mut self, operation: u8, register: Gpr) {
        self.bytes(&[WIDE, 0xf7, 0xc0 | operation << 3 | register.0]);
    }

    /// A shift of rax by cl: shl 4, shr 5, sar 7.
    pub fn shift_by_cl(&mut self, operation: u8) {
        self.bytes(&[WIDE, 0xd3, 0xc0 | operation << 3]);
    }

    /// cmp register, immediate (64 bits, the immediate with its sign)
    pub fn compare_immediate(&mut self, register: Gpr, immediate: i32) {
        self.bytes(&[WIDE, 0x81, 0xf8 | register.0]);
        self.dword(immediate.cast_unsigned());
    }

    /// and register (32 bits), immediate
    pub fn and_immediate(&mut self, register: Gpr, immediate: u32) {
        self.bytes(&[0x81, 0xe0 | register.0]);
        self.dword(immediate);
    }

    /// xor register, register (32 bits)
    pub fn clear(&mut self, register: Gpr) {
        self.bytes(&[0x31, 0xc0 | register.0 << 3 | register.0]);
    }

    /// setcc of rax's or rcx's low byte
    pub fn set_byte(&mut self, condition: u8, register: Gpr) {
        self.bytes(&[0x0f, 0x90 | condition, 0xc0 | register.0]);
    }

    /// movzx register (32 bits), its low byte
    pub fn widen_byte(&mut self, register: Gpr) {
        self.bytes(&[0x0f, 0xb6, 0xc0 | register.0 << 3 | register.0]);
    }

    /// The processor's number by rdtscp, to rax; rcx and rdx are lost
    pub fn read_processor(&mut self, mask: u32) {
        // rdtscp; mov eax, ecx
        self.bytes(&[0x0f, 0x01, 0xf9, 0x89, 0xc8]);
        self.and_immediate(RAX, mask);
    }

    /// The time stamp counter to rax, and the processor's number to rcx, by rdtscp; rdx is lost
    pub fn read_processor_and_time(&mut self, mask: u32) {
        // rdtscp; shl rdx, 32; or rax, rdx
        self.bytes(&[0x0f, 0x01, 0xf9, 0x48, 0xc1, 0xe2, 32, 0x48, 0x09, 0xd0]);
        self.and_immediate(RCX, mask);
    }

    /// movzx edx, byte [rax + rcx]
    pub fn load_byte_at(&mut self) {
        self.bytes(&[0x0f, 0xb6, 0x14, 0x08]);
    }

    /// mov byte gs:[displacement + rcx], dl
    pub fn store_gs_byte_at_rcx(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0x88, 0x91]);
        self.dword(displacement);
    }

    /// cmp dl, byte gs:[displacement + rcx]
    pub fn compare_gs_byte_at_rcx(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0x3a, 0x91]);
        self.dword(displacement);
    }
}
