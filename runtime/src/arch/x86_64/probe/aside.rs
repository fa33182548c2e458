//! Where registers are until it is known whose the thread's block is: on the stack, below the red zone.

use super::super::emit::Emitter;
use super::super::probe_memory;
use super::super::{RAX, RCX, RDX};
use crate::cpu::instrument::captures::{spilled, RED_ZONE_BYTES, SPILLED_ARITHMETIC};

/// Below the red zone, room for rax and rcx, and where they are in it.
pub const ASIDE_BYTES: i32 = RED_ZONE_BYTES + 16;
pub const RCX_ASIDE: u8 = 0;
pub const RAX_ASIDE: u8 = 8;

/// Puts rax, rcx and the arithmetic flags aside; the flags are in rax then.
pub fn emit_aside(emitter: &mut Emitter) {
    emitter.move_stack(-ASIDE_BYTES);
    emitter.store_on_stack(RAX_ASIDE, RAX);
    emitter.store_on_stack(RCX_ASIDE, RCX);
    emitter.save_flags_to_rax();
}

/// And puts them back.
pub fn emit_back(emitter: &mut Emitter) {
    emitter.restore_flags_from_rax();
    emitter.load_from_stack(RCX, RCX_ASIDE);
    emitter.load_from_stack(RAX, RAX_ASIDE);
    emitter.move_stack(ASIDE_BYTES);
}

/// Puts them to where captures have them, and rdx.
pub fn emit_into_block(emitter: &mut Emitter) {
    emitter.store_gs(spilled(SPILLED_ARITHMETIC), RAX);
    emitter.load_from_stack(RCX, RAX_ASIDE);
    emitter.store_gs(spilled(0), RCX);
    emitter.load_from_stack(RCX, RCX_ASIDE);
    emitter.store_gs(spilled(1), RCX);
    emitter.store_gs(spilled(2), RDX);
    emitter.move_stack(ASIDE_BYTES);
}

const _: () = assert!(ASIDE_BYTES as u32 == probe_memory::WRITTEN_BYTES);
