//! Code that keeps the shadow stack (mode `full`): calls push, landings compare and pop. None of it touches the flags.
//!
//! What is pushed and popped when is the path's rule (pathcodec, `shadow`); at the top of the room a push faults, and the
//! signal handler forgets what is open.

use super::displacements::{GS_SHADOW_DEPTH, GS_SPILL_OTHER};
use super::emit::Emitter;
use super::question::Question;
use super::{INDEX, RCX, TARGET};
use crate::context::addresses::CachePc;
use crate::context::layout::SHADOW_OFFSET;

impl Emitter<'_> {
    /// Where the processor's call came in with r10 and r11 lent, r11 holding the application's return address: puts that into
    /// the slot, and onto the shadow stack if there is one.
    pub fn enter_by_call(&mut self, keeps_shadow: bool) {
        self.fill_return_slot(TARGET);
        if keeps_shadow {
            self.push_shadow();
        }
    }

    /// Pushes the return address in r11; r10 is free.
    pub fn push_shadow(&mut self) {
        self.load_gs(INDEX, GS_SHADOW_DEPTH);
        self.store_gs_table(SHADOW_OFFSET as u32, INDEX, TARGET);
        self.add_immediate(INDEX, 1);
        self.store_gs(GS_SHADOW_DEPTH, INDEX);
    }

    /// Pushes the return address in r10; r11 is kept. Returns the position from which on it is pushed.
    #[must_use]
    pub fn push_shadow_beside_target(&mut self) -> usize {
        self.store_gs(GS_SPILL_OTHER, TARGET);
        self.load_gs(TARGET, GS_SHADOW_DEPTH);
        self.store_gs_table(SHADOW_OFFSET as u32, TARGET, INDEX);
        self.add_immediate(TARGET, 1);
        self.store_gs(GS_SHADOW_DEPTH, TARGET);
        let pushed = self.position();
        self.load_gs(TARGET, GS_SPILL_OTHER);
        pushed
    }

    /// At a landing whose return address is in r11 and proved, and rcx in r10: the question whether it is the topmost one, which is
    /// popped then. rcx is lost. Returns the short branch to where it is not.
    #[must_use]
    pub fn pop_shadow(&mut self, question: Question) -> CachePc {
        self.load_gs(RCX, GS_SHADOW_DEPTH);
        self.load_rcx_gs_table(SHADOW_OFFSET as u32 - 8);
        // -1 - topmost
        self.invert_rcx();
        let miss = if question == Question::Loop {
            self.add_registers(RCX, RCX, Some(TARGET), 1, 2);
            self.jump_loop()
        } else {
            self.add_registers(RCX, RCX, Some(TARGET), 1, 1);
            let hit = self.jump_rcx_zero();
            let miss = self.jump_short();
            self.bind_short(hit);
            miss
        };
        self.load_gs(RCX, GS_SHADOW_DEPTH);
        self.add_immediate(RCX, -1);
        self.store_gs(GS_SHADOW_DEPTH, RCX);
        miss
    }
}
