//! What is captured is written into the thread's ring by translated code, where that is numbers and there is room.
//!
//! The thread is the only one that writes there, and the controller reads nothing before the head has moved: the last instruction that
//! matters moves it, for all records of the place. Whatever is in the way, the thread leaves before anything is written, and the
//! dispatcher does the same: that waits for room, drops and counts what it must, and keeps the clock of the status page.

extern crate alloc;
use super::super::super::displacements::{
    GS_CAPTURE_OUTCOME, GS_CAPTURE_RING, GS_CAPTURE_SLOT, GS_PROBE_RECORD, GS_TID,
};
use super::super::super::emit::Emitter;
use super::super::super::{Gpr, RAX, RCX, RDX};
use super::code::{missing, slot, spilled, text as text_bytes, ABOVE, GREATER, NOT_ABOVE, ZERO};
use super::{calls, TIME};
use crate::context::addresses::{AppPc, CachePc};
use crate::cpu::sys::clock::may_be_refused;
use crate::instrument::captures::layout::{Action, Program};
use crate::instrument::captures::places::{Outlets, Place};
use crate::protocol::{
    capture_operation as op, record_kind, CaptureRecord, ContinuationRecord, ThreadSlot, CAPTURE_RECORD_VALUES,
    CONTINUATION_PAYLOAD_BYTES, RECORD_BYTES,
};
use alloc::vec::Vec;
use core::mem::offset_of;

const WORD_BYTES: usize = 8;
/// Where a continuation's bytes are.
const PAYLOAD: usize = offset_of!(ContinuationRecord, payload);
const RECORD_SIZE: usize = RECORD_BYTES as usize;
const PAYLOAD_BYTES: usize = CONTINUATION_PAYLOAD_BYTES as usize;
/// The dispatcher writes what comes so many cycles after it kept the clock: as often as it would do that (Shared::stamp_now_and_then).
const STAMPED_CYCLES: i32 = 1 << 24;

/// So many continuations a record has at most that is written by machine code where some of it is bytes.
const MAX_TEXT_PARTS: usize = 20;

/// Bytes of a capture's record with its continuations, at most.
fn record_bytes(program: &Program) -> usize {
    RECORD_SIZE * (1 + payload_bytes(program).div_ceil(PAYLOAD_BYTES))
}

/// Bytes that are in its continuations, at most.
fn payload_bytes(program: &Program) -> usize {
    let n_others = program.form.fields.len().saturating_sub(CAPTURE_RECORD_VALUES as usize);
    n_others * WORD_BYTES + text_of(program).map_or(0, |text| program.text_room(text))
}

/// The operation that is its first field which is bytes.
fn text_of(program: &Program) -> Option<usize> {
    let field = (0..program.form.fields.len()).find(|field| program.is_text_field(*field))?;
    Some(program.form.fields[field].into())
}

/// Whether machine code writes a record at a probe: one of its fields may be bytes, which were read.
pub fn can_write_one(program: &Program) -> bool {
    let n_texts = (0..program.form.fields.len()).filter(|field| program.is_text_field(*field)).count();
    let are_read = |text: usize| matches!(program.form.operations[text].code, op::STRING | op::BYTES | op::BACKTRACE);
    n_texts == 0
        || n_texts == 1
            && text_of(program).is_some_and(are_read)
            && payload_bytes(program).div_ceil(PAYLOAD_BYTES) <= MAX_TEXT_PARTS
}

/// Bytes of all records of a place together, at most.
pub fn place_bytes(place: &Place) -> usize {
    place.programs.iter().filter(|one| one.action == Action::Record).map(record_bytes).sum()
}

/// Whether translated code writes what is captured at a place.
pub fn can_write(place: &Place, ring_bytes: u32) -> bool {
    place.is_written_there() && place_bytes(place) <= (ring_bytes / 2) as usize && !may_be_refused()
}

/// Emits the records of those whose condition held, which is one at least; `leaving` get where the dispatcher is to do it.
pub fn emit(emitter: &mut Emitter, place: &Place, pc: AppPc, outlets: Outlets, leaving: &mut Vec<CachePc>) {
    emit_time(emitter);
    emit_room(emitter, place, &outlets, leaving);
    let is_one = place.programs.len() == 1;
    for (index, program) in place.programs.iter().enumerate() {
        let over = (!is_one).then(|| {
            emitter.test_gs(GS_CAPTURE_OUTCOME, 1 << index);
            emitter.jump_condition(ZERO)
        });
        emit_record(emitter, program, index, pc, outlets.ring_bytes);
        if let Some(over) = over {
            emitter.bind(over);
        }
    }
    emit_end(emitter);
}

/// Emits the time of all records of the place.
pub fn emit_time(emitter: &mut Emitter) {
    emitter.read_time_stamp();
    emitter.store_gs(spilled(TIME), RAX);
}

/// Emits whether there is room for the records of a place, whose time is known, and that to rcx up to which the ring is filled; `leaving` get
/// where the dispatcher is to write them.
pub fn emit_room(emitter: &mut Emitter, place: &Place, outlets: &Outlets, leaving: &mut Vec<CachePc>) {
    // sub rax, [rdx]: a thread on another processor may have kept it later than now is.
    emitter.load_gs(RAX, spilled(TIME));
    emitter.load_immediate(RDX, outlets.clock);
    emitter.bytes(&[0x48, 0x2b, 0x02]);
    emitter.compare_immediate(RAX, STAMPED_CYCLES);
    leaving.push(emitter.jump_condition(GREATER));
    emit_head(emitter);
    if outlets.overwrites {
        return;
    }
    let (size, ring_bytes) = (place_bytes(place) as u32, outlets.ring_bytes);
    // mov rax, rcx; sub rax, [rdx + ring_tail]
    emitter.copy_register(RAX, RCX);
    emitter.bytes(&[0x48, 0x2b, 0x42, offset_of!(ThreadSlot, ring_tail) as u8]);
    emitter.compare_immediate(RAX, (ring_bytes - size) as i32);
    leaving.push(emitter.jump_condition(ABOVE));
}

/// Emits up to where the ring is filled to rcx.
pub fn emit_head(emitter: &mut Emitter) {
    emitter.load_gs(RDX, GS_CAPTURE_SLOT);
    emitter.load_at(RCX, RDX, offset_of!(ThreadSlot, ring_head) as u8);
}

/// Emits that it is filled up to rcx now.
pub fn emit_end(emitter: &mut Emitter) {
    emitter.load_gs(RDX, GS_CAPTURE_SLOT);
    emitter.store_at(RDX, offset_of!(ThreadSlot, ring_head) as u8, RCX);
}

/// Emits one capture's record where rcx counts to, and moves that behind it.
pub fn emit_record(emitter: &mut Emitter, program: &Program, number: usize, pc: AppPc, ring_bytes: u32) {
    let text = text_of(program);
    let n_parts = if text.is_some() { 0 } else { record_bytes(program) / RECORD_SIZE - 1 };
    if let Some(text) = text.filter(|text| program.may_miss[*text]) {
        // What is missing has no bytes.
        emitter.compare_gs_byte_zero(missing(program, text));
        let is_there = emitter.jump_condition(ZERO);
        emitter.store_gs_zero(slot(program, text));
        emitter.bind(is_there);
    }
    let fields: Vec<usize> = program.form.fields.iter().map(|field| usize::from(*field)).collect();
    emit_place(emitter, ring_bytes);
    if text.is_some() {
        emitter.store_gs(GS_PROBE_RECORD, RAX);
    }
    emitter.store_dword_at(offset_of!(CaptureRecord, kind) as u8, head(record_kind::CAPTURE, n_parts));
    emitter.load_gs32(RDX, GS_TID);
    emitter.store_low(offset_of!(CaptureRecord, tid));
    if program.returned == 0 {
        emitter.load_immediate(RDX, pc.raw());
    } else {
        calls::emit_function(emitter, number);
    }
    emitter.store_at(RAX, offset_of!(CaptureRecord, pc) as u8, RDX);
    emitter.load_gs(RDX, spilled(TIME));
    emitter.store_at(RAX, offset_of!(CaptureRecord, tsc) as u8, RDX);
    emitter.store_dword_at(offset_of!(CaptureRecord, number) as u8, program.number);
    emitter.store_dword_at(offset_of!(CaptureRecord, missing) as u8, 0);
    for (index, operation) in fields.iter().enumerate().filter(|(_, operation)| program.may_miss[**operation]) {
        emitter.load_gs_byte(RDX, missing(program, *operation));
        // shl edx, index; or [rax + missing], edx
        emitter.bytes(&[0xc1, 0xe2, index as u8, 0x09, 0x50, offset_of!(CaptureRecord, missing) as u8]);
    }
    let (first, others) = fields.split_at(fields.len().min(CAPTURE_RECORD_VALUES as usize));
    for (index, operation) in first.iter().enumerate() {
        emitter.load_gs(RDX, slot(program, *operation));
        emitter.store_at(RAX, (offset_of!(CaptureRecord, values) + WORD_BYTES * index) as u8, RDX);
    }
    emitter.add_immediate(RCX, RECORD_SIZE as i32);
    match text {
        Some(text) => emit_text(emitter, program, others, text, ring_bytes),
        None => (0..n_parts).for_each(|part| emit_words(emitter, program, others, part, ring_bytes)),
    }
}

/// Emits the beginning of a continuation: the words of the fields that are in it; one may lie in two of these.
fn emit_words(emitter: &mut Emitter, program: &Program, others: &[usize], part: usize, ring_bytes: u32) {
    emit_place(emitter, ring_bytes);
    emitter.store_dword_at(0, head(record_kind::CONTINUATION, part));
    let start = part * PAYLOAD_BYTES;
    for (index, operation) in others.iter().enumerate() {
        let at = index * WORD_BYTES;
        if at + WORD_BYTES <= start || at >= start + PAYLOAD_BYTES {
            continue;
        }
        // In halves: the program may have alignment checks on.
        emitter.load_gs(RDX, slot(program, *operation));
        if at >= start {
            emitter.store_low(PAYLOAD + at - start);
        }
        emitter.bytes(&[0x48, 0xc1, 0xea, 32]); // shr rdx, 32
        if at + WORD_BYTES <= start + PAYLOAD_BYTES {
            emitter.store_low(PAYLOAD + at + WORD_BYTES / 2 - start);
        }
    }
    emitter.add_immediate(RCX, RECORD_SIZE as i32);
}

/// Emits continuations with words, and behind them the bytes of operation `text`, as many as these take. More bytes may be copied than there
/// are, for which there is room.
fn emit_text(emitter: &mut Emitter, program: &Program, others: &[usize], text: usize, ring_bytes: u32) {
    const HALF: usize = WORD_BYTES / 2;
    let (first, end) = (others.len() * WORD_BYTES, payload_bytes(program));
    let mut over = Vec::new();
    for part in 0..end.div_ceil(PAYLOAD_BYTES) {
        let start = part * PAYLOAD_BYTES;
        if let Some(n_before) = start.checked_sub(first) {
            emitter.load_gs(RDX, slot(program, text));
            emitter.compare_immediate(RDX, n_before as i32);
            over.push(emitter.jump_condition(NOT_ABOVE));
        }
        emit_words(emitter, program, others, part, ring_bytes);
        for at in (start.max(first)..end.min(start + PAYLOAD_BYTES)).step_by(HALF) {
            emitter.load_gs32(RDX, text_bytes(program, text) + (at - first) as u32);
            emitter.store_low(PAYLOAD + at - start);
        }
        emitter.load_gs(RDX, GS_PROBE_RECORD);
        // mov word [rdx + continuations], part + 1
        emitter.bytes(&[0x66, 0xc7, 0x42, offset_of!(CaptureRecord, continuations) as u8, part as u8 + 1, 0]);
    }
    for place in over {
        emitter.bind(place);
    }
}

/// The first words of a record: its kind, and a number.
fn head(kind: u16, number: usize) -> u32 {
    u32::from(kind) | (number as u32) << 16
}

/// Emits where in the ring rcx counts to, to rax.
fn emit_place(emitter: &mut Emitter, ring_bytes: u32) {
    emitter.copy_register(RAX, RCX);
    emitter.and_immediate(RAX, ring_bytes - 1);
    // add rax, gs:[ring]
    emitter.add_gs(RAX, GS_CAPTURE_RING);
}

impl Emitter<'_> {
    /// rdtsc; shl rdx, 32; or rax, rdx
    pub fn read_time_stamp(&mut self) {
        self.bytes(&[0x0f, 0x31, 0x48, 0xc1, 0xe2, 32, 0x48, 0x09, 0xd0]);
    }

    /// mov register, [base + offset], of the first eight registers but rsp
    fn load_at(&mut self, register: Gpr, base: Gpr, offset: u8) {
        self.bytes(&[0x48, 0x8b, 0x40 | register.0 << 3 | base.0, offset]);
    }

    /// mov [base + offset], register
    fn store_at(&mut self, base: Gpr, offset: u8, register: Gpr) {
        self.bytes(&[0x48, 0x89, 0x40 | register.0 << 3 | base.0, offset]);
    }

    /// mov [rax + offset], edx
    fn store_low(&mut self, offset: usize) {
        self.bytes(&[0x89, 0x50, offset as u8]);
    }

    /// mov dword [rax + offset], value
    fn store_dword_at(&mut self, offset: u8, value: u32) {
        self.bytes(&[0xc7, 0x40, offset]);
        self.dword(value);
    }
}

const _: () = assert!(offset_of!(ThreadSlot, ring_tail) < 128 && RECORD_SIZE < 128);
