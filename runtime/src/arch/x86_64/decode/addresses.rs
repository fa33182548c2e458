//! Which numbers the processor takes for addresses of code, and where the kernel has code that programs call.

use crate::context::addresses::AppPc;
use crate::protocol::PAGE_BYTES;

/// The vsyscall page (arch/x86/entry/vsyscall/vsyscall_64.c).
pub const VSYSCALL_PAGE: AppPc = AppPc::from_raw(0xffff_ffff_ff60_0000);

/// Whether `pc` is in a page of the kernel's that programs may execute: the vsyscall page.
pub fn is_in_kernel_page(pc: AppPc) -> bool {
    pc.bytes_behind(VSYSCALL_PAGE) < PAGE_BYTES
}

/// Whether the processor takes an address for one: bits 47 to 63 are the same.
pub fn is_canonical(address: AppPc) -> bool {
    let high = address.raw() as i64 >> 47;
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
        assert_eq!(
            [USER_END, u64::MAX, 1 << 47, 1 << 63].map(AppPc::from_raw).map(is_canonical),
            [true, true, false, false]
        );
        let last = AppPc::from_raw(USER_END - 1);
        assert!([AppPc::LOWEST, last, VSYSCALL_PAGE, VSYSCALL_PAGE + 0xfff].into_iter().all(is_canonical));
    }

    #[test]
    fn the_kernels_page_has_names() {
        assert_eq!([0, 0xfff].map(|offset| name_of(VSYSCALL_PAGE + offset)), [VSYSCALL_PAGE, VSYSCALL_PAGE + 0xfff]);
        assert_eq!([VSYSCALL_PAGE - 1, VSYSCALL_PAGE + 0x1000].map(name_of), [AppPc::from_raw(NOWHERE_PC); 2]);
    }
}
