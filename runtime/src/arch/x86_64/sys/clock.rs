//! The clock that records are stamped with: the processor's time stamp counter, which may be refused to a thread.

use super::calls::syscall;
use super::number;
use core::sync::atomic::{AtomicU32, Ordering};

/// prctl(PR_SET_TSC): a thread may have the time stamp counter refused to it (prctl(2)).
const PR_GET_TSC: u64 = 25;
pub const PR_SET_TSC: u64 = 26;
const PR_TSC_ENABLE: u64 = 1;
pub const PR_TSC_SIGSEGV: u64 = 2;

/// Whether any thread may be refused the time stamp counter; `UNKNOWN` before the first use, as a program can be born so.
static TSC_REFUSAL: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const NOWHERE: u32 = 1;
const SOMEWHERE: u32 = 2;

/// From now on a thread may be refused the time stamp counter.
pub fn note_refusal() {
    TSC_REFUSAL.store(SOMEWHERE, Ordering::Relaxed);
}

/// Whether translated code may be refused it.
pub fn may_be_refused() -> bool {
    TSC_REFUSAL.load(Ordering::Relaxed) != NOWHERE
}

fn is_tsc_refused() -> bool {
    let mut state = 0u32;
    // SAFETY: writes `state`.
    unsafe { syscall(number::PRCTL, [PR_GET_TSC, &mut state as *mut u32 as u64, 0, 0, 0, 0]) };
    u64::from(state) == PR_TSC_SIGSEGV
}

fn set_tsc(state: u64) {
    // SAFETY: whether this thread may read the counter, nothing else.
    unsafe { syscall(number::PRCTL, [PR_SET_TSC, state, 0, 0, 0, 0]) };
}

/// The processor's time stamp counter, read after everything in front of it is done: what is stamped under a lock is
/// stamped while the lock is held (Intel SDM, RDTSC). Where it is refused to the thread, it is allowed for this one
/// instruction.
pub fn ticks() -> u64 {
    let refusal = TSC_REFUSAL.load(Ordering::Relaxed);
    let is_refused = refusal != NOWHERE && is_tsc_refused();
    if refusal == UNKNOWN {
        TSC_REFUSAL.store(if is_refused { SOMEWHERE } else { NOWHERE }, Ordering::Relaxed);
    }
    if is_refused {
        set_tsc(PR_TSC_ENABLE);
    }
    // SAFETY: neither has an effect but the result.
    let now = unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    };
    if is_refused {
        set_tsc(PR_TSC_SIGSEGV);
    }
    now
}
