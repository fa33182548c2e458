"""When something was, while its process runs: time stamps as times of day.

Runs in the controller.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.recording.assembly.clock import find_rate

__all__ = ["LiveClock"]

Array = npt.NDArray[Any]


class LiveClock:
    """Made of two pairs of time stamp counter and CLOCK_MONOTONIC, which the runtime leaves on the status page."""

    def __init__(self) -> None:
        self._start_tsc = self._start_ns = 0
        self._ns_per_tick = 0.0
        self._since_1970_ns = time.time_ns() - time.monotonic_ns()

    def note(self, status: np.void) -> None:
        """Take over the pairs of a status page, of dtype STATUS_PAGE: those that lie further apart count."""
        rate = find_rate(status)
        if rate and int(status["last_ns"]) - int(status["start_ns"]) < 1 << 62:
            self._start_tsc, self._start_ns = int(status["start_tsc"]), int(status["start_ns"])
            self._ns_per_tick = rate

    def to_time(self, tsc: Array) -> pa.Array:
        """Nanoseconds since 1970, i64, of time stamps (u64); null before there are two pairs."""
        if not self._ns_per_tick:
            return pa.nulls(len(tsc), pa.int64())
        elapsed = (tsc - np.uint64(self._start_tsc)).astype(np.int64) * self._ns_per_tick
        return pa.array(elapsed.astype(np.int64) + self._start_ns + self._since_1970_ns)
