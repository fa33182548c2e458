//! What is captured at a place of the program's own code: several captures, each done in turn, as far as machine code does that.
//!
//! Everything is worked out first. Whatever is in the way then, the thread leaves, and the runtime does all that is to be done with it
//! (probe/hits.rs). So nothing is done before everything is known to be possible; what begins a call is done first, for that may be
//! done once more.

extern crate alloc;
use super::super::super::displacements::{GS_CAPTURE_OUTCOME, GS_PROBE_PROCESSOR, GS_STACK_TOP};
use super::super::super::emit::Emitter;
use super::super::super::features::tells_processor;
use super::super::super::{RAX, RCX, RSP};
use super::code::{spilled, Code, ZERO};
use super::{
    aggregated, calls, emit_program, is_of_floats, is_register, put_back, put_vectors_aside, reads, records, CPU_MASK,
    FLAGS, SPILLED_ARITHMETIC, SPILLED_FLAGS, SPILLED_RSP, TIME,
};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::ExitId;
use crate::cpu::sys::clock::may_be_refused;
use crate::instrument::captures::layout::{is_duration, is_processor, Action, Program};
use crate::instrument::captures::places::{Outlets, Place};
use crate::protocol::capture_operation as op;
use alloc::vec::Vec;

/// Whether machine code works out what is captured at a place: it knows neither what the runtime has to find out, nor words up to a zero; and
/// no call that begins where it returns, as of a function that is a single instruction: it looks for calls before it has any begin.
pub fn can_work_out(place: &Place) -> bool {
    let is_unknown = |one: &Program| one.action == Action::Inject || one.needed().any(|(_, one)| one.code == op::WORDS);
    let is_all_there_is = place.has_returns() && place.opening().next().is_some();
    !may_be_refused() && !place.is_told() && !is_all_there_is && !place.programs.iter().any(is_unknown)
}

/// Whether it does all that is to be done with that.
fn can_do(place: &Place, outlets: &Outlets) -> bool {
    let count = |is_it: fn(&Action) -> bool| place.programs.iter().filter(|one| is_it(&one.action)).count();
    let is_once = |one: &Program| match one.action {
        Action::Record => records::can_write_one(one),
        // What another call leaves is told, once.
        Action::Open(_) => one.takes_numbers() && !one.tells_left,
        Action::Aggregate(ref table) => one.takes_numbers() && !one.has_float_values(table),
        _ => false,
    };
    place.programs.iter().all(is_once)
        // A row may be missing, which is seen late: only of the first one before anything is added.
        && count(|action| matches!(action, Action::Aggregate(_))) <= 1
        && records::place_bytes(place) <= (outlets.ring_bytes / 2) as usize
}

/// Emits what is captured in front of the instruction at `pc`: rax, rcx, rdx and the flags are put aside. Returns where it goes on that comes
/// back from the runtime.
pub fn emit(emitter: &mut Emitter, place: &Place, pc: AppPc, exit: ExitId, outlets: Outlets) -> CachePc {
    let uses_floats = place.programs.iter().flat_map(Program::needed).any(|(_, one)| is_of_floats(one));
    let is_timed = place.programs.iter().flat_map(Program::needed).any(|(_, one)| is_duration(one));
    let asks_processor =
        !tells_processor() && place.programs.iter().flat_map(Program::needed).any(|(_, one)| is_processor(one));
    let mut leaving = Vec::new();
    if place.programs.iter().flat_map(Program::needed).any(|(_, one)| is_register(one, FLAGS)) {
        emit_flags(emitter);
    }
    if uses_floats {
        put_vectors_aside(emitter);
    }
    if place.has_returns() {
        calls::emit_fetch(emitter, &mut leaving);
    }
    if asks_processor {
        // One instruction tells both.
        emitter.read_processor_and_time(CPU_MASK);
        emitter.store_gs(spilled(TIME), RAX);
        emitter.store_gs(GS_PROBE_PROCESSOR, RCX);
    } else if is_timed {
        records::emit_time(emitter);
    }
    let is_timed = is_timed || asks_processor;
    emitter.store_gs_immediate(GS_CAPTURE_OUTCOME, 0);
    let is_at_call = place.has_returns() || place.opening().next().is_some();
    let around = Around { uses_floats, is_at_call, pc, outlets };
    for (index, program) in place.programs.iter().enumerate() {
        emit_program(&mut around.code(emitter, index, program));
    }
    let are_all_certain = place.programs.iter().all(is_certain);
    let nothing = (!are_all_certain).then(|| {
        emitter.compare_gs_zero(GS_CAPTURE_OUTCOME);
        emitter.jump_condition(ZERO)
    });
    if can_do(place, &outlets) {
        emit_outcome(emitter, place, &around, is_timed, &mut leaving);
    } else {
        leaving.push(emitter.jump());
    }
    bind_all(emitter, nothing);
    put_back(emitter, uses_floats);
    let behind = emitter.address();
    emitter.set_cold(true);
    for place in leaving {
        emitter.bind(place);
    }
    put_back(emitter, uses_floats);
    emitter.leave_by(exit);
    emitter.set_cold(false);
    behind
}

/// Emits what is done with what was found, which is something; `leaving` get where the runtime is to do it.
fn emit_outcome(emitter: &mut Emitter, place: &Place, around: &Around, is_timed: bool, leaving: &mut Vec<CachePc>) {
    let Around { pc, outlets, .. } = *around;
    let of = |is_it: fn(&Action) -> bool| place.programs.iter().enumerate().filter(move |(_, one)| is_it(&one.action));
    let is_record = |action: &Action| matches!(action, Action::Record);
    if !is_timed && of(|action| matches!(action, Action::Record | Action::Open(_))).next().is_some() {
        records::emit_time(emitter);
    }
    for (_, program) in of(is_record) {
        reads::emit_unless_asked(emitter, program, leaving);
    }
    let has_records = of(is_record).next().is_some();
    if has_records {
        records::emit_room(emitter, place, &outlets, leaving);
    }
    for (index, program) in of(|action| matches!(action, Action::Open(_))) {
        let Action::Open(kind) = program.action else { continue };
        let over = emit_unless_taken(emitter, place, index);
        calls::emit_open(&mut around.code(emitter, index, program), kind, leaving);
        bind_all(emitter, over);
    }
    for (index, program) in of(|action| matches!(action, Action::Aggregate(_))) {
        let Action::Aggregate(ref table) = program.action else { continue };
        let over = emit_unless_taken(emitter, place, index);
        aggregated::emit(emitter, program, table, outlets.aggregates, leaving);
        bind_all(emitter, over);
    }
    if has_records {
        records::emit_head(emitter);
        for (index, program) in of(is_record) {
            let over = emit_unless_taken(emitter, place, index);
            records::emit_record(emitter, program, index, pc, outlets.ring_bytes);
            bind_all(emitter, over);
        }
        records::emit_end(emitter);
    }
    for (index, _) in place.programs.iter().enumerate().filter(|(_, one)| one.returned != 0) {
        let over = emit_unless_taken(emitter, place, index);
        calls::emit_close(emitter, index);
        bind_all(emitter, over);
    }
}

/// What is the same for all captures of a place.
struct Around {
    uses_floats: bool,
    is_at_call: bool,
    pc: AppPc,
    outlets: Outlets,
}

impl Around {
    fn code<'e, 'a>(&self, emitter: &'e mut Emitter<'a>, number: usize, program: &'e Program) -> Code<'e, 'a> {
        let Around { uses_floats, is_at_call, pc, outlets } = *self;
        Code { emitter, program, number, uses_floats, is_at_call, pc, outlets }
    }
}

/// Whether a capture is taken whenever a thread comes by.
fn is_certain(program: &Program) -> bool {
    program.returned == 0 && program.form.condition.is_none()
}

/// Emits a branch that is taken where a capture of a place is not, and another one is; `None`: it is.
fn emit_unless_taken(emitter: &mut Emitter, place: &Place, index: usize) -> Option<CachePc> {
    (place.programs.len() > 1 && !is_certain(&place.programs[index])).then(|| {
        emitter.test_gs(GS_CAPTURE_OUTCOME, 1 << index);
        emitter.jump_condition(ZERO)
    })
}

fn bind_all(emitter: &mut Emitter, places: Option<CachePc>) {
    if let Some(place) = places {
        emitter.bind(place);
    }
}

/// Emits all flags to where forms find them: as they were put aside.
fn emit_flags(emitter: &mut Emitter) {
    emitter.load_gs(RAX, spilled(SPILLED_ARITHMETIC));
    emitter.restore_flags_from_rax();
    emitter.store_gs(spilled(SPILLED_RSP), RSP);
    emitter.load_gs(RSP, GS_STACK_TOP);
    emitter.push_flags();
    emitter.pop(RAX);
    emitter.store_gs(spilled(SPILLED_FLAGS), RAX);
    emitter.load_gs(RSP, spilled(SPILLED_RSP));
}
