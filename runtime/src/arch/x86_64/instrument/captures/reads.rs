//! How captures at probes read the program's memory: by instructions where that can't fault, or else by the kernel (cpu::probe::memory).

extern crate alloc;
use super::super::super::displacements::GS_SELF_ADDRESS;
use super::super::super::emit::Emitter;
use super::super::super::probe_backtrace::taker;
use super::super::super::probe_memory::{reader, text_reader, PAGE_MASK, WRITTEN_BYTES};
use super::super::super::{RAX, RCX, RDX, RSP};
use super::code::{slot, text, Code, ABOVE, BELOW, NEGATIVE, NOT_ABOVE, NOT_ZERO, ZERO};
use super::integers::emit_widening;
use super::{is_register, RED_ZONE_BYTES};
use crate::context::addresses::CachePc;
use crate::instrument::captures::form::{Kind, Operation};
use crate::instrument::captures::layout::Program;
use crate::protocol::{backtrace_end, capture_type, BacktraceHead};
use alloc::vec::Vec;
use core::mem::offset_of;

/// Emits the program's memory at value `a` to rax, which is operation `index`; `ends` get where it goes on if it can't be read.
pub fn emit_load(code: &mut Code, index: usize, a: usize, kind: Kind, ends: &mut Vec<CachePc>) {
    code.load(RAX, a);
    if code.is_at_call && is_register(&code.program.form.operations[a], RSP.0.into()) {
        // The call wrote that.
        emit_read(code, kind);
        return;
    }
    let emitter = &mut *code.emitter;
    let mut others = Vec::new();
    // Aligned, for the program may have alignment checks on: then it lies in one page.
    // test al, size - 1
    emitter.bytes(&[0xa8, kind.size_bytes() as u8 - 1]);
    others.push(emitter.jump_condition(NOT_ZERO));
    emitter.copy_register(RCX, RSP);
    emitter.operate(0x31, RCX, RAX);
    emitter.compare_immediate(RCX, PAGE_MASK as i32);
    others.push(emitter.jump_condition(ABOVE));
    emitter.copy_register(RCX, RSP);
    emitter.and_immediate(RCX, PAGE_MASK);
    emitter.compare_immediate(RCX, WRITTEN_BYTES as i32);
    others.push(emitter.jump_condition(BELOW));
    emit_read(code, kind);
    let read = code.emitter.address();
    let was_cold = code.emitter.set_cold(true);
    for place in others {
        code.emitter.bind(place);
    }
    let target = slot(code.program, index);
    code.emitter.load_immediate(RCX, kind.size_bytes().into());
    emit_call(code.emitter, reader(), target);
    ends.push(code.emitter.jump_condition(NOT_ZERO));
    code.load(RAX, index);
    emit_widening(code, kind);
    code.emitter.jump_to(read);
    code.emitter.set_cold(was_cold);
}

/// Emits what is at rax to rax.
fn emit_read(code: &mut Code, kind: Kind) {
    code.emitter.bytes(match kind.0 {
        capture_type::I8 => &[0x48, 0x0f, 0xbe, 0x00],
        capture_type::U8 => &[0x0f, 0xb6, 0x00],
        capture_type::I16 => &[0x48, 0x0f, 0xbf, 0x00],
        capture_type::U16 => &[0x0f, 0xb7, 0x00],
        capture_type::I32 => &[0x48, 0x63, 0x00],
        capture_type::U32 | capture_type::F32 => &[0x8b, 0x00],
        _ => &[0x48, 0x8b, 0x00],
    });
}

/// Emits the bytes at a value up to a zero byte, their number to rax; `ends` get where it goes on if memory ends before.
pub fn emit_string(code: &mut Code, index: usize, one: &Operation, ends: &mut Vec<CachePc>) {
    code.load(RAX, usize::from(one.a));
    code.emitter.load_immediate(RCX, one.immediate);
    emit_call(code.emitter, text_reader(), text(code.program, index));
    code.emitter.operate(0x85, RAX, RAX);
    ends.push(code.emitter.jump_condition(NEGATIVE));
}

/// Emits so many bytes at a value as another one says, within a limit; their number to rax.
pub fn emit_bytes(code: &mut Code, index: usize, one: &Operation, ends: &mut Vec<CachePc>) {
    code.load(RCX, usize::from(one.b));
    code.emitter.compare_immediate(RCX, one.immediate as i32);
    let is_within = code.emitter.jump_condition(NOT_ABOVE);
    code.emitter.load_immediate(RCX, one.immediate);
    code.emitter.bind(is_within);
    code.emitter.store_gs(slot(code.program, index), RCX);
    code.load(RAX, usize::from(one.a));
    emit_call(code.emitter, reader(), text(code.program, index));
    ends.push(code.emitter.jump_condition(NOT_ZERO));
    code.load(RAX, index);
}

/// Emits the calls that are open: their bytes, and how many these are.
pub fn emit_backtrace(code: &mut Code, index: usize, one: &Operation) {
    code.emitter.load_immediate(RAX, code.pc.raw());
    code.emitter.load_immediate(RCX, one.immediate);
    emit_call(code.emitter, taker(), text(code.program, index));
    code.emitter.store_gs(slot(code.program, index), RAX);
}

/// Emits branches that are taken where the controller is to be asked what is behind a capture's backtraces.
pub fn emit_unless_asked(emitter: &mut Emitter, program: &Program, leaving: &mut Vec<CachePc>) {
    for (index, _) in program.needed().filter(|(_, one)| one.is_backtrace()) {
        emitter.load_gs_byte(RAX, text(program, index) + offset_of!(BacktraceHead, end) as u32);
        emitter.compare_immediate(RAX, backtrace_end::ASKS.into());
        leaving.push(emitter.jump_condition(ZERO));
    }
}

/// Emits the thread pointer to rax.
pub fn emit_thread_pointer(code: &mut Code) {
    // rdfsbase rax
    code.emitter.bytes(&[0xf3, 0x48, 0x0f, 0xae, 0xc0]);
}

/// Emits a call of a routine, which is to bring bytes to the private block, at `target`.
fn emit_call(emitter: &mut Emitter, routine: u64, target: u32) {
    emitter.load_gs(RDX, GS_SELF_ADDRESS);
    emitter.add_immediate(RDX, target as i32);
    emitter.move_stack(-RED_ZONE_BYTES);
    emitter.call_far(routine);
    emitter.move_stack(RED_ZONE_BYTES);
}
