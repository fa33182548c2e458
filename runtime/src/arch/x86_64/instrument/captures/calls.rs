//! Calls that begin and return, by translated code: the table of a thread's open calls (instrument/captures/open_calls.rs), at rcx from gs.

extern crate alloc;
use super::super::super::displacements::{
    GS_CAPTURE_HAS_OPEN_CALLS, GS_CAPTURE_IS_AGAIN, GS_CAPTURE_IS_FETCHED, GS_CAPTURE_MATCHED, GS_CAPTURE_OTHER_CALLS,
    GS_CAPTURE_OUTCOME,
};
use super::super::super::emit::Emitter;
use super::super::super::{Gpr, RAX, RCX, RDX, RSP};
use super::code::{missing, slot, spilled, Code, NOT_ZERO, ZERO};
use super::{RETURN_PC, TIME};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::capture::UNFETCHED;
use crate::context::layout::OPEN_CALLS_OFFSET;
use crate::cpu::sys::clock::may_be_refused;
use crate::instrument::captures::form::Operation;
use crate::instrument::captures::layout::Program;
use crate::instrument::captures::open_calls::{
    OpenCall, KIND_SHIFT, OPEN_CALL_BYTES, RETURN_ADDRESS_BYTES, SETS, SET_SHIFTS, WAYS,
};
use crate::instrument::captures::places::Place;
use crate::protocol::capture_context;
use alloc::vec::Vec;
use core::mem::offset_of;

const WIDE: u8 = 0x48;
const SET_BYTES: u32 = (WAYS * OPEN_CALL_BYTES) as u32;
const STACK_POINTER: usize = offset_of!(OpenCall, head.stack_pointer);

/// The gs displacement of where the call lies that a capture of the place is taken for.
fn matched(index: usize) -> u32 {
    GS_CAPTURE_MATCHED + 8 * index as u32
}

/// Emits that the dispatcher is to look for calls that return now, where some are not in the table: it leads back to the start of all this.
pub fn emit_fetch(emitter: &mut Emitter, leaving: &mut Vec<CachePc>) {
    emitter.compare_gs_zero(GS_CAPTURE_OTHER_CALLS);
    let is_none = emitter.jump_condition(ZERO);
    emitter.compare_gs_zero(GS_CAPTURE_IS_FETCHED);
    let is_fetched = emitter.jump_condition(NOT_ZERO);
    emitter.store_gs_immediate(GS_CAPTURE_OUTCOME, UNFETCHED);
    leaving.push(emitter.jump());
    emitter.bind(is_none);
    emitter.bind(is_fetched);
    emitter.store_gs_immediate(GS_CAPTURE_IS_FETCHED, 0);
}

/// Emits a branch that is taken where no call that is open has returned now.
pub fn emit_quick_look(emitter: &mut Emitter, before_return: bool) -> Vec<CachePc> {
    emitter.compare_gs_zero(GS_CAPTURE_HAS_OPEN_CALLS);
    let mut nothing = [emitter.jump_condition(ZERO)].to_vec();
    emit_returned_set(emitter, before_return);
    let mut found = Vec::new();
    for way in 0..WAYS {
        emitter.compare_with_call(RAX, (way * OPEN_CALL_BYTES) as usize + STACK_POINTER);
        found.push(emitter.jump_condition(ZERO));
    }
    nothing.push(emitter.jump());
    for place in found {
        emitter.bind(place);
    }
    nothing
}

/// Emits that the call is found which a capture is taken for. Returns the branches that are taken where there is none.
pub fn emit_match(code: &mut Code) -> Vec<CachePc> {
    let (kind, pc, index, before_return) = (code.program.returned, code.pc, code.number, code.outlets.before_return);
    let emitter = &mut *code.emitter;
    emitter.store_gs_zero(matched(index));
    emitter.compare_gs_zero(GS_CAPTURE_HAS_OPEN_CALLS);
    let mut none = [emitter.jump_condition(ZERO)].to_vec();
    emit_returned_set(emitter, before_return);
    if before_return {
        // mov rdx, [rsp]: the program reads it next.
        emitter.bytes(&[WIDE, 0x8b, 0x14, 0x24]);
    } else {
        emitter.load_immediate(RDX, pc.raw());
    }
    let mut found = Vec::new();
    for way in 0..WAYS {
        emitter.compare_with_call(RAX, STACK_POINTER);
        let others = [emitter.jump_condition(NOT_ZERO), {
            emitter.compare_with_call(RDX, offset_of!(OpenCall, head.return_pc));
            emitter.jump_condition(NOT_ZERO)
        }];
        emitter.compare_call_kind(kind);
        found.push(emitter.jump_condition(ZERO));
        for place in others {
            emitter.bind(place);
        }
        if way + 1 < WAYS {
            emitter.add_immediate(RCX, OPEN_CALL_BYTES as i32);
        }
    }
    none.push(emitter.jump());
    for place in found {
        emitter.bind(place);
    }
    emitter.store_gs(matched(index), RCX);
    none
}

/// Emits that the call is open no more which capture `index` of the place was taken for.
pub fn emit_close(emitter: &mut Emitter, index: usize) {
    emitter.load_gs(RCX, matched(index));
    emitter.clear(RDX);
    emitter.store_in_call(STACK_POINTER, RDX);
}

/// Emits that everything is done once more for other calls that have returned now, where a call was found at all: from `start` on, but
/// only for those captures that are taken where calls return.
pub fn emit_rest(emitter: &mut Emitter, place: &Place, start: CachePc) {
    let returns = place.programs.iter().enumerate().filter(|(_, one)| one.returned != 0);
    let is_mixed = !place.is_of_returns();
    let mut again = Vec::new();
    for (index, _) in returns {
        emitter.compare_gs_word_zero(matched(index));
        again.push(emitter.jump_condition(NOT_ZERO));
    }
    if is_mixed {
        emitter.store_gs_immediate(GS_CAPTURE_IS_AGAIN, 0);
    }
    let over = emitter.jump();
    for place in again {
        emitter.bind(place);
    }
    if is_mixed {
        emitter.store_gs_immediate(GS_CAPTURE_IS_AGAIN, 1);
    }
    emitter.jump_to(start);
    emitter.bind(over);
}

/// Emits a branch around what is not done once more.
pub fn emit_unless_again(emitter: &mut Emitter) -> CachePc {
    emitter.compare_gs_zero(GS_CAPTURE_IS_AGAIN);
    emitter.jump_condition(NOT_ZERO)
}

/// Emits what was kept of the call that a capture is taken for to rax; `ends` get where it goes on if that is missing.
pub fn emit_kept(code: &mut Code, one: &Operation, ends: &mut Vec<CachePc>) {
    let (field, _) = one.kept();
    if code.program.returned == 0 {
        ends.push(code.emitter.jump());
        return;
    }
    code.emitter.load_gs(RCX, matched(code.number));
    // test dword gs:[rcx + missing], bit
    code.emitter.of_call(0, &[0xf7], 0, offset_of!(OpenCall, head.missing));
    code.emitter.dword(1 << field);
    ends.push(code.emitter.jump_condition(NOT_ZERO));
    code.emitter.load_from_call(RAX, offset_of!(OpenCall, values) + 8 * field);
}

/// Emits how long the call took that a capture is taken for, nanoseconds, to rax; `false`: nobody knows.
pub fn emit_duration(code: &mut Code) -> bool {
    if code.program.returned == 0 || may_be_refused() {
        return false;
    }
    let (index, tick_ns) = (code.number, code.outlets.tick_ns);
    let emitter = &mut *code.emitter;
    if code.outlets.before_return {
        // Where the call ends is when it is recorded.
        emitter.load_gs(RAX, spilled(TIME));
    } else {
        emitter.read_time_stamp();
    }
    emitter.load_gs(RCX, matched(index));
    // sub rax, gs:[rcx + tsc]
    emitter.of_call(WIDE, &[0x2b], RAX.0, offset_of!(OpenCall, head.tsc));
    emitter.load_immediate(RCX, tick_ns);
    // mul qword [rcx]; shrd rax, rdx, 32
    emitter.bytes(&[WIDE, 0xf7, 0x21, WIDE, 0x0f, 0xac, 0xd0, 32]);
    true
}

/// Emits when the call began that a capture is taken for, by the time stamp counter, or where the stack was then, to rax; `false`:
/// nobody knows.
pub fn emit_of_call(code: &mut Code, what: u64) -> bool {
    let is_time = what == u64::from(capture_context::BEGAN);
    if code.program.returned == 0 || is_time && may_be_refused() {
        return false;
    }
    code.emitter.load_gs(RCX, matched(code.number));
    code.emitter.load_from_call(RAX, if is_time { offset_of!(OpenCall, head.tsc) } else { STACK_POINTER });
    true
}

/// Emits the function of the call that capture `index` is taken for to rdx.
pub fn emit_function(emitter: &mut Emitter, index: usize) {
    emitter.load_gs(RDX, matched(index));
    // mov rdx, gs:[rdx + function]
    emitter.bytes(&[0x65, WIDE, 0x8b, 0x92]);
    emitter.dword(offset_of!(OpenCall, head.function) as u32);
}

/// Emits that a call begins in front of the block at `pc`; `leaving` get where the dispatcher is to do it.
pub fn emit_open(code: &mut Code, kind: u32, leaving: &mut Vec<CachePc>) {
    let (program, pc, armed, before_return) = (code.program, code.pc, code.outlets.armed, code.outlets.before_return);
    code.emitter.compare_gs_zero(GS_CAPTURE_HAS_OPEN_CALLS);
    leaving.push(code.emitter.jump_condition(ZERO));
    code.emitter.compare_gs_zero(GS_CAPTURE_OTHER_CALLS);
    leaving.push(code.emitter.jump_condition(NOT_ZERO));
    if before_return {
        // mov rdx, [rsp]: the call has just written it.
        code.emitter.bytes(&[WIDE, 0x8b, 0x14, 0x24]);
    } else {
        leaving.push(code.begin_reading());
        code.emitter.bytes(&[WIDE, 0x8b, 0x14, 0x24]);
        code.end_reading();
        emit_armed(code.emitter, kind, armed);
        leaving.push(code.emitter.jump_condition(NOT_ZERO));
    }
    let emitter = &mut *code.emitter;
    emitter.store_gs(spilled(RETURN_PC), RDX);
    emitter.copy_register(RAX, RSP);
    emit_set(emitter);
    emit_place_to_open(emitter, (program, kind), pc, leaving);
    emitter.load_gs(RDX, spilled(RETURN_PC));
    emitter.store_in_call(offset_of!(OpenCall, head.return_pc), RDX);
    emitter.load_immediate(RDX, pc.raw());
    emitter.store_in_call(offset_of!(OpenCall, head.function), RDX);
    // mov dword gs:[rcx + kind], kind; and of what is missing
    emitter.of_call(0, &[0xc7], 0, offset_of!(OpenCall, head.kind));
    emitter.dword(kind);
    emitter.of_call(0, &[0xc7], 0, offset_of!(OpenCall, head.missing));
    emitter.dword(0);
    emitter.clear(RDX);
    emitter.store_in_call(offset_of!(OpenCall, head.texts), RDX);
    for (index, field) in program.form.fields.iter().map(|field| usize::from(*field)).enumerate() {
        emitter.load_gs(RDX, slot(program, field));
        emitter.store_in_call(offset_of!(OpenCall, values) + 8 * index, RDX);
        if program.may_miss[field] {
            emitter.load_gs_byte(RDX, missing(program, field));
            // shl edx, index; or gs:[rcx + missing], edx
            emitter.bytes(&[0xc1, 0xe2, index as u8]);
            emitter.of_call(0, &[0x09], RDX.0, offset_of!(OpenCall, head.missing));
        }
    }
    if before_return {
        // It begins when that is recorded.
        emitter.load_gs(RAX, spilled(TIME));
    } else {
        // Late, for what is done here is not the function's.
        emitter.read_time_stamp();
    }
    emitter.store_in_call(offset_of!(OpenCall, head.tsc), RAX);
    // Last: from here on it is a call, all of it.
    emitter.copy_register(RAX, RSP);
    emitter.store_in_call(STACK_POINTER, RAX);
}

/// Emits whether it is known that calls of a kind which return to rdx are met there: zero if so.
fn emit_armed(emitter: &mut Emitter, kind: u32, armed: u64) {
    emitter.copy_register(RCX, RDX);
    // add cl, kind; movzx ecx, cl
    emitter.bytes(&[0x80, 0xc1, kind as u8, 0x0f, 0xb6, 0xc9]);
    emitter.load_immediate(RAX, armed);
    // mov rax, [rax + 8 * rcx]
    emitter.bytes(&[WIDE, 0x8b, 0x04, 0xc8]);
    emitter.load_immediate(RCX, u64::from(kind) << KIND_SHIFT);
    emitter.operate(0x31, RAX, RCX);
    emitter.operate(0x39, RAX, RDX);
}

/// Emits that rcx is where a call begins with a stack pointer of rax, its set being at rcx.
fn emit_place_to_open(emitter: &mut Emitter, (program, kind): (&Program, u32), pc: AppPc, leaving: &mut Vec<CachePc>) {
    let (mut same, mut found) = (Vec::new(), Vec::new());
    emitter.load_immediate(RDX, pc.raw());
    for _ in 0..WAYS {
        emitter.compare_with_call(RAX, STACK_POINTER);
        let is_other = emitter.jump_condition(NOT_ZERO);
        emitter.compare_with_call(RDX, offset_of!(OpenCall, head.function));
        let is_of_other = emitter.jump_condition(NOT_ZERO);
        emitter.compare_call_kind(kind);
        same.push(emitter.jump_condition(ZERO));
        emitter.bind(is_other);
        emitter.bind(is_of_other);
        emitter.add_immediate(RCX, OPEN_CALL_BYTES as i32);
    }
    emitter.clear(RDX);
    for _ in 0..WAYS {
        emitter.add_immediate(RCX, -(OPEN_CALL_BYTES as i32));
        emitter.compare_with_call(RDX, STACK_POINTER);
        found.push(emitter.jump_condition(ZERO));
    }
    leaving.push(emitter.jump());
    if program.tells_left {
        // The dispatcher tells of the one whose place this is.
        leaving.append(&mut same);
    }
    for place in found.into_iter().chain(same) {
        emitter.bind(place);
    }
}

/// Emits the stack pointer of a call that has returned now, or is about to, to rax, and its set to rcx; rdx is lost.
fn emit_returned_set(emitter: &mut Emitter, before_return: bool) {
    if before_return {
        emitter.copy_register(RAX, RSP);
    } else {
        // lea rax, [rsp - 8]
        emitter.bytes(&[WIDE, 0x8d, 0x44, 0x24, (RETURN_ADDRESS_BYTES as u8).wrapping_neg()]);
    }
    emit_set(emitter);
}

/// Emits the first place of a call whose stack pointer is rax to rcx; rdx is lost.
fn emit_set(emitter: &mut Emitter) {
    const SHIFT: u8 = SET_BYTES.trailing_zeros() as u8;
    emitter.copy_register(RCX, RAX);
    // shr rcx, first; mov rdx, rcx; shr rdx, second; xor ecx, edx; and ecx, sets - 1; shl ecx, by their size
    emitter.bytes(&[WIDE, 0xc1, 0xe9, SET_SHIFTS.0]);
    emitter.copy_register(RDX, RCX);
    emitter.bytes(&[WIDE, 0xc1, 0xea, SET_SHIFTS.1, 0x31, 0xd1, 0x81, 0xe1]);
    emitter.dword(SETS as u32 - 1);
    emitter.bytes(&[0xc1, 0xe1, SHIFT]);
    emitter.add_immediate(RCX, OPEN_CALLS_OFFSET as i32);
}

impl Emitter<'_> {
    /// An instruction on a field of the call at gs:rcx.
    fn of_call(&mut self, rex: u8, opcode: &[u8], register: u8, offset: usize) {
        self.bytes(&[0x65]);
        if rex != 0 {
            self.bytes(&[rex]);
        }
        self.bytes(opcode);
        self.bytes(&[0x81 | register << 3]);
        self.dword(offset as u32);
    }

    /// mov register, gs:[rcx + offset], of the first eight registers
    fn load_from_call(&mut self, register: Gpr, offset: usize) {
        self.of_call(WIDE, &[0x8b], register.0, offset);
    }

    /// mov gs:[rcx + offset], register
    fn store_in_call(&mut self, offset: usize, register: Gpr) {
        self.of_call(WIDE, &[0x89], register.0, offset);
    }

    /// cmp register, gs:[rcx + offset]
    fn compare_with_call(&mut self, register: Gpr, offset: usize) {
        self.of_call(WIDE, &[0x3b], register.0, offset);
    }

    /// cmp dword gs:[rcx + kind], kind
    fn compare_call_kind(&mut self, kind: u32) {
        self.of_call(0, &[0x81], 7, offset_of!(OpenCall, head.kind));
        self.dword(kind);
    }
}
