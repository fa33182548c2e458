//! How much of paths a process may record (mode `full`): so many bytes a second, whichever thread writes them.
//!
//! What was not used is kept for a second. Who spends looks first, and may owe a little then: over some time no more is
//! spent than was allowed.

use crate::buffer::Shared;
use crate::protocol::PATH_UNLIMITED;
use crate::sys::calls::monotonic_ns;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
const REFILL_NS: u64 = 1_000_000;
/// Room for sixteen full buffers, however little is allowed: code that is new tells one each time.
const LEAST_KEPT: u64 = 1 << 20;

/// What may be spent now; below 0 it is owed.
static ALLOWANCE: AtomicI64 = AtomicI64::new(0);
/// When it was added to last; 0: never.
static REFILLED_NS: AtomicU64 = AtomicU64::new(0);

impl Shared {
    fn budget(&self) -> u64 {
        // SAFETY: the status page is mapped, the field aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.status()).budget) }.load(Ordering::Relaxed)
    }

    /// Whether something of the paths may have to be left out.
    pub fn has_budget(&self) -> bool {
        self.budget() != PATH_UNLIMITED
    }

    /// Whether nothing may be recorded, however long it was quiet.
    pub fn may_tell_nothing(&self) -> bool {
        self.budget() == 0
    }

    /// Whether what is new may be recorded.
    pub fn may_tell_news(&self) -> bool {
        let rate = self.budget();
        rate == PATH_UNLIMITED || rate != 0 && refill(rate) > 0
    }

    /// Whether what is not new may go on being recorded; or, if it is left out now (`begins`), be recorded again.
    pub fn may_tell_more(&self, begins: bool) -> bool {
        let rate = self.budget();
        let needed = if begins { kept(rate) / 4 * 3 } else { kept(rate) / 2 };
        rate == PATH_UNLIMITED || rate != 0 && refill(rate) > needed
    }

    /// Notes what was recorded.
    pub fn spend(&self, bytes: u64) {
        if self.has_budget() {
            ALLOWANCE.fetch_sub(bytes as i64, Ordering::Relaxed);
        }
    }
}

/// How much is kept at most.
fn kept(rate: u64) -> i64 {
    rate.clamp(LEAST_KEPT, i64::MAX as u64) as i64
}

/// What may be spent now.
fn refill(rate: u64) -> i64 {
    let now = monotonic_ns();
    let last = REFILLED_NS.load(Ordering::Relaxed);
    let elapsed = now.saturating_sub(last);
    let is_due = elapsed >= REFILL_NS;
    if is_due && REFILLED_NS.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        let more = u128::from(rate) * u128::from(elapsed.min(SECOND_NS)) / u128::from(SECOND_NS);
        let more = if last == 0 { kept(rate) } else { more as i64 };
        let all = ALLOWANCE.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        ALLOWANCE.fetch_sub((all - kept(rate)).max(0), Ordering::Relaxed);
    }
    ALLOWANCE.load(Ordering::Relaxed)
}
