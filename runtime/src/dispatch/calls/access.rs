//! Whether the program's memory can be read and written, as far as the runtime knows.

use crate::cpu::sys::number;
use crate::sys::calls::{syscall, EFAULT};

/// Whether the program may read `size` bytes at `address`: the kernel is asked, by a call that fails without an effect.
pub fn is_readable(address: u64, size: u64) -> bool {
    // rt_sigprocmask reads eight bytes of a set and then refuses the unknown way to apply it: EINVAL, or EFAULT before.
    let probe = |at: u64| {
        // SAFETY: changes nothing, because 99 is no way to apply a mask.
        let result = unsafe { syscall(number::RT_SIGPROCMASK, [99, at, 0, 8, 0, 0]) };
        result != -i64::from(EFAULT)
    };
    size >= 8 && probe(address) && (size == 8 || probe(address + size - 8))
}

/// Whether the program may write `size` bytes at `address`.
pub fn is_writable(address: u64, size: u64) -> bool {
    // rt_sigpending writes up to eight bytes: what is pending, which is put back.
    if !is_readable(address, size) {
        return false;
    }
    let probe = |at: u64| {
        // SAFETY: readable, as was just found.
        let before = unsafe { (at as *const u64).read_unaligned() };
        // SAFETY: writes eight bytes where the program asked for more to be written.
        let result = unsafe { syscall(number::RT_SIGPENDING, [at, 8, 0, 0, 0, 0]) };
        if result == 0 {
            // SAFETY: the kernel just wrote there.
            unsafe { (at as *mut u64).write_unaligned(before) };
        }
        result == 0
    };
    probe(address) && (size == 8 || probe(address + size - 8))
}
