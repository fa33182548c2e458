//! Backtraces where the controller is asked what is behind the last frame: it gets what it needs to find that out.

extern crate alloc;
use super::program_memory::read_memory;
use crate::cpu::context::Registers;
use crate::cpu::probe_backtrace::copy_of;
use crate::cpu::unwinding::{walk, Frame, N_ASKING};
use crate::protocol::{backtrace_end, BacktraceHead, BACKTRACE_STACK_BYTES};
use crate::sys::calls::getpid;
use alloc::vec::Vec;
use core::mem::offset_of;

const WORD_BYTES: usize = 8;
/// The general registers, and the instruction's address.
const N_REGISTERS: u64 = 17;
const FRAME_POINTER: u64 = 5;
const PAGE_BYTES: u64 = 4096;

/// Takes a backtrace of a thread with these registers, whose block begins there.
pub fn take(registers: &Registers, block: u64, n_frames: usize) -> Vec<u8> {
    let frame_pointer = registers.held_register(FRAME_POINTER).unwrap_or(0);
    let start = Frame::of_thread(registers.pc.raw(), registers.sp(), frame_pointer);
    let mut words = alloc::vec![0u64; 1 + n_frames + N_ASKING];
    // SAFETY: there is so much room, and the handler has written below the thread's stack pointer.
    let size = unsafe { walk(start, n_frames, words.as_mut_ptr(), copy_of(block), getpid()) };
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(size);
    let rest = rest_of(registers, &bytes);
    bytes.extend(rest);
    bytes
}

/// What there is behind a backtrace, where the controller is asked (BacktraceEnd).
pub fn rest_of(registers: &Registers, backtrace: &[u8]) -> Vec<u8> {
    let mut rest = Vec::new();
    let asks = backtrace.get(offset_of!(BacktraceHead, end)) == Some(&backtrace_end::ASKS);
    let last_stack =
        backtrace.len().checked_sub(N_ASKING * WORD_BYTES).and_then(|at| backtrace.get(at..at + WORD_BYTES));
    let (true, Some(last_stack)) = (asks, last_stack) else { return rest };
    for number in 0..N_REGISTERS {
        rest.extend(registers.held_register(number).unwrap_or(0).to_le_bytes());
    }
    let last_stack = u64::from_le_bytes(core::array::from_fn(|index| last_stack[index]));
    // What is between both is read once.
    let distance = last_stack.wrapping_sub(registers.sp());
    let pieces = if distance <= BACKTRACE_STACK_BYTES {
        [read_stack(registers.sp(), distance + BACKTRACE_STACK_BYTES), Vec::new()]
    } else {
        [registers.sp(), last_stack].map(|start| read_stack(start, BACKTRACE_STACK_BYTES))
    };
    rest.extend(pieces.iter().flat_map(|piece| (piece.len() as u32).to_le_bytes()));
    pieces.iter().for_each(|piece| rest.extend_from_slice(piece));
    rest
}

/// So many bytes of a stack from an address on, as far as they are there: page by page.
fn read_stack(start: u64, n_bytes: u64) -> Vec<u8> {
    let mut bytes = alloc::vec![0; n_bytes as usize];
    let mut n_read = 0;
    while n_read < bytes.len() {
        let at = start.wrapping_add(n_read as u64);
        let n_left = bytes.len() - n_read;
        let step = n_left.min((PAGE_BYTES - at % PAGE_BYTES) as usize);
        if read_memory(at, &mut bytes[n_read..n_read + step]) < step {
            break;
        }
        n_read += step;
    }
    bytes.truncate(n_read);
    bytes
}
