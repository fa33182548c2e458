//! Locked memory (mlockall): the program's is locked and counts against its limit, the runtime's does neither.
//!
//! To the kernel all memory of the process is one: it refuses to lock all of it where that is more than the limit, hundreds of
//! gigabytes of reserved addresses included. So what mlockall does is done mapping by mapping, and to what is mapped later as it is
//! mapped (mm/mlock.c, apply_mlockall_flags and mlock_future_ok).

extern crate alloc;
use super::mappings::{page_end, visit_mappings};
use crate::context::ThreadContext;
use crate::cpu::sys::kernel::USER_END;
use crate::cpu::sys::number;
use crate::dispatch::life::hidden;
use crate::protocol::PAGE_BYTES;
use crate::sys::calls::{check, limit_of, program_call, read_start, syscall, EINVAL, ENOMEM};
use crate::sys::proc_text;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

const MCL_CURRENT: u32 = 1;
const MCL_FUTURE: u32 = 2;
const MCL_ONFAULT: u32 = 4;
const MLOCK_ONFAULT: u64 = 1;

/// The flags of the last mlockall, if that was for what is mapped later.
static FUTURE: AtomicU32 = AtomicU32::new(0);

/// mlockall.
pub fn lock_all(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    let flags = arguments[0] as u32;
    let known = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;
    let is_valid = flags != 0 && flags != MCL_ONFAULT && flags & !known == 0;
    // A call that the kernel refuses, to hear whether a filter of the program's refuses it first, with an answer of its own.
    let mut asked = arguments;
    asked[0] |= if is_valid { u64::from(!known) } else { 0 };
    // SAFETY: nothing is locked.
    let answer = unsafe { program_call(number::MLOCKALL, asked) };
    if !is_valid || answer != -i64::from(EINVAL) {
        return answer;
    }
    // Whether anything may be locked at all. The program did not ask this: no filter of its own is to answer it.
    // SAFETY: no memory is named.
    let allowed = unsafe { syscall(number::MLOCK, [PAGE_BYTES, 0, 0, 0, 0, 0]) };
    if allowed != 0 {
        return allowed;
    }
    let mappings = if flags & MCL_CURRENT != 0 { list_visible(context) } else { Vec::new() };
    let size: u64 = mappings.iter().map(|mapping| mapping.end - mapping.start).sum();
    if size > limit() && !is_privileged() {
        return -i64::from(ENOMEM);
    }
    FUTURE.store(if flags & MCL_FUTURE != 0 { flags } else { 0 }, Ordering::Relaxed);
    for mapping in mappings {
        lock(&mapping, flags);
    }
    0
}

/// munlockall.
pub fn unlock_all(arguments: [u64; 6]) -> i64 {
    FUTURE.store(0, Ordering::Relaxed);
    // SAFETY: the program's own call.
    unsafe { program_call(number::MUNLOCKALL, arguments) }
}

/// In a fork's child, which inherits no locks.
pub fn forget() {
    FUTURE.store(0, Ordering::Relaxed);
}

/// Whether `size` bytes more may be mapped: if they are to be locked the limit has to have room for them.
pub fn may_lock(size: u64) -> bool {
    FUTURE.load(Ordering::Relaxed) == 0 || locked().saturating_add(page_end(0, size)) <= limit() || is_privileged()
}

/// Locks what a call that gave `result` mapped, `size` bytes there, if it is to be locked.
pub fn cover(result: i64, size: u64) {
    let flags = FUTURE.load(Ordering::Relaxed);
    if let (true, Ok(start)) = (flags != 0, check(result)) {
        lock(&(start..page_end(start, size)), flags);
    }
}

/// Locks memory of the program's, and has it be there unless it is to come when it is used. What can't be had is let be.
fn lock(memory: &Range<u64>, flags: u32) {
    let on_fault = if flags & MCL_ONFAULT != 0 { MLOCK_ONFAULT } else { 0 };
    // SAFETY: the program asked for it, and the memory is its own.
    unsafe { syscall(number::MLOCK2, [memory.start, memory.end - memory.start, on_fault, 0, 0, 0]) };
}

/// What is mapped but for the runtime's memory.
fn list_visible(context: &ThreadContext) -> Vec<Range<u64>> {
    let hidden = hidden::ranges();
    let mut visible = Vec::new();
    visit_mappings(context, |mapping| {
        if mapping.end <= USER_END {
            visible.extend(proc_text::visible_parts(&(mapping.start..mapping.end), &hidden));
        }
    });
    visible
}

/// How many bytes the process may lock.
fn limit() -> u64 {
    const RLIMIT_MEMLOCK: u64 = 8;
    limit_of(RLIMIT_MEMLOCK)
}

/// How many bytes it has locked.
fn locked() -> u64 {
    let mut text = [0u8; 2048];
    let n = read_start(b"/proc/self/status\0", &mut text).unwrap_or(0);
    proc_text::locked_bytes(&text[..n]).unwrap_or(0)
}

/// Whether limits of locked memory are none for the process (CAP_IPC_LOCK).
fn is_privileged() -> bool {
    const VERSION_3: u32 = 0x2008_0522;
    const CAP_IPC_LOCK: u32 = 14;
    let header = [VERSION_3, 0];
    let mut data = [0u32; 6];
    // SAFETY: reads the header, writes two structures of three words; effective ones come first.
    unsafe { syscall(number::CAPGET, [header.as_ptr() as u64, data.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    data[0] & 1 << CAP_IPC_LOCK != 0
}
