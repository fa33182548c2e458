//! The start of a pad or landing: is the target that came here the one that it stands for?
//!
//! Two pairs of site and target may share a place in the branch table, so any target may come. The question must not
//! touch the flags even where they are dead at the pad's own target: the other pair's target may need them. That leaves
//! the two branches that ask rcx without flags; rcx is in r10 meanwhile. `loop` goes straight on when the answer is yes,
//! which keeps the processor's branch history for the program's own branches, but is slow on some makers' processors;
//! there `jrcxz` asks.

use crate::arch::x86_64::context::GS_GATE_INDIRECT;
use crate::arch::x86_64::emit::Emitter;
use crate::arch::x86_64::{INDEX, RCX, TARGET};

/// A verification whose other way and constant are still to be emitted.
pub struct Verification {
    literal: usize,
    /// The displacement of a branch to the other way, where that is not emitted yet.
    miss: Option<usize>,
    /// What the constant is besides the target's negative.
    bias: u64,
}

impl Verification {
    /// Emits the question; what follows runs when the answer is yes. r10 is free from then on, r11 still the target.
    pub fn emit(emitter: &mut Emitter, has_fast_loop: bool) -> Verification {
        emitter.copy_register(INDEX, RCX);
        let literal = emitter.load_literal(RCX);
        emitter.add_registers(RCX, RCX, Some(TARGET), 1, 0);
        if has_fast_loop {
            let miss = emitter.jump_loop();
            emitter.copy_register(RCX, INDEX);
            return Verification { literal, miss: Some(miss), bias: 1 };
        }
        let hit = emitter.jump_rcx_zero();
        emitter.copy_register(RCX, INDEX);
        emitter.jump_gs(GS_GATE_INDIRECT);
        emitter.bind_short(hit);
        emitter.copy_register(RCX, INDEX);
        Verification { literal, miss: None, bias: 0 }
    }

    /// Emits the other way and the constant, behind code that does not run into them. `false`: they are too far.
    #[must_use]
    pub fn finish(self, emitter: &mut Emitter, target: u64) -> bool {
        let mut is_bound = true;
        if let Some(miss) = self.miss {
            is_bound = emitter.bind_short(miss);
            emitter.copy_register(RCX, INDEX);
            emitter.jump_gs(GS_GATE_INDIRECT);
        }
        emitter.align_with_traps(8);
        emitter.bind(self.literal);
        emitter.qword(self.bias.wrapping_sub(target));
        is_bound
    }
}
