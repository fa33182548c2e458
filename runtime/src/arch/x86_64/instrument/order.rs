//! Code that records in which order everything is executed (mode `full`): decisions, surprises and symbols.
//!
//! What a path is, and how its streams are read, is written down in the crate `pathcodec`. Nothing here touches the flags but
//! counting, which asks where they are dead. Whatever a kill leaves behind is a true beginning of the path: a surprise is written
//! behind the others first, where zeros are otherwise, then the decisions are cleared, one cell after the other, and the offset
//! moves last. So a number that is whole counts as written, wherever the kill came (recording/raw/path_tail.py). All accesses are
//! aligned: the program may have alignment checks on.

use crate::context::addresses::CachePc;
use crate::context::numbers::ExitId;
use crate::cpu::displacements::{gs_path_cell, SURPRISES_END_OFFSET, SYMBOLS_END_OFFSET};
use crate::cpu::emit::Emitter;
use crate::cpu::features::Features;
use crate::cpu::{Gpr, INDEX, RCX, TARGET};
use crate::instrument::exits::ExitList;
use crate::protocol::{PATH_DECISIONS_CELL, PATH_OTHER_DECISIONS_CELL, PATH_SURPRISES_CELL, PATH_SYMBOLS_CELL};
use clew_pathcodec::symbols::WIDE_SYMBOL;

/// The end of code that writes: where it leads when the buffer is full, still to be bound.
#[must_use]
pub struct FullBuffer {
    place: CachePc,
    /// Where it leads instead of writing: the dispatcher does that.
    long: Option<CachePc>,
    /// Where rcx is then.
    saved: Gpr,
    exit: ExitId,
    /// Its short branches reach where they lead.
    reaches: bool,
}

impl FullBuffer {
    /// Emits, behind the jump of exit `exit`, the way by the dispatcher to where that leads: it empties the buffer. `false`: it
    /// is too far.
    pub fn emit(self, emitter: &mut Emitter) -> bool {
        let (saved, exit) = (self.saved, self.exit);
        let reaches = self.bind(emitter);
        emitter.copy_register(RCX, saved);
        emitter.take_back_lent();
        ExitList::emit_stub_jump(emitter, exit);
        reaches
    }

    /// Binds it here. `false`: it is too far.
    pub fn bind(self, emitter: &mut Emitter) -> bool {
        if let Some(place) = self.long {
            emitter.bind(place);
        }
        emitter.bind_short(self.place) && self.reaches
    }
}

/// Emits what writes a surprise, in front of the jump of exit `exit`, which is marked with `mark_surprise`. r10 and r11 are lent
/// from the fragment's start on (`is_lending`), or only here.
pub fn emit_surprise(emitter: &mut Emitter, exit: ExitId, is_lending: bool, has_rotate: bool) -> FullBuffer {
    if !is_lending {
        emitter.lend();
    }
    emitter.copy_register(INDEX, RCX);
    let full = emit_surprise_bytes(emitter, exit, has_rotate);
    emitter.copy_register(RCX, INDEX);
    if !is_lending {
        emitter.take_back_lent();
    }
    full
}

/// As `emit_surprise`, where rcx and r11 are free: they are lost.
pub fn emit_surprise_bytes(emitter: &mut Emitter, exit: ExitId, has_rotate: bool) -> FullBuffer {
    let (decisions, offset) = (gs_path_cell(PATH_DECISIONS_CELL), gs_path_cell(PATH_SURPRISES_CELL));
    let others = gs_path_cell(PATH_OTHER_DECISIONS_CELL);
    emit_sum(emitter);
    if !has_rotate {
        emitter.store_gs_zero(others);
        emitter.store_gs(decisions, RCX);
    }
    emitter.load_gs(TARGET, offset);
    emitter.store_gs_low_byte_at(SURPRISES_END_OFFSET as u32, TARGET, RCX);
    // All but the lowest byte, and all but the lowest two: more of them take a wider form, or the dispatcher.
    let is_short = if has_rotate {
        emitter.rotate_right(RCX, RCX, 8);
        let is_short = emitter.jump_ecx_zero();
        emit_sum(emitter);
        emitter.load_gs(TARGET, offset);
        is_short
    } else {
        emit_rest(emitter, decisions);
        emitter.load_gs_byte_to_target(decisions + 1);
        emitter.add_registers(RCX, RCX, Some(TARGET), 1, 0);
        emitter.load_gs(TARGET, offset);
        emitter.jump_rcx_zero()
    };
    let is_wide = if has_rotate {
        emitter.rotate_right(RCX, RCX, 16);
        emitter.jump_ecx_zero()
    } else {
        emit_rest(emitter, decisions);
        emitter.load_gs(TARGET, offset);
        emitter.jump_rcx_zero()
    };
    let long = Some(emitter.jump());
    let mut reaches = emitter.bind_short(is_wide);
    let end = SURPRISES_END_OFFSET as u32;
    emitter.store_gs_byte_at(end, TARGET, 0);
    if has_rotate {
        emit_sum(emitter);
        emitter.load_gs(TARGET, offset);
        emitter.store_gs_low_byte_at(end + 1, TARGET, RCX);
        emitter.rotate_right(RCX, RCX, 8);
    } else {
        emitter.load_gs(RCX, decisions);
        emitter.store_gs_low_byte_at(end + 1, TARGET, RCX);
        emitter.load_gs_byte_to_rcx(decisions + 1);
    }
    emitter.store_gs_low_byte_at(end + 2, TARGET, RCX);
    emitter.add_immediate(TARGET, 2);
    reaches &= emitter.bind_short(is_short);
    emitter.store_gs_zero(decisions);
    if has_rotate {
        emitter.store_gs_zero(others);
    }
    emitter.add_immediate(TARGET, 1);
    emitter.store_gs(offset, TARGET);
    let place = emit_end_question(emitter, offset, has_rotate);
    FullBuffer { place, long, saved: INDEX, exit, reaches }
}

/// Emits rcx = what is zero if all of the decisions but their lowest two bytes are; r11 is lost.
fn emit_rest(emitter: &mut Emitter, decisions: u32) {
    emitter.load_gs32(RCX, decisions + 4);
    emitter.load_gs_word_to_target(decisions + 2);
    emitter.add_registers(RCX, RCX, Some(TARGET), 1, 0);
}

/// Emits rcx = decisions since the last surprise; r11 is lost.
fn emit_sum(emitter: &mut Emitter) {
    emitter.load_gs(RCX, gs_path_cell(PATH_DECISIONS_CELL));
    emitter.load_gs(TARGET, gs_path_cell(PATH_OTHER_DECISIONS_CELL));
    emitter.add_registers(RCX, RCX, Some(TARGET), 1, 0);
}

/// Emits what writes a pad's symbol, in front of the jump of its exit `exit`. rcx is in r10, and put back; r11 is free.
pub fn emit_symbol(emitter: &mut Emitter, symbol: u16, exit: ExitId, features: Features) -> FullBuffer {
    emit_symbol_bytes(emitter, symbol);
    let full = emit_full_question(emitter, exit, features.has_rotate);
    emitter.copy_register(RCX, INDEX);
    full
}

/// Emits what writes a symbol. r11 is free, and the offset behind it then.
pub fn emit_symbol_bytes(emitter: &mut Emitter, symbol: u16) {
    let offset = gs_path_cell(PATH_SYMBOLS_CELL);
    let end = SYMBOLS_END_OFFSET as u32;
    emitter.load_gs(TARGET, offset);
    if symbol < u16::from(WIDE_SYMBOL) {
        emitter.store_gs_byte_at(end, TARGET, symbol as u8);
        emitter.add_immediate(TARGET, 1);
    } else {
        emitter.store_gs_byte_at(end, TARGET, WIDE_SYMBOL);
        emitter.store_gs_byte_at(end + 1, TARGET, symbol as u8);
        emitter.store_gs_byte_at(end + 2, TARGET, (symbol >> 8) as u8);
        emitter.add_immediate(TARGET, 3);
    }
    emitter.store_gs(offset, TARGET);
}

/// Emits the question whether there is room for more symbols, behind `emit_symbol_bytes`. rcx is in r10, and lost.
pub fn emit_full_question(emitter: &mut Emitter, exit: ExitId, has_rotate: bool) -> FullBuffer {
    let place = emit_end_question(emitter, gs_path_cell(PATH_SYMBOLS_CELL), has_rotate);
    FullBuffer { place, long: None, saved: INDEX, exit, reaches: true }
}

/// Emits a jump to be bound, for when the offset, also in r11, came to the end of its buffer: it is negative up to there. rcx is
/// lost.
fn emit_end_question(emitter: &mut Emitter, offset: u32, has_rotate: bool) -> CachePc {
    if has_rotate {
        emitter.rotate_right(RCX, TARGET, 32);
        return emitter.jump_ecx_zero();
    }
    emitter.load_gs32(RCX, offset + 4);
    emitter.jump_rcx_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(has_rotate: bool) -> Features {
        Features { has_rotate, ..Features::NONE }
    }

    use iced_x86::{Decoder, DecoderOptions, Register};

    /// Shows that each access of `code` is aligned: what has a number added to it, which may be any, is a byte.
    fn check_alignment(code: &[u8]) {
        let mut n = 0;
        for instruction in Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE) {
            if instruction.memory_segment() == Register::GS {
                let size = instruction.memory_size().size() as u64;
                let is_byte_only = instruction.memory_base() == TARGET_REGISTER;
                assert_eq!(instruction.memory_displacement64() % size, 0, "{instruction:?}");
                assert!(!is_byte_only || size == 1, "{instruction:?}");
                n += 1;
            }
        }
        assert!(n > 2);
    }

    const TARGET_REGISTER: Register = Register::R11;
    const EXIT: ExitId = ExitId::from_raw(1);

    #[test]
    fn all_accesses_are_aligned() {
        for has_rotate in [false, true] {
            let mut emissions: [&mut dyn FnMut(&mut Emitter) -> bool; 3] = [
                &mut |e| emit_surprise(e, EXIT, false, has_rotate).emit(e),
                &mut |e| emit_symbol(e, 1, EXIT, features(has_rotate)).emit(e),
                &mut |e| emit_symbol(e, 0x1234, EXIT, features(has_rotate)).emit(e),
            ];
            for emit in &mut emissions {
                let mut buffer = [0u8; 512];
                let mut emitter = Emitter::new(&mut buffer, 0x1000, &mut [], 0);
                assert!(emit(&mut emitter), "short branches reach");
                let size = emitter.position();
                check_alignment(&buffer[..size]);
            }
        }
    }
}
