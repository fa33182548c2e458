//! Which numbers the processor takes for addresses of code, and where the kernel has code that programs call.

use crate::protocol::PAGE_BYTES;

/// The vsyscall page (arch/x86/entry/vsyscall/vsyscall_64.c).
pub const VSYSCALL_PAGE: u64 = 0xffff_ffff_ff60_0000;

/// Whether `pc` is in a page of the kernel's that programs may execute: the vsyscall page.
pub fn is_in_kernel_page(pc: u64) -> bool {
    pc & !(PAGE_BYTES - 1) == VSYSCALL_PAGE
}

/// Whether the processor takes an address for one: bits 47 to 63 are the same.
pub fn is_canonical(address: u64) -> bool {
    let high = address as i64 >> 47;
    high == 0 || high == -1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::sys::kernel::USER_END;
    use crate::decode::places::name_of;
    use crate::protocol::NOWHERE_PC;

    #[test]
    fn canonical_addresses_are_told_from_others() {
        assert_eq!([USER_END, u64::MAX, 1 << 47, 1 << 63].map(is_canonical), [true, true, false, false]);
        assert!([0, USER_END - 1, VSYSCALL_PAGE, VSYSCALL_PAGE + 0xfff].into_iter().all(is_canonical));
    }

    #[test]
    fn the_kernels_page_has_names() {
        assert_eq!([0, 0xfff].map(|offset| name_of(VSYSCALL_PAGE + offset)), [VSYSCALL_PAGE, VSYSCALL_PAGE + 0xfff]);
        assert_eq!([VSYSCALL_PAGE - 1, VSYSCALL_PAGE + 0x1000].map(name_of), [NOWHERE_PC; 2]);
    }
}
