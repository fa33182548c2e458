"""Times of what is captured while processes run: short ones do not spoil the clock."""

from __future__ import annotations

import numpy as np

from clew.protocol._generated import STATUS_PAGE
from clew.sessions.live_clock import LiveClock

NS_PER_TICK = 0.25


def page(start_ns: int, duration_ns: int, late_ns: int = 0) -> np.void:
    """A status page whose second pair was taken `late_ns` too late."""
    status = np.zeros(1, STATUS_PAGE)
    status["start_ns"], status["start_tsc"] = start_ns, int(start_ns / NS_PER_TICK)
    status["last_ns"] = start_ns + duration_ns + late_ns
    status["last_tsc"] = int((start_ns + duration_ns) / NS_PER_TICK)
    return status[0]  # type: ignore[no-any-return]


def test_a_process_that_was_short_tells_little_of_the_counter() -> None:
    clock = LiveClock()
    assert clock.to_time(np.array([1], np.uint64)).null_count == 1
    clock.note(page(10**9, 20 * 10**9))
    # It was interrupted between its two readings: a rate of its own would be a third too large.
    clock.note(page(21 * 10**9, 150_000, late_ns=50_000))
    at_ns = np.array([5 * 10**9, 25 * 10**9])
    told = (
        clock.to_time((at_ns / NS_PER_TICK).astype(np.uint64)).to_numpy()
        - clock.to_time(np.array([10**9 / NS_PER_TICK], np.uint64)).to_numpy()
    )
    assert np.abs(told - (at_ns - 10**9)).max() < 100_000
