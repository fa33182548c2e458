//! Captures as machine code: the values of a place's forms are worked out in front of a block, in straight lines.
//!
//! Each operation leaves its value in its slot (instrument/captures/layout.rs). rax, rcx, rdx and the flags are put aside for it, and two vector
//! registers where floating-point numbers are meant. Where no condition holds the block goes on. Otherwise numbers are written into
//! the thread's ring (`records`); what else is to be done the dispatcher does, for which the thread leaves, all registers in place,
//! and comes back behind all this (dispatch/apart/captures.rs).
//!
//! In translated code memory of the program's is read by instructions that may fault. Before them `capture.landing` says where that goes on
//! (cpu::signal::faults), with the value missing. A fault must come for it: where the program blocks faults the dispatcher is asked first.

mod aggregated;
#[cfg(test)]
mod aggregated_tests;
pub mod at_probes;
mod calls;
mod code;
mod floats;
mod integers;
#[cfg(test)]
pub mod native;
mod reads;
mod records;
#[cfg(test)]
mod tests;
mod texts;

extern crate alloc;
use super::super::displacements::{
    GS_BLOCKS_FAULTS, GS_CAPTURE_BEHIND, GS_CAPTURE_FLOAT_STATE, GS_CAPTURE_OUTCOME, GS_CAPTURE_OWN_FLOAT_STATE,
    GS_CAPTURE_PREPARED, GS_PROBE_PROCESSOR, GS_STACK_TOP, GS_TID,
};
use super::super::emit::Emitter;
use super::super::features::tells_processor;
use super::super::{Gpr, RAX, RCX, RDX, RSP};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::capture::UNPREPARED;
use crate::context::numbers::ExitId;
use crate::cpu::sys::clock::may_be_refused;
use crate::instrument::captures::form::{Kind, Operation};
use crate::instrument::captures::layout::{is_duration, is_of_call, is_thread_pointer, is_told, Action, Program};
use crate::instrument::captures::places::{Outlets, Place};
use crate::instrument::exits::ExitList;
use crate::protocol::{capture_context, capture_operation as op};
use alloc::vec::Vec;
pub use code::spilled;
use code::{slot, vector, Code, NOT_ZERO, ZERO};

/// The registers that a form can name behind the general ones: where the thread is, its flags.
const PC: u64 = 16;
const FLAGS: u64 = 17;
/// What is put aside in `capture.spilled`, behind rax, rcx and rdx.
pub const SPILLED_ARITHMETIC: usize = 3;
const SPILLED_RSP: usize = 4;
const SPILLED_FLAGS: usize = 5;
/// Behind that: the time of a record, and where a call returns to that begins.
const TIME: usize = 6;
const RETURN_PC: usize = 7;

/// Below the stack pointer a function may have something that it has not told of (System V ABI 3.2.2).
pub const RED_ZONE_BYTES: i32 = 128;

/// As much as the kernel says in it of the processor (arch/x86/include/asm/segment.h, VDSO_CPUNODE_MASK).
const CPU_MASK: u32 = 0xfff;

/// Emits what is captured in front of the block at `pc`; `exit` leads into the dispatcher. Returns where it goes on behind it.
pub fn emit(emitter: &mut Emitter, place: &Place, pc: AppPc, exit: ExitId, outlets: Outlets) -> CachePc {
    let uses_floats = place.programs.iter().flat_map(Program::needed).any(|(_, one)| is_of_floats(one));
    let asks_flags = place.programs.iter().flat_map(Program::needed).any(|(_, one)| is_register(one, FLAGS));
    let is_asked = place.reads_memory() || place.is_told();
    put_aside(emitter, uses_floats, asks_flags);
    let mut leaving = Vec::new();
    let start = emitter.address();
    if place.has_returns() {
        calls::emit_fetch(emitter, &mut leaving);
    }
    let nothing =
        if place.is_of_returns() { calls::emit_quick_look(emitter, outlets.before_return) } else { Vec::new() };
    emitter.store_gs_immediate(GS_CAPTURE_OUTCOME, 0);
    if is_asked {
        emitter.compare_gs_zero(GS_CAPTURE_PREPARED);
        let is_prepared = emitter.jump_condition(NOT_ZERO);
        let need_not = if place.is_told() {
            None
        } else {
            emitter.compare_gs_zero(GS_BLOCKS_FAULTS);
            Some(emitter.jump_condition(ZERO))
        };
        emitter.store_gs_immediate(GS_CAPTURE_OUTCOME, UNPREPARED);
        leaving.push(emitter.jump());
        emitter.bind(is_prepared);
        if let Some(need_not) = need_not {
            emitter.bind(need_not);
        }
    }
    for (index, program) in place.programs.iter().enumerate() {
        let over = (program.returned == 0 && place.has_returns()).then(|| calls::emit_unless_again(emitter));
        emit_program(&mut Code { emitter, program, number: index, uses_floats, is_at_call: false, pc, outlets });
        if let Some(over) = over {
            emitter.bind(over);
        }
    }
    if is_asked {
        emitter.compare_gs_zero(GS_CAPTURE_PREPARED);
        leaving.push(emitter.jump_condition(NOT_ZERO));
    }
    emit_outcome(emitter, place, pc, outlets, &mut leaving);
    if place.has_returns() {
        calls::emit_rest(emitter, place, start);
    }
    for place in nothing {
        emitter.bind(place);
    }
    if place.has_marks() {
        emitter.store_gs_immediate(GS_CAPTURE_BEHIND, 0);
    }
    put_back(emitter, uses_floats);
    let behind = emitter.address();
    emitter.set_cold(true);
    for place in leaving {
        emitter.bind(place);
    }
    put_back(emitter, uses_floats);
    ExitList::emit_stub_jump(emitter, exit);
    emitter.set_cold(false);
    behind
}

/// Emits what is done with what was found, as far as translated code does that; `leaving` get where the dispatcher is to do it.
fn emit_outcome(emitter: &mut Emitter, place: &Place, pc: AppPc, outlets: Outlets, leaving: &mut Vec<CachePc>) {
    emitter.compare_gs_zero(GS_CAPTURE_OUTCOME);
    if let Some((program, table)) = place.added_there() {
        let is_nothing = emitter.jump_condition(ZERO);
        aggregated::emit(emitter, program, table, outlets.aggregates, leaving);
        if program.returned != 0 {
            calls::emit_close(emitter, 0);
        }
        emitter.bind(is_nothing);
    } else if let Some((program, kind)) = place.opened_there().filter(|_| !may_be_refused()) {
        let is_nothing = emitter.jump_condition(ZERO);
        calls::emit_open(
            &mut Code { emitter, program, number: 0, uses_floats: false, is_at_call: false, pc, outlets },
            kind,
            leaving,
        );
        emitter.bind(is_nothing);
    } else if records::can_write(place, outlets.ring_bytes) {
        let is_nothing = emitter.jump_condition(ZERO);
        records::emit(emitter, place, pc, outlets, leaving);
        if place.has_returns() {
            calls::emit_close(emitter, 0);
        }
        emitter.bind(is_nothing);
    } else {
        leaving.push(emitter.jump_condition(NOT_ZERO));
    }
}

fn put_aside(emitter: &mut Emitter, uses_floats: bool, asks_flags: bool) {
    emitter.store_gs(spilled(0), RAX);
    if asks_flags {
        // All of them are read by the stack only: the runtime's is free while the thread is here.
        emitter.store_gs(spilled(SPILLED_RSP), RSP);
        emitter.load_gs(RSP, GS_STACK_TOP);
        emitter.push_flags();
        emitter.pop(RAX);
        emitter.store_gs(spilled(SPILLED_FLAGS), RAX);
        emitter.load_gs(RSP, spilled(SPILLED_RSP));
    }
    emitter.save_flags_to_rax();
    emitter.store_gs(spilled(SPILLED_ARITHMETIC), RAX);
    emitter.store_gs(spilled(1), RCX);
    emitter.store_gs(spilled(2), RDX);
    if uses_floats {
        put_vectors_aside(emitter);
    }
}

fn put_vectors_aside(emitter: &mut Emitter) {
    emitter.store_gs_vector(vector(0), 0);
    emitter.store_gs_vector(vector(1), 1);
    // What the program rounds by, and what it wants to be told of, is its own business.
    emitter.store_gs_float_state(GS_CAPTURE_FLOAT_STATE);
    emitter.store_gs_immediate(GS_CAPTURE_OWN_FLOAT_STATE, floats::STATE);
    emitter.load_gs_float_state(GS_CAPTURE_OWN_FLOAT_STATE);
}

fn put_back(emitter: &mut Emitter, uses_floats: bool) {
    if uses_floats {
        emitter.load_gs_float_state(GS_CAPTURE_FLOAT_STATE);
        emitter.load_gs_vector(1, vector(1));
        emitter.load_gs_vector(0, vector(0));
    }
    emitter.load_gs(RDX, spilled(2));
    emitter.load_gs(RCX, spilled(1));
    emitter.load_gs(RAX, spilled(SPILLED_ARITHMETIC));
    emitter.restore_flags_from_rax();
    emitter.load_gs(RAX, spilled(0));
}

/// Whether an operation needs vector registers.
fn is_of_floats(one: &Operation) -> bool {
    let is_arithmetic = matches!(one.code, op::ADD | op::SUBTRACT | op::MULTIPLY | op::DIVIDE)
        || (op::EQUAL..=op::LESS_EQUAL).contains(&one.code);
    let from = Kind(one.immediate as u8);
    is_arithmetic && one.kind.is_float() || one.code == op::CONVERT && (one.kind.is_float() || from.is_float())
}

fn is_register(one: &Operation, number: u64) -> bool {
    one.code == op::REGISTER && one.immediate == number
}

/// Emits a capture's operations, and its condition: where that holds its bit is set in the outcome.
fn emit_program(code: &mut Code) {
    let (program, number) = (code.program, code.number);
    if program.action == Action::Inject {
        code.emitter.or_gs(GS_CAPTURE_OUTCOME, 1 << number);
        return;
    }
    let unmatched = if program.returned != 0 { calls::emit_match(code) } else { Vec::new() };
    for (index, one) in program.needed() {
        if is_told(one) || one.code == op::LITERAL || one.is_backtrace() {
            continue;
        }
        let ends = if program.may_miss[index] { code.begin_missing(index, one) } else { Vec::new() };
        emit_operation(code, index, one, ends);
    }
    let over = program.form.condition.map(|condition| code.jump_unless(usize::from(condition)));
    for (index, one) in program.needed().filter(|(_, one)| one.is_backtrace()) {
        reads::emit_backtrace(code, index, one);
    }
    code.emitter.or_gs(GS_CAPTURE_OUTCOME, 1 << number);
    let is_taken = (program.returned != 0 && over.is_some()).then(|| code.emitter.jump());
    for place in over.into_iter().flatten() {
        code.emitter.bind(place);
    }
    if let Some(is_taken) = is_taken {
        // It has returned, whether that is of interest or not.
        calls::emit_close(code.emitter, number);
        code.emitter.bind(is_taken);
    }
    for place in unmatched {
        code.emitter.bind(place);
    }
}

/// Emits one operation; `ends` lead to where its value is missing.
fn emit_operation(code: &mut Code, index: usize, one: &Operation, mut ends: Vec<CachePc>) {
    let is_there = match one.code {
        op::REGISTER => emit_register(code, one.immediate),
        op::VECTOR => {
            let is_there = code.load_vector(one.immediate);
            integers::emit_widening(code, one.kind);
            is_there
        }
        op::CONTEXT if is_thread_pointer(one) && code.outlets.before_return => {
            reads::emit_thread_pointer(code);
            true
        }
        op::CONTEXT if is_thread_pointer(one) => {
            integers::emit_thread_pointer(code, &mut ends);
            true
        }
        op::CONTEXT if is_duration(one) => calls::emit_duration(code),
        op::CONTEXT if is_of_call(one) => calls::emit_of_call(code, one.immediate),
        op::CONTEXT => emit_context(code, one.immediate),
        _ => {
            emit_value(code, index, one, &mut ends);
            true
        }
    };
    if is_there {
        code.emitter.store_gs(slot(code.program, index), RAX);
        if code.program.may_miss[index] {
            code.end_missing(index);
        }
    }
    for place in ends {
        code.emitter.bind(place);
    }
}

/// Emits what an operation makes of values before it to rax; `ends` get where it goes on if there is none.
fn emit_value(code: &mut Code, index: usize, one: &Operation, ends: &mut Vec<CachePc>) {
    let (a, b) = (usize::from(one.a), usize::from(one.b));
    let is_float = one.kind.is_float();
    match one.code {
        op::KEPT => calls::emit_kept(code, one, ends),
        op::CONSTANT => code.emitter.load_immediate(RAX, one.kind.widen(one.immediate)),
        op::LOAD if code.outlets.before_return => reads::emit_load(code, index, a, one.kind, ends),
        op::STRING if code.outlets.before_return => reads::emit_string(code, index, one, ends),
        op::BYTES if code.outlets.before_return => reads::emit_bytes(code, index, one, ends),
        op::LOAD => integers::emit_load(code, a, one.kind, ends),
        op::STRING => texts::emit_string(code, index, one, ends),
        op::WORDS => texts::emit_words(code, index, one, ends),
        op::BYTES => texts::emit_bytes(code, index, one, ends),
        op::TEXT_EQUAL => texts::emit_equal(code, a, b),
        op::CONVERT => floats::emit_conversion(code, a, Kind(one.immediate as u8), one.kind),
        op::LOGICAL_AND | op::LOGICAL_OR => integers::emit_logical(code, one, ends),
        op::LOGICAL_NOT => integers::emit_not(code, a),
        op::NEGATE if is_float => floats::emit_negation(code, a, one.kind),
        op::NEGATE | op::COMPLEMENT => integers::emit_unary(code, one.code, a, one.kind),
        op::EQUAL..=op::LESS_EQUAL if is_float => floats::emit_comparison(code, one),
        op::EQUAL..=op::LESS_EQUAL => integers::emit_comparison(code, one),
        _ if is_float => floats::emit_arithmetic(code, one),
        _ => integers::emit_arithmetic(code, one, ends),
    }
}

/// Emits a register's value to rax; `false`: there is none of that number.
fn emit_register(code: &mut Code, number: u64) -> bool {
    match number {
        0..=2 => code.emitter.load_gs(RAX, spilled(number as usize)),
        3..16 => code.emitter.copy_register(RAX, Gpr(number as u8)),
        PC => code.emitter.load_immediate(RAX, code.pc.raw()),
        FLAGS => code.emitter.load_gs(RAX, spilled(SPILLED_FLAGS)),
        _ => return false,
    }
    true
}

/// Emits what is known of the place to rax; `false`: nothing is.
fn emit_context(code: &mut Code, what: u64) -> bool {
    match what as u8 {
        capture_context::BEHIND => code.emitter.load_gs32(RAX, GS_CAPTURE_BEHIND),
        // The dispatcher knows better, where there is anything to know (dispatch/apart/captures.rs).
        capture_context::INJECTED | capture_context::DELAY_EXIT => code.emitter.load_immediate(RAX, 0),
        capture_context::TID => code.emitter.load_gs32(RAX, GS_TID),
        capture_context::CPU if code.outlets.before_return && tells_processor() => {
            // rdpid rax
            code.emitter.bytes(&[0xf3, 0x48, 0x0f, 0xc7, 0xf8]);
            code.emitter.and_immediate(RAX, CPU_MASK);
        }
        capture_context::CPU if code.outlets.before_return => code.emitter.load_gs(RAX, GS_PROBE_PROCESSOR),
        capture_context::CPU if !may_be_refused() => code.emitter.read_processor(CPU_MASK),
        _ => return false,
    }
    true
}
