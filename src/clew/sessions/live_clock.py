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
    """Made of pairs of time stamp counter and CLOCK_MONOTONIC, which runtimes leave on their status pages.

    Both are of the whole machine: of all processes' pairs the first and the last one count, since a process that was
    short tells little of how fast the counter goes.
    """

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None
        self._last = (0, 0)
        self._since_1970_ns = time.time_ns() - time.monotonic_ns()

    def note(self, status: np.void) -> None:
        """Take over the pairs of a status page, of dtype STATUS_PAGE."""
        if not find_rate(status) or int(status["last_ns"]) - int(status["start_ns"]) >= 1 << 62:
            return
        first = int(status["start_tsc"]), int(status["start_ns"])
        last = int(status["last_tsc"]), int(status["last_ns"])
        self._first = first if self._first is None else min(first, self._first)
        self._last = max(last, self._last)

    def to_time(self, tsc: Array) -> pa.Array:
        """Nanoseconds since 1970, i64, of time stamps (u64); null before there are two pairs."""
        if self._first is None:
            return pa.nulls(len(tsc), pa.int64())
        start_tsc, start_ns = self._first
        ns_per_tick = (self._last[1] - start_ns) / (self._last[0] - start_tsc)
        elapsed = (tsc - np.uint64(start_tsc)).astype(np.int64) * ns_per_tick
        return pa.array(elapsed.astype(np.int64) + start_ns + self._since_1970_ns)
