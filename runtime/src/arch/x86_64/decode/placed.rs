//! Breakpoints that another put into the program's code: the kernel for its probes (uprobes), or a debugger.
//!
//! What is translated is the program's own code, as the file has it that is mapped there. Where a breakpoint was found is kept, because
//! the kernel may put other code in its place (it makes a call of a `nop`). Written under the engine's lock; reading takes none.

use crate::context::addresses::AppPc;
use crate::cpu::decode::in_place::is_in_place;
use crate::cpu::decode::MAX_INSTRUCTION_BYTES;
use crate::cpu::guarded;
use crate::sys::mappings;
use core::sync::atomic::{fence, AtomicU64, AtomicUsize, Ordering};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

const INT3: u8 = 0xcc;
const N_PLACES: usize = 4096;

/// The thread may go on anywhere behind the instruction.
pub const ANYWHERE: AppPc = AppPc::from_raw(1);
/// No bit of the program's addresses: executing the instruction twice is not as once.
const ONCE: u64 = 1 << 63;

struct Place {
    /// All bits of its address the other way round, or one of two that are not the program's.
    key: AtomicU64,
    /// The instruction that belongs there, and its length in the last byte.
    words: [AtomicU64; 2],
    /// Where the thread comes to if the instruction is executed, `ANYWHERE` if it is a branch, with `ONCE`; 0: it is not to be executed
    /// there.
    next: AtomicU64,
}

const NEVER_USED: u64 = 0;
const NOT_USED_NOW: u64 = 1;

/// Each is at the first place from that of its address on that was free.
static PLACES: [Place; N_PLACES] =
    [const { Place { key: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; 2], next: AtomicU64::new(0) } };
        N_PLACES];
static N_USED: AtomicUsize = AtomicUsize::new(0);

/// What the place of `pc` has as its key.
fn key_of(pc: AppPc) -> u64 {
    !pc.raw()
}

/// The places where one of `key` may be.
fn places_for(key: u64) -> impl Iterator<Item = &'static Place> {
    let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
    (0..N_PLACES).map(move |n| &PLACES[(first + n) % N_PLACES])
}

/// What `read` makes of the place of `pc`, if it has one.
fn with_place<T>(pc: AppPc, read: impl Fn(&Place) -> T) -> Option<T> {
    if N_USED.load(Ordering::Acquire) == 0 {
        return None;
    }
    let used = places_for(key_of(pc)).take_while(|place| place.key.load(Ordering::Acquire) != NEVER_USED);
    let place = used.into_iter().find(|place| place.key.load(Ordering::Relaxed) == key_of(pc))?;
    let what = read(place);
    // Meanwhile it may have been given to another address.
    fence(Ordering::Acquire);
    (place.key.load(Ordering::Relaxed) == key_of(pc)).then_some(what)
}

/// Whether a breakpoint was found at `pc`.
pub fn is_known(pc: AppPc) -> bool {
    with_place(pc, |_| ()).is_some()
}

/// Where the instruction at `pc` leads to, if a breakpoint was found there, by which it may be executed.
pub fn next_of(pc: AppPc) -> Option<AppPc> {
    with_place(pc, |place| place.next.load(Ordering::Relaxed))
        .filter(|next| *next != 0)
        .map(|next| AppPc::from_raw(next & !ONCE))
}

/// Whether the instruction at `pc`, where a breakpoint was found, is to be executed once: there, or as a copy.
pub fn is_for_once(pc: AppPc) -> bool {
    with_place(pc, |place| place.next.load(Ordering::Relaxed)).is_some_and(|next| next & ONCE != 0)
}

/// The instruction that belongs to `pc`, with its length, where a breakpoint was found.
pub fn instruction_at(pc: AppPc) -> Option<([u8; 16], usize)> {
    let words = with_place(pc, |place| place.words.each_ref().map(|word| word.load(Ordering::Relaxed)))?;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_le_bytes());
    bytes[8..].copy_from_slice(&words[1].to_le_bytes());
    let length = usize::from(core::mem::take(&mut bytes[15]));
    Some((bytes, length))
}

/// Looks whether the code at `pc`, which begins with `first`, is a breakpoint that the file behind it does not have; it is known
/// from then on.
pub fn learn(pc: AppPc, first: u8) -> bool {
    if first != INT3 || is_known(pc) {
        return false;
    }
    let mut bytes = [0; 16];
    let n = mappings::read_file_behind(pc.raw(), &mut bytes[..MAX_INSTRUCTION_BYTES]);
    if n == 0 || bytes[0] == INT3 {
        return false;
    }
    let mut decoder = Decoder::with_ip(64, &bytes[..n], pc.raw(), DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    decoder.decode_out(&mut instruction);
    let free = places_for(key_of(pc)).find(|place| place.key.load(Ordering::Relaxed) <= NOT_USED_NOW);
    let (Some(place), false) = (free, instruction.code() == Code::INVALID) else {
        return false;
    };
    bytes[instruction.len()..].fill(0);
    bytes[15] = instruction.len() as u8;
    let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
    place.words[0].store(word(0), Ordering::Relaxed);
    place.words[1].store(word(8), Ordering::Relaxed);
    place.next.store(next_if_executed(&instruction), Ordering::Relaxed);
    place.key.store(key_of(pc), Ordering::Release);
    N_USED.fetch_add(1, Ordering::Release);
    true
}

/// Forgets the breakpoints from `start` up to `end` in whose place the program's own instruction is again. Whether there was one.
pub fn forget_gone(start: AppPc, end: AppPc) -> bool {
    if N_USED.load(Ordering::Acquire) == 0 {
        return false;
    }
    let mut is_any = false;
    for place in &PLACES {
        let key = place.key.load(Ordering::Relaxed);
        let pc = AppPc::from_raw(!key);
        if key <= NOT_USED_NOW || !(start..end).contains(&pc) {
            continue;
        }
        let mut there = [0; 16];
        let Some((instruction, length)) = instruction_at(pc) else { continue };
        let is_back =
            guarded::read_code(&mut there[..length], pc) == length && there[..length] == instruction[..length];
        if is_back {
            place.key.store(NOT_USED_NOW, Ordering::Relaxed);
            // Before any other address gets the place.
            fence(Ordering::Release);
            N_USED.fetch_sub(1, Ordering::Release);
            is_any = true;
        }
    }
    is_any
}

/// As `Place::next` has it. Executed twice from the same registers is as once what writes to general registers alone, and what
/// pushes: the thread's own stack is written.
fn next_if_executed(instruction: &Instruction) -> u64 {
    let is_general = |index: u32| match instruction.op_kind(index) {
        OpKind::Register => instruction.op_register(index).is_gpr() || instruction.op_register(index) == Register::None,
        _ => true,
    };
    let writes_memory = instruction.op_count() != 0
        && !matches!(instruction.op0_kind(), OpKind::Register | OpKind::NearBranch64)
        && !is_immediate(instruction.op0_kind());
    let is_nop = matches!(instruction.code(), Code::Nopd | Code::Nop_rm16 | Code::Nop_rm32 | Code::Nop_rm64);
    let is_plain = is_nop || (!writes_memory && (0..instruction.op_count()).all(is_general));
    let shows_flags = matches!(instruction.code(), Code::Pushfq | Code::Pushfw | Code::Popfq | Code::Popfw);
    // Repeated strings trap behind each turn, and behind what loads the stack selector no trap comes.
    let writes_selector = instruction.op_count() != 0 && instruction.op0_register().is_segment_register();
    let is_repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let is_special = is_repeated || writes_selector || is_in_place(instruction);
    if shows_flags || instruction.is_privileged() {
        return 0;
    }
    if !is_plain {
        let is_straight = instruction.flow_control() == FlowControl::Next && !is_special;
        return if is_straight { instruction.next_ip() | ONCE } else { 0 };
    }
    match instruction.flow_control() {
        FlowControl::Next => instruction.next_ip(),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Return => ANYWHERE.raw(),
        FlowControl::Call if instruction.code() == Code::Call_rel32_64 => ANYWHERE.raw(),
        _ => 0,
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(code: &[u8]) -> u64 {
        let mut decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        next_if_executed(&decoder.decode())
    }

    #[test]
    fn what_writes_memory_is_not_executed_twice() {
        let plain: [&[u8]; 7] = [
            &[0x55],
            &[0x48, 0x83, 0xec, 8],
            &[0xf3, 0x0f, 0x1e, 0xfa],
            &[0x0f, 0x1f, 0x44, 0, 8],
            &[0x48, 0x8b, 7],
            &[0x6a, 1],
            &[0x90],
        ];
        for code in plain {
            assert_eq!(next(code), 0x1000 + code.len() as u64, "{code:x?}");
        }
        for code in [&[0xeb, 0][..], &[0x74, 0], &[0xe8, 0, 0, 0, 0], &[0xc3]] {
            assert_eq!(next(code), ANYWHERE.raw(), "{code:x?}");
        }
        let once: [&[u8]; 6] = [
            &[0x48, 0x89, 7],
            &[0x48, 1, 7],
            &[0x87, 7],
            &[0xa4],
            &[0x0f, 0x58, 0xc1],
            &[0xf0, 0x48, 0x0f, 0xb1, 0x0e],
        ];
        for code in once {
            assert_eq!(next(code), ONCE | (0x1000 + code.len() as u64), "{code:x?}");
        }
        let others: [&[u8]; 7] =
            [&[0xf3, 0xa4], &[0x9c], &[0x0f, 5], &[0xff, 0xd0], &[0x8e, 0xe8], &[0x8e, 0xd0], &[0x65, 0xa4]];
        for code in others {
            assert_eq!(next(code), 0, "{code:x?}");
        }
    }

    #[test]
    fn what_has_its_instruction_again_is_forgotten() {
        static CODE: [u8; 2] = [0x55, 0xc3];
        let pc = AppPc::from_raw(CODE.as_ptr() as u64);
        let place = places_for(key_of(pc)).next().unwrap();
        for (length, bytes) in [(2, 0xc3_54), (2, 0xc3_55u64)] {
            place.words[0].store(bytes, Ordering::Relaxed);
            place.words[1].store(length << 56, Ordering::Relaxed);
            place.next.store((pc + length).raw(), Ordering::Relaxed);
            place.key.store(key_of(pc), Ordering::Relaxed);
            N_USED.fetch_add(1, Ordering::Relaxed);
            assert!(is_known(pc) && next_of(pc) == Some(pc + 2) && instruction_at(pc).unwrap().1 == 2);
            assert!(!forget_gone(pc + 1, AppPc::HIGHEST) && !forget_gone(AppPc::LOWEST, pc));
            let is_back = bytes == 0xc3_55;
            assert_eq!(forget_gone(pc, pc + 1), is_back);
            assert_eq!(is_known(pc), !is_back);
        }
        N_USED.store(0, Ordering::Relaxed);
    }

    #[test]
    fn the_programs_own_are_none_of_others() {
        static CODE: [u8; 2] = [INT3, 0xc3];
        let pc = AppPc::from_raw(CODE.as_ptr() as u64);
        assert!(!learn(pc, CODE[0]) && !learn(pc, 0x90));
        assert!(!is_known(pc) && next_of(AppPc::LOWEST).is_none() && instruction_at(AppPc::LOWEST).is_none());
    }
}
