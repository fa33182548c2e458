//! The pads of returns that often lead elsewhere than their calls (instrument/indirect/strays.rs), in mode `full`.

use crate::context::addresses::CachePc;
use crate::context::layout::SHADOW_OFFSET;
use crate::context::numbers::ExitId;
use crate::cpu::displacements::GS_SHADOW_DEPTH;
use crate::cpu::emit::Emitter;
use crate::cpu::features::Features;
use crate::cpu::instrument::order::{emit_full_question, emit_symbol_bytes, FullBuffer};
use crate::cpu::{INDEX, RCX, TARGET};
use crate::instrument::order::symbols::ReturnSymbols;
use crate::instrument::order::symbols::MAX_POPS;

/// What leads out of the ways of a return's pad.
#[must_use]
pub struct ReturnWays {
    pub full: FullBuffer,
    /// Where the target was in none of the calls that were looked at; to be bound. rcx is in r10.
    pub elsewhere: Option<CachePc>,
}

/// Emits what a return's pad pops and writes, in front of the jump of its exit `exit`. rcx is in r10, r11 is the target; rcx is put
/// back.
pub fn emit_return_ways(
    emitter: &mut Emitter,
    symbols: &ReturnSymbols,
    exit: ExitId,
    features: Features,
) -> ReturnWays {
    let mut ends = [None; MAX_POPS];
    let mut elsewhere = None;
    let has_question = !symbols.pops_others || symbols.iter().any(|(pops, _)| pops != 1);
    for (end, (pops, symbol)) in ends.iter_mut().zip(symbols.iter()).filter(|_| has_question) {
        // Below the lowest call there are zeros, as many as are looked at.
        emitter.load_gs(RCX, GS_SHADOW_DEPTH);
        emitter.load_rcx_gs_table((SHADOW_OFFSET - 8 * pops as u64) as u32);
        // -1 - its address
        emitter.invert_rcx();
        emitter.add_registers(RCX, RCX, Some(TARGET), 1, 1);
        let hit = emitter.jump_rcx_zero();
        let miss = emitter.jump();
        emitter.bind_short(hit);
        emitter.load_gs(RCX, GS_SHADOW_DEPTH);
        emitter.add_immediate(RCX, -(pops as i32));
        emitter.store_gs(GS_SHADOW_DEPTH, RCX);
        emit_symbol_bytes(emitter, symbol);
        *end = Some(emitter.jump());
        emitter.bind(miss);
    }
    match symbols.symbol_for(None) {
        Some(symbol) => {
            emitter.load_gs(RCX, GS_SHADOW_DEPTH);
            let none_open = emitter.jump_rcx_zero();
            emitter.add_immediate(RCX, -1);
            emitter.store_gs(GS_SHADOW_DEPTH, RCX);
            emitter.bind_short(none_open);
            emit_symbol_bytes(emitter, symbol);
        }
        None => elsewhere = Some(emitter.jump()),
    }
    for end in ends.into_iter().flatten() {
        emitter.bind(end);
    }
    let full = emit_full_question(emitter, exit, features.has_rotate);
    emitter.copy_register(RCX, INDEX);
    ReturnWays { full, elsewhere }
}
