//! The machine code of a probe's handler: what a thread executes that comes to a place of the program's own code.
//!
//! It is jumped to, in front of the instruction that is probed, and goes on behind itself with all registers and flags as they were. What
//! is taken is emitted as it is for translated code (instrument/captures), out of the same block, which the thread has by gs.
//! Whether that is the thread's own is seen by its thread pointer: a new thread has the gs base of the one that made it. The program
//! has none of its own; the controller looks at that.
//!
//! Until that is known there is nothing but the stack to put rax and rcx aside, below the red zone (System V ABI 3.2.2).

use super::super::displacements::{GS_PROBE_BUSY, GS_PROBE_OWNER};
use super::super::emit::Emitter;
use super::super::RCX;
use super::aside::{emit_aside, emit_back, emit_into_block};
use super::filters;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::ExitId;
use crate::cpu::instrument::captures::{at_probes, RED_ZONE_BYTES};
use crate::instrument::captures::places::{Outlets, Place};

/// Of what threads come to by a jump: processors fetch no less at once.
const ALIGNMENT: u64 = 16;
const NOT_ZERO: u8 = 5;
const ZERO: u8 = 4;

/// What is where no code is: int3.
pub const FILLER: u8 = 0xcc;

/// What a handler is made for.
pub struct Handler<'p> {
    pub place: &'p Place,
    pub pc: AppPc,
    /// As which the dispatcher of the probes knows it.
    pub exit: ExitId,
    pub outlets: Outlets,
    /// Where the thread goes on.
    pub resume: CachePc,
    /// A u64: how often it took nothing (ProbeSite.missed).
    pub missed: u64,
    /// What gives a thread a block (`claim`).
    pub claim: u64,
    /// How much the claim leaves out where there is none, and twice as much where there is one that the thread can't be seen to own.
    pub skipped_bytes: usize,
}

/// Where threads go on that come back from the runtime: everything is done, or everything is done anew.
pub struct Ways {
    pub behind: CachePc,
    pub again: CachePc,
}

/// Emits a handler.
pub fn emit(emitter: &mut Emitter, handler: &Handler) -> Ways {
    emitter.align(ALIGNMENT, 0);
    let start = emitter.address();
    emit_aside(emitter);
    let unwanted = filters::emit(emitter, handler.place);
    // rdgsbase rcx; test rcx, rcx
    emitter.bytes(&[0xf3, 0x48, 0x0f, 0xae, 0xc9, 0x48, 0x85, 0xc9]);
    let has_none = emitter.jump_condition(ZERO);
    // rdfsbase rcx
    emitter.bytes(&[0xf3, 0x48, 0x0f, 0xae, 0xc1]);
    emitter.compare_with_gs(RCX, GS_PROBE_OWNER);
    let is_others = emitter.jump_condition(NOT_ZERO);
    let is_own = emitter.address();
    emitter.compare_gs_zero(GS_PROBE_BUSY);
    let is_busy = emitter.jump_condition(NOT_ZERO);
    // A handler of the program's that comes before this is over has its own done and the word back at 0.
    emitter.store_gs_immediate(GS_PROBE_BUSY, 1);
    let behind = if at_probes::can_work_out(handler.place) {
        emit_into_block(emitter);
        at_probes::emit(emitter, handler.place, handler.pc, handler.exit, handler.outlets)
    } else {
        emit_back(emitter);
        emitter.leave_by(handler.exit);
        emitter.address()
    };
    emitter.store_gs_immediate(GS_PROBE_BUSY, 0);
    emitter.jump_anywhere(handler.resume);

    if let Some(unwanted) = unwanted {
        // Most threads come here.
        emitter.align(ALIGNMENT, 0);
        for place in unwanted {
            emitter.bind(place);
        }
        emit_back(emitter);
        emitter.jump_anywhere(handler.resume);
    }

    emitter.set_cold(true);
    emitter.bind(has_none);
    emitter.bind(is_others);
    emit_back(emitter);
    emitter.move_stack(-RED_ZONE_BYTES);
    emitter.call_far(handler.claim);
    let answered = emitter.address();
    emitter.move_stack(RED_ZONE_BYTES);
    emitter.jump_to(start);
    debug_assert_eq!(answered.distance_to(emitter.address()), handler.skipped_bytes as i64);
    emitter.move_stack(RED_ZONE_BYTES);
    let took_nothing = emitter.jump();
    debug_assert_eq!(answered.distance_to(emitter.address()), 2 * handler.skipped_bytes as i64);
    emitter.move_stack(RED_ZONE_BYTES);
    emit_aside(emitter);
    emitter.jump_to(is_own);
    emitter.bind(took_nothing);
    emit_aside(emitter);
    emitter.bind(is_busy);
    emitter.load_immediate(RCX, handler.missed);
    // lock inc qword [rcx]
    emitter.bytes(&[0xf0, 0x48, 0xff, 0x01]);
    emit_back(emitter);
    emitter.jump_anywhere(handler.resume);
    emitter.set_cold(false);
    Ways { behind, again: start }
}
