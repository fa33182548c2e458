//! What is captured is written into the thread's ring by translated code, where that is numbers and there is room.
//!
//! The thread is the only one that writes there, and the controller reads nothing before the head has moved: the last instruction that
//! matters moves it, for all records of the place. Whatever is in the way, the thread leaves before anything is written, and the
//! dispatcher does the same: that waits for room, drops and counts what it must, and keeps the clock of the status page.

extern crate alloc;
use super::super::super::displacements::{GS_CAPTURE_OUTCOME, GS_CAPTURE_RING, GS_CAPTURE_SLOT, GS_TID};
use super::super::super::emit::Emitter;
use super::super::super::{Gpr, RAX, RCX, RDX};
use super::code::{missing, slot, spilled, ABOVE, GREATER, ZERO};
use super::{calls, TIME};
use crate::context::addresses::{AppPc, CachePc};
use crate::cpu::sys::clock::may_be_refused;
use crate::instrument::captures::layout::Program;
use crate::instrument::captures::places::{Outlets, Place};
use crate::protocol::{
    record_kind, CaptureRecord, ContinuationRecord, ThreadSlot, CAPTURE_RECORD_VALUES, CONTINUATION_PAYLOAD_BYTES,
    RECORD_BYTES,
};
use alloc::vec::Vec;
use core::mem::offset_of;

const WORD_BYTES: usize = 8;
const RECORD_SIZE: usize = RECORD_BYTES as usize;
const PAYLOAD_BYTES: usize = CONTINUATION_PAYLOAD_BYTES as usize;
/// The dispatcher writes what comes so many cycles after it kept the clock: as often as it would do that (Shared::stamp_now_and_then).
const STAMPED_CYCLES: i32 = 1 << 24;

/// Bytes of a capture's record with its continuations.
fn record_bytes(program: &Program) -> usize {
    let n_others = program.form.fields.len().saturating_sub(CAPTURE_RECORD_VALUES as usize);
    RECORD_SIZE * (1 + (n_others * WORD_BYTES).div_ceil(PAYLOAD_BYTES))
}

fn place_bytes(place: &Place) -> usize {
    place.programs.iter().map(record_bytes).sum()
}

/// Whether translated code writes what is captured at a place.
pub fn can_write(place: &Place, ring_bytes: u32) -> bool {
    place.is_written_there() && place_bytes(place) <= (ring_bytes / 2) as usize && !may_be_refused()
}

/// Emits the records of those whose condition held, which is one at least; `leaving` get where the dispatcher is to do it.
pub fn emit(emitter: &mut Emitter, place: &Place, pc: AppPc, outlets: Outlets, leaving: &mut Vec<CachePc>) {
    emitter.read_time_stamp();
    emitter.store_gs(spilled(TIME), RAX);
    // sub rax, [rdx]: a thread on another processor may have kept it later than now is.
    emitter.load_immediate(RDX, outlets.clock);
    emitter.bytes(&[0x48, 0x2b, 0x02]);
    emitter.compare_immediate(RAX, STAMPED_CYCLES);
    leaving.push(emitter.jump_condition(GREATER));
    emitter.load_gs(RDX, GS_CAPTURE_SLOT);
    emitter.load_at(RCX, RDX, offset_of!(ThreadSlot, ring_head) as u8);
    let (size, ring_bytes) = (place_bytes(place) as u32, outlets.ring_bytes);
    // mov rax, rcx; sub rax, [rdx + ring_tail]
    emitter.copy_register(RAX, RCX);
    emitter.bytes(&[0x48, 0x2b, 0x42, offset_of!(ThreadSlot, ring_tail) as u8]);
    emitter.compare_immediate(RAX, (ring_bytes - size) as i32);
    leaving.push(emitter.jump_condition(ABOVE));
    let is_one = place.programs.len() == 1;
    for (index, program) in place.programs.iter().enumerate() {
        let over = (!is_one).then(|| {
            emitter.test_gs(GS_CAPTURE_OUTCOME, 1 << index);
            emitter.jump_condition(ZERO)
        });
        emit_record(emitter, program, index, pc, ring_bytes);
        if let Some(over) = over {
            emitter.bind(over);
        }
    }
    emitter.load_gs(RDX, GS_CAPTURE_SLOT);
    emitter.store_at(RDX, offset_of!(ThreadSlot, ring_head) as u8, RCX);
}

/// Emits one capture's record where rcx counts to, and moves that behind it.
fn emit_record(emitter: &mut Emitter, program: &Program, number: usize, pc: AppPc, ring_bytes: u32) {
    let n_parts = record_bytes(program) / RECORD_SIZE - 1;
    let fields: Vec<usize> = program.form.fields.iter().map(|field| usize::from(*field)).collect();
    emit_place(emitter, ring_bytes);
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
    emit_others(emitter, program, others, n_parts, ring_bytes);
}

/// Emits the words of the fields that are in continuations; one may lie in two of these.
fn emit_others(emitter: &mut Emitter, program: &Program, others: &[usize], n_parts: usize, ring_bytes: u32) {
    const PAYLOAD: usize = offset_of!(ContinuationRecord, payload);
    for part in 0..n_parts {
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
