//! The processor's extended state, as the kernel lays it in signal frames.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicU32, Ordering};

/// What the processor said at the start: asking again is slow under a hypervisor. 0: no XSAVE.
static XSAVE_BYTES: AtomicU32 = AtomicU32::new(0);

/// Asks the processor. Once, at the start.
pub fn initialize() {
    // CPUID.1:ECX.OSXSAVE
    if __cpuid(1).ecx & (1 << 27) != 0 {
        XSAVE_BYTES.store(__cpuid_count(0xd, 0).ebx, Ordering::Relaxed);
    }
}

/// Size of the standard-format XSAVE area for the features that the kernel enabled (CPUID.0DH.0:EBX); 512 without XSAVE.
pub fn area_bytes() -> usize {
    (XSAVE_BYTES.load(Ordering::Relaxed) as usize).max(512)
}

/// Whether the kernel enabled XSAVE.
pub fn has_xsave() -> bool {
    XSAVE_BYTES.load(Ordering::Relaxed) != 0
}

/// XCR0: the enabled features. Only where `has_xsave`.
pub fn enabled_features() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: xgetbv reads XCR0 into edx:eax; the caller checked OSXSAVE.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack)) };
    u64::from(low) | (u64::from(high) << 32)
}

/// Saves all enabled state in standard format.
///
/// # Safety
/// `area` must be 64-aligned, zeroed and at least `area_bytes` long.
pub unsafe fn save(area: *mut u8) {
    if has_xsave() {
        // SAFETY: the caller promises the area; XSAVE writes at most area_bytes() with this mask.
        unsafe { asm!("xsave64 [{0}]", in(reg) area, in("eax") u32::MAX, in("edx") u32::MAX, options(nostack)) };
    } else {
        // SAFETY: FXSAVE writes 512 bytes.
        unsafe { asm!("fxsave64 [{0}]", in(reg) area, options(nostack)) };
    }
}
