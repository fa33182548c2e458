//! Code that asks, where a block begins, whether its execution is to be tagged (mode `region`).
//!
//! While the thread is busy and counts the block that is one byte asked. Otherwise code in the cold section follows the
//! rules (instrument/tags/rules.rs) and writes a word. Where it would become busy, is busy, or finds the buffer full, it leaves for
//! the dispatcher, having changed nothing, and asks again when it comes back. Nothing here touches flags that are live.

use crate::context::addresses::CachePc;
use crate::context::layout::counter_offset;
use crate::context::numbers::{BlockNumber, CounterId, ExitId};
use crate::cpu::decode::flags::flag_use;
use crate::cpu::displacements::GS_SPILL_OTHER;
use crate::cpu::emit::Emitter;
use crate::cpu::emit::ZERO;
use crate::cpu::instrument::counting::has_trap;
use crate::cpu::region::{gs_region_cell, REGION_LEVEL_OFFSET, REGION_TABLE_OFFSET, WORDS_END_OFFSET};
use crate::cpu::{INDEX, RCX, TARGET};
use crate::decode::Block;
use crate::instrument::exits::ExitList;
use crate::protocol::{region_word, REGION_KIND_SHIFT, REGION_WORDS_CELL};
use iced_x86::RflagsBits;

/// What `cmp` changes.
const ARITHMETIC_FLAGS: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// Emits the question in front of `block`, number `number`. `exit` leads into the dispatcher. r10 and r11 are lent
/// (`is_lending`), or only here. `false`: a short branch does not reach.
#[must_use]
pub fn emit_question(
    emitter: &mut Emitter,
    block: &Block,
    number: BlockNumber,
    exit: ExitId,
    is_lending: bool,
) -> bool {
    let cell = gs_region_cell(number);
    let are_flags_dead = are_all_flags_dead(block);
    let to_rules;
    if are_flags_dead {
        emitter.compare_gs_byte_zero(cell);
        to_rules = emitter.jump_condition(ZERO);
    } else {
        if is_lending {
            emitter.copy_register(INDEX, RCX);
        } else {
            emitter.store_gs(GS_SPILL_OTHER, RCX);
        }
        emitter.load_gs_byte_to_rcx(cell);
        emitter.add_immediate(RCX, -1);
        let is_counted = emitter.jump_rcx_zero();
        to_rules = emitter.jump();
        let _ = emitter.bind_short(is_counted);
        if is_lending {
            emitter.copy_register(RCX, INDEX);
        } else {
            emitter.load_gs(RCX, GS_SPILL_OTHER);
        }
    }
    let back = emitter.address();
    emitter.set_cold(true);
    // rcx is in r10 here.
    let to_dispatcher = emitter.address();
    emitter.copy_register(RCX, INDEX);
    emitter.take_back_lent();
    ExitList::emit_stub_jump(emitter, exit);

    emitter.bind(to_rules);
    if !are_flags_dead && !is_lending {
        emitter.load_gs(RCX, GS_SPILL_OTHER);
    }
    if !is_lending {
        emitter.lend();
    }
    if are_flags_dead || !is_lending {
        emitter.copy_register(INDEX, RCX);
    }
    let reaches = emit_rules(emitter, number, to_dispatcher);
    emitter.copy_register(RCX, INDEX);
    if !is_lending {
        emitter.take_back_lent();
    }
    emitter.jump_to(back);
    emitter.set_cold(false);
    reaches
}

/// Emits the rules; r11 and rcx are free. `false`: `to_dispatcher` is too far.
fn emit_rules(emitter: &mut Emitter, number: BlockNumber, to_dispatcher: CachePc) -> bool {
    let (cell, level) = (gs_region_cell(number), REGION_LEVEL_OFFSET as u32);
    let words = counter_offset(CounterId::of_cell(REGION_WORDS_CELL));
    // The offset is negative until the buffer is full.
    emitter.load_gs32(RCX, words + 4);
    let is_full = emitter.jump_rcx_zero();
    emitter.load_gs_word_to_target(cell);
    emitter.load_gs_byte_to_rcx(level);
    emitter.load_gs_table_byte_to_rcx(REGION_TABLE_OFFSET as u32);
    let is_busy = emitter.jump_rcx_zero();
    emitter.store_gs_byte_of_rcx(cell + 1);
    emitter.store_gs_byte_of_rcx(level);
    emitter.load_gs(TARGET, words);
    emitter.store_gs_immediate_at_target(
        WORDS_END_OFFSET as u32,
        region_word::EXECUTED << REGION_KIND_SHIFT | number.raw(),
    );
    emitter.add_immediate(TARGET, 4);
    emitter.store_gs(words, TARGET);
    emitter.bind_short_to(is_full, to_dispatcher) && emitter.bind_short_to(is_busy, to_dispatcher)
}

/// Whether a block writes all arithmetic flags before it reads any.
fn are_all_flags_dead(block: &Block) -> bool {
    if has_trap(block, block.instructions.len()) {
        return false;
    }
    let mut killed = 0;
    for instruction in &block.instructions {
        let flags = flag_use(instruction);
        if flags.reads & ARITHMETIC_FLAGS & !killed != 0 {
            return false;
        }
        killed |= flags.kills & ARITHMETIC_FLAGS;
        if killed == ARITHMETIC_FLAGS {
            return true;
        }
    }
    false
}
