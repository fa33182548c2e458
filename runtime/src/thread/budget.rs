//! How much of paths a process may record (mode `full`): so many bytes a second, whichever thread writes them.
//!
//! What was not used is kept for a second, or until there is enough to go on with. Who spends looks first, and may owe a little
//! then: over some time no more is spent than was allowed.

use crate::buffer::Shared;
use crate::protocol::PATH_UNLIMITED;
use crate::sys::calls::monotonic_ns;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
const REFILL_NS: u64 = 1_000_000;
/// Room for sixteen full buffers, however little is allowed: code that is new tells one each time.
const LEAST_KEPT: u64 = 1 << 20;
/// Who goes on behind what was left out has room for a full buffer,
const LEAST_TOLD: i64 = 1 << 16;
/// and for so many times what its checkpoint takes: the rest of the budget may go into checkpoints.
const TOLD_PER_COST: i64 = 3;
/// No checkpoint takes more.
const MAX_COST: u64 = 1 << 26;

/// What may be spent now; below 0 it is owed.
static ALLOWANCE: AtomicI64 = AtomicI64::new(0);
/// When it was added to last; NEVER, or FIRST while somebody does it for the first time.
static REFILLED_NS: AtomicU64 = AtomicU64::new(0);
/// The most that a thread ever had to have for going on: it is kept, too.
static MOST_NEEDED: AtomicI64 = AtomicI64::new(0);

const NEVER: u64 = 0;
const FIRST: u64 = 1;

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

    /// Whether what is not new may go on being recorded.
    pub fn may_tell_more(&self) -> bool {
        let rate = self.budget();
        rate == PATH_UNLIMITED || rate != 0 && refill(rate) > reserve(rate)
    }

    /// How many bytes a thread may tell that goes on with a checkpoint of `cost` bytes, whatever comes; `None`: it may not yet.
    pub fn find_stretch(&self, cost: u64, is_new: bool) -> Option<u64> {
        let rate = self.budget();
        if rate == PATH_UNLIMITED || rate == 0 {
            return (rate != 0).then_some(0);
        }
        let cost = cost.min(MAX_COST) as i64;
        let (reserve, least) = if is_new { (0, LEAST_TOLD) } else { (reserve(rate), kept(rate) / 4) };
        let stretch = least.max(cost * TOLD_PER_COST);
        let needed = reserve + cost + stretch;
        MOST_NEEDED.fetch_max(needed, Ordering::Relaxed);
        (refill(rate) >= needed).then_some(stretch as u64)
    }

    /// Notes what was recorded.
    pub fn spend(&self, bytes: u64) {
        if self.has_budget() {
            ALLOWANCE.fetch_sub(bytes as i64, Ordering::Relaxed);
        }
    }
}

/// How much is there at first, and kept if no more is needed.
fn kept(rate: u64) -> i64 {
    rate.clamp(LEAST_KEPT, i64::MAX as u64 / 2) as i64
}

/// How much is there for what is new only.
fn reserve(rate: u64) -> i64 {
    kept(rate) / 2
}

/// What may be spent now.
fn refill(rate: u64) -> i64 {
    let now = monotonic_ns();
    let last = REFILLED_NS.load(Ordering::Acquire);
    if last <= FIRST {
        return fill(rate, now);
    }
    let elapsed = now.saturating_sub(last);
    let is_due = elapsed >= REFILL_NS;
    if is_due && REFILLED_NS.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        let more = u128::from(rate) * u128::from(elapsed.min(SECOND_NS)) / u128::from(SECOND_NS);
        let all = ALLOWANCE.fetch_add(more as i64, Ordering::Relaxed).saturating_add(more as i64);
        let most = kept(rate).max(MOST_NEEDED.load(Ordering::Relaxed));
        ALLOWANCE.fetch_sub((all - most).max(0), Ordering::Relaxed);
    }
    ALLOWANCE.load(Ordering::Relaxed)
}

/// The same before there is anything: one thread fills it, and those that ask meanwhile have as much.
fn fill(rate: u64, now: u64) -> i64 {
    if REFILLED_NS.compare_exchange(NEVER, FIRST, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        ALLOWANCE.fetch_add(kept(rate), Ordering::Relaxed);
        REFILLED_NS.store(now, Ordering::Release);
    }
    kept(rate)
}
