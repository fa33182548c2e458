//! Waiting for the controller, which may have no time, be stopped, or be gone.

use crate::buffer::Shared;
use crate::protocol;
use crate::sys::calls::{monotonic_ns, process_exists};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `IS_SILENT` and the last heartbeat, once there was none for `FULL_WAIT_SECONDS` while somebody waited; `IS_DEAF`, once
/// somebody waited for `LONGEST_WAIT_SECONDS`, or it was seen to be gone.
static SILENCE: AtomicU64 = AtomicU64::new(0);
const IS_SILENT: u64 = 1 << 32;
const IS_DEAF: u64 = u64::MAX;

/// A heartbeat that did not come: time to see whether the controller is there at all.
const MISSED_MS: u64 = 1500;
/// The number of one that is gone may be another process' by now.
const PATIENCE_MS: u64 = 60_000;
/// Whether the controller's process was to be seen, by its number, when it was known to be there.
static IS_CONTROLLER_SEEN: AtomicBool = AtomicBool::new(false);

/// For how long a thread waits for the controller: as long as its heart beats, for it may have no time, or wait for a slow
/// disk; but not for ever, for the program may have written over what the two share.
pub struct WaitLimit {
    shared: Shared,
    heartbeat: u32,
    since_ns: u64,
    start_ns: u64,
}

impl WaitLimit {
    /// From now on.
    pub fn new(shared: Shared) -> WaitLimit {
        let now_ns = monotonic_ns();
        WaitLimit { shared, heartbeat: shared.heartbeat(), since_ns: now_ns, start_ns: now_ns }
    }

    /// Whether the controller is not there any more: for what it may take as long for as it likes.
    pub fn is_alone(&mut self) -> bool {
        if self.shared.heartbeat() != self.heartbeat {
            *self = WaitLimit::new(self.shared);
            return false;
        }
        self.is_over()
    }

    /// Whether the controller will not come back: it is gone; or, where that can't be seen, silent for as long as anybody waits. One that is
    /// there may have no time.
    pub fn is_abandoned(&mut self) -> bool {
        let now_ns = self.look();
        let silent_ms = now_ns.saturating_sub(self.since_ns) / 1_000_000;
        let is_seen = IS_CONTROLLER_SEEN.load(Ordering::Relaxed);
        let limit_ms = if is_seen { PATIENCE_MS } else { protocol::FULL_WAIT_SECONDS * 1000 };
        silent_ms > limit_ms || silent_ms > MISSED_MS && self.shared.has_controller_ended()
    }

    /// Whether it has come to an end. Nobody else in the process waits then either. No lock is taken.
    pub fn is_over(&mut self) -> bool {
        let now_ns = self.look();
        let has_lasted = |since_ns: u64, ms: u64| now_ns.saturating_sub(since_ns) > ms * 1_000_000;
        let silence = if has_lasted(self.start_ns, protocol::LONGEST_WAIT_SECONDS * 1000)
            || has_lasted(self.since_ns, MISSED_MS) && self.shared.has_controller_ended()
        {
            IS_DEAF
        } else if has_lasted(self.since_ns, protocol::FULL_WAIT_SECONDS * 1000) {
            IS_SILENT | u64::from(self.heartbeat)
        } else {
            return false;
        };
        SILENCE.store(silence, Ordering::Relaxed);
        true
    }

    /// Takes note of the heartbeat, and since when it is this one; what time it is.
    fn look(&mut self) -> u64 {
        let (heartbeat, now_ns) = (self.shared.heartbeat(), monotonic_ns());
        if heartbeat != self.heartbeat {
            (self.heartbeat, self.since_ns) = (heartbeat, now_ns);
        }
        now_ns
    }
}

impl Shared {
    /// Whether the controller was silent for so long that nobody waits for it any more, and may come back; or is gone.
    pub fn is_controller_gone(&self) -> bool {
        let silence = SILENCE.load(Ordering::Relaxed);
        silence == IS_DEAF || silence != 0 && silence as u32 == self.heartbeat()
    }

    /// Notes whether the controller, which was just heard of, can be seen from here: not from another pid namespace.
    pub fn look_for_controller(&self) {
        IS_CONTROLLER_SEEN.store(process_exists(self.header().controller_pid), Ordering::Relaxed);
    }

    /// Whether it was killed.
    fn has_controller_ended(&self) -> bool {
        IS_CONTROLLER_SEEN.load(Ordering::Relaxed) && !process_exists(self.header().controller_pid)
    }
}
