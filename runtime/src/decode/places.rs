//! Which addresses can be places of code, and how records name those that can't.
//!
//! Pure.

use crate::cpu::decode::addresses::is_in_kernel_page;
use crate::cpu::sys::kernel::USER_END;
use crate::protocol::NOWHERE_PC;

/// Whether no program can have code there: what is no address, or the kernel's.
pub fn is_beyond(address: u64) -> bool {
    address >= USER_END && !is_in_kernel_page(address)
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
        for pc in [0, 0x40_0000, USER_END - 1, USER_END] {
            assert_eq!(name_of(pc), pc);
        }
        for pc in [USER_END + 1, u64::MAX, 1 << 47, 1 << 63] {
            assert_eq!(name_of(pc), NOWHERE_PC);
        }
    }
}
