"""Times of what is captured while processes run: they are of the clock that everybody has, from the first moment on."""

from __future__ import annotations

import time

import numpy as np

from clew.binary.path_codec import read_time_stamp
from clew.sessions.live_clock import LiveClock


def test_times_are_right_however_soon_they_are_asked_for() -> None:
    clock = LiveClock()
    told, known = [], []
    for _ in range(20):
        known.append((read_time_stamp(), time.time_ns()))
        told.append(int(clock.to_time(np.array([known[-1][0]], np.uint64))[0].as_py()))
        time.sleep(0.002)
        clock.note()
    # Another thread may have the processor between two readings, but not each time.
    differences = sorted(abs(one - ns) for one, (_, ns) in zip(told, known, strict=True))
    assert differences[len(differences) // 2] < 20_000
    # What was asked for early, on little, is what it is by all that is known.
    again = clock.to_time(np.array([tsc for tsc, _ in known], np.uint64)).to_numpy()
    assert np.abs(again - np.array(told)).max() < 200_000
