//! Hot loops that count in registers.
//!
//! A counter in memory is read right behind where it was written: some processors take five cycles or more for that each turn. So the
//! block at the head of a hot loop has its counter in r10 as well, which is lent, adds to that, and stores it: memory has the
//! true count all the time, and nothing waits for it. Whoever comes to a block of the loop from elsewhere enters it where r10 is
//! loaded (`Fragment::counted_entry`); the blocks of the loop enter each other past that (cache/links.rs). Members of the loop
//! beside its head follow from what leads to them (instrument/counts/leaders.rs), so they count nothing of their own, and leave r10
//! alone. Nothing else counts for the thread meanwhile: who leaves the loop, for a signal or the dispatcher, comes back by
//! an entry. In the same way r11 has the cell that counts the loop's decisions (mode `full`).
//!
//! Where the program names the registers, a loop of one block is entered by a store to its counter at least
//! (`counting::emit_rewrite`).

use crate::context::numbers::CounterId;
use crate::cpu::decode::in_place::uses_gs_memory;
use crate::cpu::decode::scratch;
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::counting::{emit_keep, KEPT_COUNTER, KEPT_DECISIONS};
use crate::decode::{Block, Ending};
use iced_x86::{Code, Instruction};

/// Emits what those do who come to a block of a loop from elsewhere, r10 and r11 being lent: they have the loop's counter, and its
/// cell of decisions or `NONE`. Flags are kept.
pub fn emit_entry(emitter: &mut Emitter, counter: CounterId, cell: CounterId) {
    emit_keep(emitter, counter, KEPT_COUNTER);
    if cell != CounterId::NONE {
        emit_keep(emitter, cell, KEPT_DECISIONS);
    }
}

/// Whether a block leaves r10 to the runtime, and needs it for nothing itself.
pub fn may_keep_counter(block: &Block, ending: Ending) -> bool {
    matches!(ending, Ending::Conditional(_) | Ending::Jump(_) | Ending::Limit)
        && !block.instructions.iter().any(|one| scratch::names_lent_register(one) || uses_gs_memory(one))
}

/// Whether it needs r11 for nothing, either: what lies far from the cache is accessed through it.
pub fn may_keep_cell(block: &Block) -> bool {
    let may_be_far =
        |one: &Instruction| one.is_ip_rel_memory_operand() && !matches!(one.code(), Code::Lea_r64_m | Code::Lea_r32_m);
    !block.instructions.iter().any(may_be_far)
}
