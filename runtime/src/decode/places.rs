//! Which addresses can be places of code, and how records name those that can't.
//!
//! Pure.

use crate::cpu::sys::kernel::USER_END;
use crate::protocol::NOWHERE_PC;

/// The vsyscall page (arch/x86/entry/vsyscall/vsyscall_64.c).
pub const VSYSCALL_PAGE: u64 = 0xffff_ffff_ff60_0000;

/// Whether `pc` is in the vsyscall page.
pub fn is_in_vsyscall_page(pc: u64) -> bool {
    pc & !0xfff == VSYSCALL_PAGE
}

/// Whether the processor takes an address for one: bits 47 to 63 are the same.
pub fn is_canonical(address: u64) -> bool {
    let high = address as i64 >> 47;
    high == 0 || high == -1
}

/// Whether no program can have code there: what is no address, or the kernel's.
pub fn is_beyond(address: u64) -> bool {
    address >= USER_END && !is_in_vsyscall_page(address)
}

/// How records name the place `pc`. Code may run off the end of what a program can map, so that has a name of its own.
pub fn name_of(pc: u64) -> u64 {
    if is_beyond(pc) && pc != USER_END {
        NOWHERE_PC
    } else {
        pc
    }
}

const _: () = assert!(NOWHERE_PC > USER_END);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_a_name() {
        for pc in [0, 0x40_0000, USER_END - 1, USER_END, VSYSCALL_PAGE, VSYSCALL_PAGE + 0xfff] {
            assert_eq!((name_of(pc), is_canonical(pc)), (pc, true));
        }
        for pc in [USER_END + 1, u64::MAX, 1 << 47, 1 << 63, VSYSCALL_PAGE - 1, VSYSCALL_PAGE + 0x1000] {
            assert_eq!(name_of(pc), NOWHERE_PC);
        }
        assert_eq!([USER_END, u64::MAX, 1 << 47, 1 << 63].map(is_canonical), [true, true, false, false]);
    }
}
