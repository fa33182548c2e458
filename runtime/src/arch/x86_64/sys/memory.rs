//! memcpy, memmove, memset, memcmp and what else compiled Rust expects of the C library.
//!
//! General registers and string instructions only. Reachable from signal handlers: no state, no locks.

use core::arch::asm;

/// # Safety
/// As C's memcpy.
#[no_mangle]
pub unsafe extern "C" fn memcpy(target: *mut u8, source: *const u8, size: usize) -> *mut u8 {
    // The string instruction takes tens of cycles to begin, and most copies are of one instruction.
    if size <= 16 {
        // SAFETY: the caller promises both ranges; the two halves overlap, and together are exactly `size` bytes.
        unsafe {
            if size >= 8 {
                copy_ends::<u64>(target, source, size);
            } else if size >= 4 {
                copy_ends::<u32>(target, source, size);
            } else if size >= 2 {
                copy_ends::<u16>(target, source, size);
            } else if size == 1 {
                target.write(source.read());
            }
        }
        return target;
    }
    // SAFETY: the caller promises both ranges; rep movsb copies exactly `size` bytes upwards.
    unsafe {
        asm!("rep movsb", inout("rcx") size => _, inout("rdi") target => _, inout("rsi") source => _,
            options(nostack, preserves_flags));
    }
    target
}

/// Copies the first and the last bytes of a range, which may overlap: both are read before either is written.
///
/// # Safety
/// `size` bytes at both places, and at least a `T`.
unsafe fn copy_ends<T: Copy>(target: *mut u8, source: *const u8, size: usize) {
    let last = size - size_of::<T>();
    // SAFETY: the caller promises that both ends lie in both ranges.
    unsafe {
        let first_part = source.cast::<T>().read_unaligned();
        let last_part = source.add(last).cast::<T>().read_unaligned();
        target.cast::<T>().write_unaligned(first_part);
        target.add(last).cast::<T>().write_unaligned(last_part);
    }
}

/// # Safety
/// As C's memmove.
#[no_mangle]
pub unsafe extern "C" fn memmove(target: *mut u8, source: *const u8, size: usize) -> *mut u8 {
    if (target as usize).wrapping_sub(source as usize) >= size {
        // SAFETY: copying upwards never overwrites what is still to be read here.
        return unsafe { memcpy(target, source, size) };
    }
    // SAFETY: the ranges overlap with the target above: copied downwards; the direction flag is cleared again.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") size => _,
            inout("rdi") target.wrapping_add(size).wrapping_sub(1) => _,
            inout("rsi") source.wrapping_add(size).wrapping_sub(1) => _, options(nostack));
    }
    target
}

/// # Safety
/// As C's memset.
#[no_mangle]
pub unsafe extern "C" fn memset(target: *mut u8, value: i32, size: usize) -> *mut u8 {
    // SAFETY: the caller promises the range.
    unsafe {
        asm!("rep stosb", inout("rcx") size => _, inout("rdi") target => _, in("al") value as u8,
            options(nostack, preserves_flags));
    }
    target
}

/// # Safety
/// As C's memcmp.
#[no_mangle]
pub unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, size: usize) -> i32 {
    for i in 0..size {
        // SAFETY: the caller promises `size` bytes on both sides.
        let (a, b) = unsafe { (left.add(i).read_volatile(), right.add(i).read_volatile()) };
        if a != b {
            return a as i32 - b as i32;
        }
    }
    0
}

/// # Safety
/// As C's bcmp.
#[no_mangle]
pub unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, size: usize) -> i32 {
    // SAFETY: forwarded.
    unsafe { memcmp(left, right, size) }
}

/// Prebuilt `core` names this; with panic=abort nothing calls it.
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}

/// As above.
#[no_mangle]
pub extern "C" fn _Unwind_Resume() -> ! {
    loop {
        core::hint::spin_loop();
    }
}
