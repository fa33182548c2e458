//! Seccomp filters, wrapped so that they decide about the program's system calls and not about the runtime's.
//!
//! A filter is a classic BPF program that sees a call's number, arguments and the address behind its instruction. Every
//! call of the runtime's own is made from its image, and every one of the program's from four instructions there that are
//! known, or from outside. In front of the program's filter goes a look at the address; the filter itself is not changed.

extern crate alloc;
use super::calls::set_signal_mask;
use super::kernel::SIGSYS;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

/// `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    pub code: u16,
    /// How many instructions to skip, of a conditional jump.
    pub if_true: u8,
    pub if_false: u8,
    pub k: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Program {
    pub length: u16,
    pub padding: [u8; 6],
    pub instructions: u64,
}

/// As many instructions as the kernel takes (BPF_MAXINSNS).
pub const MAX_LENGTH: usize = 4096;

/// BPF_LD | BPF_W | BPF_ABS: loads a word of `struct seccomp_data`.
const LOAD: u16 = 0x20;
/// BPF_LD | BPF_IMM
const LOAD_CONSTANT: u16 = 0x00;
/// BPF_JMP | BPF_JEQ | BPF_K, BPF_JMP | BPF_JGE | BPF_K
const JUMP_EQUAL: u16 = 0x15;
const JUMP_NOT_BELOW: u16 = 0x35;
/// BPF_RET | BPF_K
const RETURN: u16 = 0x06;
const SECCOMP_RET_ALLOW: u32 = 0x7fff_0000;
/// Halves of `seccomp_data.instruction_pointer`.
const ADDRESS_LOW: u32 = 8;
const ADDRESS_HIGH: u32 = 12;

/// Instructions in front of a wrapped filter, for `N` calls of the program's.
const fn added_length(n_calls: usize) -> usize {
    n_calls + 7
}

/// Whether the filter looks at where calls come from.
pub fn reads_address(filter: &[Instruction]) -> bool {
    filter.iter().any(|i| i.code == LOAD && (i.k == ADDRESS_LOW || i.k == ADDRESS_HIGH))
}

/// `filter` behind instructions that let pass what comes from `image` but not from in front of `program_calls`. `None`: the
/// kernel would not take it, or the image lies across a multiple of 4 GiB.
pub fn wrap<const N: usize>(
    filter: &[Instruction],
    image: Range<u64>,
    program_calls: [u64; N],
) -> Option<Vec<Instruction>> {
    let n_added = added_length(N);
    let high = (image.start >> 32) as u32;
    if filter.len() + n_added > MAX_LENGTH || (image.end >> 32) as u32 != high {
        return None;
    }
    let mut wrapped = Vec::with_capacity(filter.len() + n_added);
    // The program's filter begins with a zero accumulator, which the last of the added instructions makes.
    let to_program = |at: usize| (n_added - 1 - at - 1) as u8;
    let mut add = |code, if_true: fn(u8) -> u8, if_false: fn(u8) -> u8, k| {
        let there = to_program(wrapped.len());
        wrapped.push(Instruction { code, if_true: if_true(there), if_false: if_false(there), k });
    };
    let next = |_| 0;
    let program = |there| there;
    add(LOAD, next, next, ADDRESS_HIGH);
    add(JUMP_EQUAL, next, program, high);
    add(LOAD, next, next, ADDRESS_LOW);
    add(JUMP_NOT_BELOW, next, program, image.start as u32);
    add(JUMP_NOT_BELOW, program, next, image.end as u32);
    for address in program_calls {
        add(JUMP_EQUAL, program, next, address as u32);
    }
    wrapped.push(Instruction { code: RETURN, if_true: 0, if_false: 0, k: SECCOMP_RET_ALLOW });
    wrapped.push(Instruction { code: LOAD_CONSTANT, if_true: 0, if_false: 0, k: 0 });
    wrapped.extend_from_slice(filter);
    Some(wrapped)
}

/// A filter may apply to threads of this process.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// A filter may have the program's calls wait for an answer of this process.
static MAY_WAIT: AtomicBool = AtomicBool::new(false);

/// Notes a filter, before any thread can meet it.
pub fn note_active(has_listener: bool) {
    IS_ACTIVE.store(true, Ordering::Relaxed);
    if has_listener {
        MAY_WAIT.store(true, Ordering::Relaxed);
    }
}

/// Whether a call of the program's may wait for another of its threads.
pub fn may_wait() -> bool {
    MAY_WAIT.load(Ordering::Relaxed)
}

/// Whether the program's calls may be refused: what the runtime does in their place has to be asked for.
pub fn is_active() -> bool {
    IS_ACTIVE.load(Ordering::Relaxed)
}

/// For a call of the program's while all signals are blocked: a filter's SIGSYS kills where it is blocked, so it is not,
/// unless the program's own mask `program_mask` does. `close_after_trap` undoes it.
pub fn open_for_trap(program_mask: u64) -> bool {
    const TRAP: u64 = 1 << (SIGSYS - 1);
    let is_open = is_active() && program_mask & TRAP == 0;
    if is_open {
        set_signal_mask(!TRAP);
    }
    is_open
}

pub fn close_after_trap(is_open: bool) {
    if is_open {
        set_signal_mask(u64::MAX);
    }
}

const _: () = assert!(size_of::<Instruction>() == 8);
const _: () = assert!(size_of::<Program>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Range<u64> = 0x2a00_0000_0000..0x2a00_0009_0000;
    const CALLS: [u64; 2] = [0x2a00_0000_1002, 0x2a00_0000_2002];
    const REFUSE: u32 = 0x0005_0001;

    /// What a filter made of the instructions above says of a call from `address`.
    fn run(filter: &[Instruction], address: u64) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let i = filter[at];
            at += 1;
            let is_true = match i.code {
                LOAD => {
                    accumulator = if i.k == ADDRESS_LOW { address as u32 } else { (address >> 32) as u32 };
                    continue;
                }
                LOAD_CONSTANT => {
                    accumulator = i.k;
                    continue;
                }
                JUMP_EQUAL => accumulator == i.k,
                JUMP_NOT_BELOW => accumulator >= i.k,
                _ => return if i.k == u32::MAX { accumulator } else { i.k },
            };
            at += usize::from(if is_true { i.if_true } else { i.if_false });
        }
    }

    #[test]
    fn only_the_runtimes_own_calls_pass() {
        let refuse = [Instruction { code: RETURN, if_true: 0, if_false: 0, k: REFUSE }];
        let wrapped = wrap(&refuse, IMAGE, CALLS).unwrap();
        assert_eq!(wrapped.len(), refuse.len() + added_length(CALLS.len()));
        for own in [IMAGE.start, IMAGE.start + 0x1000, IMAGE.end - 1] {
            assert_eq!(run(&wrapped, own), SECCOMP_RET_ALLOW);
        }
        for other in [CALLS[0], CALLS[1], IMAGE.start - 1, IMAGE.end, 0x40_1000, 0x2a01_0000_1000, 0x29ff_0000_1000] {
            assert_eq!(run(&wrapped, other), REFUSE, "{other:#x}");
        }
    }

    #[test]
    fn the_filter_begins_with_a_zero_accumulator() {
        let show = [Instruction { code: RETURN, if_true: 0, if_false: 0, k: u32::MAX }];
        let wrapped = wrap(&show, IMAGE, CALLS).unwrap();
        assert_eq!(run(&wrapped, 0x40_1000), 0);
    }

    #[test]
    fn what_the_kernel_would_not_take_is_not_wrapped() {
        let instruction = Instruction { code: RETURN, if_true: 0, if_false: 0, k: 0 };
        let n_added = added_length(CALLS.len());
        assert!(wrap(&alloc::vec![instruction; MAX_LENGTH - n_added], IMAGE, CALLS).is_some());
        assert!(wrap(&alloc::vec![instruction; MAX_LENGTH - n_added + 1], IMAGE, CALLS).is_none());
        assert!(wrap(&[instruction], 0x2a00_ffff_0000..0x2a01_0001_0000, CALLS).is_none());
    }

    #[test]
    fn a_look_at_the_address_is_seen() {
        let load = |k| Instruction { code: LOAD, if_true: 0, if_false: 0, k };
        assert!(!reads_address(&[load(0), load(4), load(16)]));
        assert!(reads_address(&[load(0), load(8)]));
        assert!(reads_address(&[load(12)]));
    }
}
