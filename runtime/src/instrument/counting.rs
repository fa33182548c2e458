//! Counters in translated code, and where they may be put.
//!
//! Every execution of a fragment adds one to exactly one counter. Where the flags that `inc` changes are dead it is one
//! instruction; elsewhere the addition goes through r10, which leaves the flags alone.

use crate::arch::x86_64::context::{gs_counter, GS_SPILL_INDEX};
use crate::arch::x86_64::emit::Emitter;
use crate::arch::x86_64::INDEX;
use crate::cache::NONE;
use crate::decode::flags::{flag_use, INC_FLAGS};
use crate::decode::Block;

/// Emits `counter += 1`; nothing for `NONE`.
pub fn emit_count(emitter: &mut Emitter, counter: u32, are_flags_dead: bool) {
    if counter == NONE {
        return;
    }
    let displacement = gs_counter(counter);
    if are_flags_dead {
        emitter.increment_gs(displacement);
        return;
    }
    emitter.store_gs(GS_SPILL_INDEX, INDEX);
    emit_count_through_index(emitter, counter);
    emitter.load_gs(INDEX, GS_SPILL_INDEX);
}

/// Emits `counter += 1` where r10 may be lost; flags are kept.
pub fn emit_count_through_index(emitter: &mut Emitter, counter: u32) {
    let displacement = gs_counter(counter);
    emitter.load_gs(INDEX, displacement);
    emitter.add_immediate(INDEX, 1);
    emitter.store_gs(displacement, INDEX);
}

/// The last of the first `n` instructions before which the flags of `inc` are dead, given what is live at the end.
/// `n` itself stands for the end. The last place is the best one: fewer faults can come after it.
pub fn find_dead_place(block: &Block, n: usize, are_dead_at_end: bool) -> Option<usize> {
    if are_dead_at_end {
        return Some(n);
    }
    let mut live = INC_FLAGS;
    for index in (0..block.instructions.len()).rev() {
        let flags = flag_use(&block.instructions[index]);
        live = (live & !flags.kills) | (flags.reads & INC_FLAGS);
        if live == 0 && index <= n {
            return Some(index);
        }
    }
    None
}
