//! Looking at code ahead, without translating it.

use super::MAX_INSTRUCTION_BYTES;
use crate::context::addresses::AppPc;
use crate::cpu::decode::block::decoder_options;
use crate::decode::ranges::{Kind, Ranges};
use crate::decode::trusted::page_of;
use crate::decode::window::CodeWindow;
use core::ops::ControlFlow;
use iced_x86::{Code, Decoder, Instruction};

/// Shows the instructions from `pc` on to `visit`, one after the other, until it breaks off: with what it says then.
///
/// `home` is the address of the block that relies on it: what changes in that one's page is no more than the block's own end.
///
/// `None` where it can't go on: there is no more code that fits `buffer`, the decoder does not know an instruction, the program
/// may write the code, or `left`, which is how many may still be looked at, has come to zero.
pub fn look_along<T>(
    ranges: &Ranges,
    home: AppPc,
    pc: AppPc,
    buffer: &mut [u8],
    left: &mut usize,
    mut visit: impl FnMut(&Instruction) -> ControlFlow<T>,
) -> Option<T> {
    let mut window = CodeWindow::open(buffer, ranges, pc);
    window.keep_to_kind();
    match window.kind {
        Kind::Fixed => {}
        Kind::Trusted if page_of(pc) == page_of(home) => window.keep_to_page(),
        _ => return None,
    }
    let mut start = 0;
    let mut instruction = Instruction::default();
    loop {
        window.extend();
        let code = &window.bytes()[start..];
        let mut decoder = Decoder::with_ip(64, code, (pc + start as u64).raw(), decoder_options());
        loop {
            let cut = code.len() - decoder.position() < MAX_INSTRUCTION_BYTES;
            if cut && window.is_open() {
                start += decoder.position();
                break;
            }
            if *left == 0 || !decoder.can_decode() {
                return None;
            }
            *left -= 1;
            decoder.decode_out(&mut instruction);
            if instruction.code() == Code::INVALID {
                return None;
            }
            if let ControlFlow::Break(said) = visit(&instruction) {
                return Some(said);
            }
        }
    }
}
