//! Raw Linux system calls.

use crate::cpu::sys::number;
use core::sync::atomic::{AtomicBool, Ordering};

pub use crate::cpu::sys::calls::{clew_program_call_returned, program_call, syscall};

/// A system call's error number (positive errno).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error(pub i32);

pub const EINTR: i32 = 4;
pub const E2BIG: i32 = 7;
pub const EAGAIN: i32 = 11;
pub const ENOMEM: i32 = 12;
pub const EACCES: i32 = 13;
pub const EFAULT: i32 = 14;
pub const EINVAL: i32 = 22;
pub const EPERM: i32 = 1;
pub const ESRCH: i32 = 3;
pub const ENOSYS: i32 = 38;

/// What a call of the program's seems to return that a seccomp filter answered with a signal: no error of the kernel's
/// (they end at 4,094), so that it counts as failed.
pub const TRAPPED: i64 = -4095;

/// The result of a system call as value or error.
pub fn check(result: i64) -> Result<u64, Error> {
    if (TRAPPED..0).contains(&result) {
        Err(Error(-result as i32))
    } else {
        Ok(result as u64)
    }
}

/// Maps memory.
///
/// # Safety
/// With MAP_FIXED the range must be the runtime's own.
pub unsafe fn mmap(address: u64, size: u64, protection: u64, flags: u64) -> Result<u64, Error> {
    // SAFETY: forwarded from the caller; anonymous memory, so no descriptor is involved.
    check(unsafe { syscall(number::MMAP, [address, size, protection, flags, u64::MAX, 0]) })
}

/// Moves, grows or doubles a mapping; `target` counts with MREMAP_FIXED.
///
/// # Safety
/// Both ranges must be the runtime's own.
pub unsafe fn mremap(address: u64, old_size: u64, new_size: u64, flags: u64, target: u64) -> Result<u64, Error> {
    // SAFETY: forwarded from the caller.
    check(unsafe { syscall(number::MREMAP, [address, old_size, new_size, flags, target, 0]) })
}

/// Gives memory back.
///
/// # Safety
/// The range must be the runtime's own, and nothing may use it any more.
pub unsafe fn munmap(address: u64, size: u64) {
    // SAFETY: forwarded from the caller.
    unsafe { syscall(number::MUNMAP, [address, size, 0, 0, 0, 0]) };
}

/// Changes the protection of memory.
///
/// # Safety
/// The range must be the runtime's own.
pub unsafe fn mprotect(address: u64, size: u64, protection: u64) -> Result<u64, Error> {
    // SAFETY: forwarded from the caller.
    check(unsafe { syscall(number::MPROTECT, [address, size, protection, 0, 0, 0]) })
}

/// For `futex_wait`: no limit.
pub const FOREVER: u64 = u64::MAX;

const FUTEX_PRIVATE: u32 = 128;

/// Waits while `*word == expected`, at most `timeout_ns`; returns early on a wake or a signal.
pub fn futex_wait(word: *const u32, expected: u32, timeout_ns: u64, shared: bool) {
    let timeout = if timeout_ns == FOREVER {
        None
    } else if futex_wait_until(word, expected, monotonic_ns() + timeout_ns, shared) {
        return;
    } else {
        Some(timespec(timeout_ns))
    };
    let operation = if shared { 0 } else { u64::from(FUTEX_PRIVATE) };
    let limit = timeout.as_ref().map_or(0, |timeout| timeout.as_ptr() as u64);
    // SAFETY: FUTEX_WAIT only reads the word and the timeout.
    unsafe { syscall(number::FUTEX, [word as u64, operation, expected as u64, limit, 0, 0]) };
}

/// The same until a time, by futex_waitv (Linux 5.16). FUTEX_WAIT with a time limit, interrupted, makes a note of how long is
/// left, where the kernel keeps the one for a call of the program's that is to be restarted (kernel/futex/waitwake.c,
/// set_restart_fn); this does not. `false`: there is no such call.
fn futex_wait_until(word: *const u32, expected: u32, until_ns: u64, shared: bool) -> bool {
    /// `struct futex_waitv`.
    #[repr(C)]
    struct Waiter {
        value: u64,
        address: u64,
        flags: u32,
        reserved: u32,
    }
    const FUTEX2_SIZE_U32: u32 = 2;
    const CLOCK_MONOTONIC: u64 = 1;
    static IS_MISSING: AtomicBool = AtomicBool::new(false);
    if IS_MISSING.load(Ordering::Relaxed) {
        return false;
    }
    let flags = FUTEX2_SIZE_U32 | if shared { 0 } else { FUTEX_PRIVATE };
    let waiter = Waiter { value: u64::from(expected), address: word as u64, flags, reserved: 0 };
    let until = timespec(until_ns);
    let arguments = [&raw const waiter as u64, 1, 0, until.as_ptr() as u64, CLOCK_MONOTONIC, 0];
    // SAFETY: only reads the word and what is behind the pointers.
    let result = check(unsafe { syscall(number::FUTEX_WAITV, arguments) });
    let is_there = !matches!(result, Err(Error(ENOSYS | EPERM | EINVAL)));
    IS_MISSING.store(!is_there, Ordering::Relaxed);
    is_there
}

/// `struct timespec`.
fn timespec(ns: u64) -> [u64; 2] {
    [ns / 1_000_000_000, ns % 1_000_000_000]
}

/// Wakes up to `count` waiters of `word`.
pub fn futex_wake(word: *const u32, count: u32, shared: bool) {
    let operation = 1 + if shared { 0 } else { u64::from(FUTEX_PRIVATE) };
    // SAFETY: FUTEX_WAKE uses the address as a key only.
    unsafe { syscall(number::FUTEX, [word as u64, operation, count as u64, 0, 0, 0]) };
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    const CLOCK_MONOTONIC: u64 = 1;
    clock_ns(CLOCK_MONOTONIC)
}

fn clock_ns(clock: u64) -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: writes two words into `time`.
    unsafe { syscall(number::CLOCK_GETTIME, [clock, time.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// Looks whether `is_over` and lets others run meanwhile, until that or until it has taken `limit_ns` of processor time. Seen
/// from outside the thread runs, as it does natively: who watches for it to sleep in a call of its own (/proc/PID/stat) must not
/// take a wait of the runtime's for that.
pub fn yield_until(limit_ns: u64, mut is_over: impl FnMut() -> bool) {
    const CLOCK_THREAD_CPUTIME_ID: u64 = 3;
    let start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    // Where nobody else wants to run the time goes by here; where others do it is theirs. A filter may forbid the clock (0).
    while start_ns != 0 && !is_over() && clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns < limit_ns {
        // SAFETY: takes nothing and changes nothing.
        unsafe { syscall(number::SCHED_YIELD, [0; 6]) };
    }
}

/// How much of a resource the process may have (getrlimit(2)): its soft limit.
pub fn limit_of(resource: u64) -> u64 {
    let mut limit = [0u64; 2];
    // SAFETY: writes two words.
    unsafe { syscall(number::GETRLIMIT, [resource, limit.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    limit[0]
}

/// Closes a descriptor of the runtime's own.
pub fn close(file: u64) {
    // SAFETY: nothing of the program's is behind it.
    unsafe { syscall(number::CLOSE, [file, 0, 0, 0, 0, 0]) };
}

/// Reads the start of a file, whose path ends with a zero, into `text`; how many bytes, 0 where it can be opened and not be read.
pub fn read_start(path: &[u8], text: &mut [u8]) -> Result<usize, Error> {
    const O_CLOEXEC: u64 = 0x8_0000;
    // SAFETY: reads the path.
    let file = check(unsafe { syscall(number::OPEN, [path.as_ptr() as u64, O_CLOEXEC, 0, 0, 0, 0]) })?;
    // SAFETY: writes at most the buffer.
    let n = unsafe { syscall(number::READ, [file, text.as_mut_ptr() as u64, text.len() as u64, 0, 0, 0]) };
    close(file);
    Ok(check(n).unwrap_or(0) as usize)
}

/// Whether there is a process of this number, as far as can be seen from this pid namespace.
pub fn process_exists(pid: u32) -> bool {
    // SAFETY: signal 0 is none; no memory.
    let result = check(unsafe { syscall(number::KILL, [u64::from(pid), 0, 0, 0, 0, 0]) });
    result != Err(Error(ESRCH))
}

pub fn gettid() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { syscall(number::GETTID, [0; 6]) as u32 }
}

pub fn getpid() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { syscall(number::GETPID, [0; 6]) as u32 }
}

/// Whether `tid` still exists, a thread of this process or a process that shares its memory.
pub fn thread_exists(tid: u32) -> bool {
    [getpid(), tid].iter().any(|pid| {
        // SAFETY: signal 0 only checks.
        let result = unsafe { syscall(number::TGKILL, [u64::from(*pid), u64::from(tid), 0, 0, 0, 0]) };
        check(result) != Err(Error(ESRCH))
    })
}

/// Replaces the calling thread's signal mask and returns the old one.
pub fn set_signal_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    let new = mask;
    // SAFETY: reads `new`, writes `old`, eight bytes each. 2 is SIG_SETMASK.
    unsafe { syscall(number::RT_SIGPROCMASK, [2, &new as *const u64 as u64, &mut old as *mut u64 as u64, 8, 0, 0]) };
    old
}
