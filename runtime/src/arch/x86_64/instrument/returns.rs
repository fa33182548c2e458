//! Returns that often lead elsewhere than their calls: coroutines, threads of a program's own, `push` and `ret`.
//!
//! Such a return is translated as an indirect jump, with a pad for each target. In paths (mode `full`) it writes a symbol from then
//! on, which says where it went and what it popped of the open calls (pathcodec, `symbols`): most find their target where they
//! found it before, so nothing is searched. What is not as before comes to the dispatcher (dispatch/flow/returns.rs).

use crate::buffer::RingWriter;
use crate::context::layout::SHADOW_OFFSET;
use crate::context::ThreadContext;
use crate::cpu::displacements::GS_SHADOW_DEPTH;
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::order::{emit_full_question, emit_symbol_bytes, FullBuffer};
use crate::cpu::{INDEX, RCX, TARGET};
use crate::instrument::order::symbols::ReturnSymbols;
use crate::instrument::order::symbols::MAX_POPS;
use crate::instrument::Engine;

/// A return is asked whether it often leads elsewhere when it has done so this often, and each time that is twice as often.
const FIRST_LOOK: u32 = 16;
/// Often: one of so many times. It costs the others a byte and the processor's prediction, and saves those the dispatcher.
const OFTEN: u64 = 8;

/// What leads out of the ways of a return's pad.
#[must_use]
pub struct ReturnWays {
    pub full: FullBuffer,
    /// Where the target was in none of the calls that were looked at; to be bound. rcx is in r10.
    pub elsewhere: Option<u64>,
}

/// Emits what a return's pad pops and writes, in front of the jump of its exit `exit`. rcx is in r10, r11 is the target; rcx is put
/// back.
pub fn emit_return_ways(emitter: &mut Emitter, symbols: &ReturnSymbols, exit: u32, has_rotate: bool) -> ReturnWays {
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
    let full = emit_full_question(emitter, exit, has_rotate);
    emitter.copy_register(RCX, INDEX);
    ReturnWays { full, elsewhere }
}

impl Engine {
    /// Whether the return at `branch` is translated as an indirect jump.
    pub fn strays(&self, branch: u64) -> bool {
        self.path_log.is_unlike(branch)
    }

    /// The return at the end of `source` led elsewhere, or had no quick way there: if it often does, it is translated anew.
    pub fn note_stray(&mut self, writer: &RingWriter, context: &ThreadContext, source: u32) {
        let branch = self.cache.fragment(source).branch_pc();
        if self.strays(branch) {
            return;
        }
        let times = self.strays.entry(branch).or_insert(0);
        *times = times.saturating_add(1);
        let times = *times;
        if times < FIRST_LOOK || !times.is_power_of_two() {
            return;
        }
        let copies = self.fragments_within(branch, branch + 1);
        let executed = copies.iter().map(|id| self.executions_of_return(context, *id, branch)).sum::<u64>();
        if executed > u64::from(times) * OFTEN {
            return;
        }
        self.path_log.turn(branch);
        for id in copies {
            self.retire_to_be_made_again(writer, id);
        }
    }

    /// How often the thread ran fragment `id`, if that ends with the return at `branch`; 0 where it is not counted.
    fn executions_of_return(&self, context: &ThreadContext, id: u32, branch: u64) -> u64 {
        let fragment = self.cache.fragment(id);
        match self.is_counted(fragment) && fragment.branch_pc() == branch {
            true => self.executions_of_fragment(context, fragment),
            false => 0,
        }
    }
}
