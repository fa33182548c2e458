//! The processor's extended state, as the kernel lays it in signal frames.
//!
//! Tiles (AMX) are in a thread's frames only once it uses them: until then its state has no room for them, and the kernel
//! takes a frame that is larger than the thread's state for one without extended state (arch/x86/kernel/fpu/signal.c,
//! check_xstate_in_sigframe).

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The components that the kernel gives a thread when it uses them first (XFEATURE_MASK_USER_DYNAMIC).
const TILE_DATA: u64 = 1 << 18;
/// Protection keys (PKRU).
const KEYS: u64 = 1 << KEYS_COMPONENT;
const KEYS_COMPONENT: u32 = 9;
/// The first component behind the legacy area and the header; numbers of components are below 63.
const FIRST_EXTENDED: u32 = 2;
const EXTENDED_COMPONENTS: u32 = 63;
const LEGACY_AND_HEADER_BYTES: u32 = 576;

/// What the processor said at the start: asking again is slow under a hypervisor. 0: no XSAVE.
static FEATURES: AtomicU64 = AtomicU64::new(0);
static KEYS_OFFSET: AtomicU32 = AtomicU32::new(0);
static BYTES_WITHOUT_TILES: AtomicU32 = AtomicU32::new(512);
static BYTES_WITH_TILES: AtomicU32 = AtomicU32::new(512);

/// Asks the processor. Once, at the start.
pub fn initialize() {
    // CPUID.1:ECX.OSXSAVE
    if __cpuid(1).ecx & (1 << 27) == 0 {
        return;
    }
    let features = read_register(0);
    FEATURES.store(features, Ordering::Relaxed);
    KEYS_OFFSET.store(__cpuid_count(0xd, KEYS_COMPONENT).ebx, Ordering::Relaxed);
    BYTES_WITH_TILES.store(bytes_of(features), Ordering::Relaxed);
    BYTES_WITHOUT_TILES.store(bytes_of(features & !TILE_DATA), Ordering::Relaxed);
}

/// Where the last of these components ends in standard format (CPUID.0DH.i: EAX its size, EBX its place).
fn bytes_of(features: u64) -> u32 {
    (FIRST_EXTENDED..EXTENDED_COMPONENTS)
        .filter(|component| features & (1 << component) != 0)
        .map(|component| __cpuid_count(0xd, component))
        .fold(LEGACY_AND_HEADER_BYTES, |end, component| end.max(component.ebx + component.eax))
}

/// Whether the kernel enabled XSAVE.
pub fn has_xsave() -> bool {
    FEATURES.load(Ordering::Relaxed) != 0
}

/// The features that a frame of the calling thread has; those of XCR0, with tiles only if it uses them. 0 without XSAVE.
pub fn features() -> u64 {
    let features = FEATURES.load(Ordering::Relaxed);
    // Where there are tiles, XGETBV with ECX = 1 tells what is in use (CPUID.(EAX=0DH,ECX=1):EAX[2]).
    if features & TILE_DATA != 0 && read_register(1) & TILE_DATA == 0 {
        return features & !TILE_DATA;
    }
    features
}

/// Size of an area in standard format for `features`; 512 without XSAVE.
pub fn area_bytes(features: u64) -> usize {
    let bytes = if features & TILE_DATA != 0 { &BYTES_WITH_TILES } else { &BYTES_WITHOUT_TILES };
    bytes.load(Ordering::Relaxed) as usize
}

/// XCR0, or with 1 those of its components that are not as the processor starts with. Only with OSXSAVE.
fn read_register(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: xgetbv reads into edx:eax; the caller knows OSXSAVE, and for 1 that there are tiles, which came later than it.
    unsafe { asm!("xgetbv", in("ecx") number, out("eax") low, out("edx") high, options(nomem, nostack)) };
    u64::from(low) | (u64::from(high) << 32)
}

/// Saves the state of `features` in standard format.
///
/// # Safety
/// `area` must be 64-aligned, zeroed and at least `area_bytes(features)` long.
pub unsafe fn save(area: *mut u8, features: u64) {
    if has_xsave() {
        let (low, high) = (features as u32, (features >> 32) as u32);
        // SAFETY: the caller promises the area; XSAVE writes no component that is not in edx:eax.
        unsafe { asm!("xsave64 [{0}]", in(reg) area, in("eax") low, in("edx") high, options(nostack)) };
    } else {
        // SAFETY: FXSAVE writes 512 bytes.
        unsafe { asm!("fxsave64 [{0}]", in(reg) area, options(nostack)) };
    }
}

/// Loads the state of `features`, but for MXCSR.
///
/// # Safety
/// `area` must be 64-aligned and hold what the kernel or `save` put there. Only with XSAVE.
pub unsafe fn load(area: *const u8, features: u64) {
    let (low, high) = (features as u32, (features >> 32) as u32);
    let own_mxcsr = 0x1f80u32;
    // SAFETY: the caller promises the area. The runtime's code relies on MXCSR, which comes with the vector registers.
    unsafe {
        asm!("xrstor64 [{0}]", "ldmxcsr [{1}]", in(reg) area, in(reg) &raw const own_mxcsr, in("eax") low, in("edx") high,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _, options(nostack));
    }
}

/// Whether the protection keys in an area of `features` are not those that the calling thread has now.
///
/// # Safety
/// `area` must hold what the kernel put there for `features`. Only with XSAVE.
pub unsafe fn has_other_keys(area: *const u8, features: u64) -> bool {
    if features & KEYS == 0 {
        return false;
    }
    let now: u32;
    // SAFETY: what XCR0 has of keys is there only where the kernel enabled them, and the area has their place.
    unsafe {
        asm!("rdpkru", in("ecx") 0, out("eax") now, out("edx") _, options(nomem, nostack));
        area.add(KEYS_OFFSET.load(Ordering::Relaxed) as usize).cast::<u32>().read_unaligned() != now
    }
}

/// Where the address of the last x87 instruction is in an area.
pub const LAST_X87_OFFSET: usize = 8;

/// Has the processor take another address for that of the last x87 instruction, if `replace` has one for it.
pub fn replace_last_x87(replace: impl FnOnce(u64) -> Option<u64>) {
    #[repr(C, align(16))]
    struct Area([u8; 512]);
    let mut area = Area([0; 512]);
    let at = LAST_X87_OFFSET..LAST_X87_OFFSET + 8;
    // SAFETY: FXSAVE writes 512 bytes, which are aligned to 16.
    unsafe { asm!("fxsave64 [{0}]", in(reg) &raw mut area, options(nostack)) };
    let last = u64::from_le_bytes(core::array::from_fn(|i| area.0[LAST_X87_OFFSET + i]));
    if let Some(other) = replace(last) {
        area.0[at].copy_from_slice(&other.to_le_bytes());
        // SAFETY: but for the address it is the state that the processor has: MXCSR is valid, no register changes. The
        // upper halves of vector registers stay (Intel SDM volume 1, 10.5.3).
        unsafe { asm!("fxrstor64 [{0}]", in(reg) &raw const area, options(nostack)) };
    }
}
