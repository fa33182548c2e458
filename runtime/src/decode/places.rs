//! Which addresses can be places of code, and how records name those that can't.
//!
//! Pure.

use crate::context::addresses::AppPc;
use crate::cpu::decode::addresses::is_in_kernel_page;
use crate::cpu::sys::kernel::USER_END;
use crate::protocol::NOWHERE_PC;

/// Whether no program can have code there: what is no address, or the kernel's.
pub fn is_beyond(address: AppPc) -> bool {
    address.raw() >= USER_END && !is_in_kernel_page(address)
}

/// How records name the place `pc`. Code may run off the end of what a program can map, so that has a name of its own.
pub fn name_of(pc: AppPc) -> AppPc {
    if is_beyond(pc) && pc.raw() != USER_END {
        AppPc::from_raw(NOWHERE_PC)
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
        for pc in [0, 0x40_0000, USER_END - 1, USER_END].map(AppPc::from_raw) {
            assert_eq!(name_of(pc), pc);
        }
        for pc in [USER_END + 1, u64::MAX, 1 << 47, 1 << 63].map(AppPc::from_raw) {
            assert_eq!(name_of(pc).raw(), NOWHERE_PC);
        }
    }
}
