"""When something was, while its process runs: time stamps as times of day.

Runs in the controller.
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.binary.path_codec import read_time_stamp

__all__ = ["LiveClock"]

Array = npt.NDArray[Any]

_TRIES: Final = 5
_SHORTEST_NS: Final = 2_000_000
"""Two readings that lie so far apart tell how fast the counter goes, to a few millionths."""


class LiveClock:
    """Made of readings of the time stamp counter and CLOCK_MONOTONIC here: both are of the whole machine.

    What runtimes leave on their status pages is less exact: they may be interrupted between their two readings, and a
    process that was short tells little of how fast the counter goes.
    """

    def __init__(self) -> None:
        self._first = self._last = _read_both()
        self._since_1970_ns = time.time_ns() - time.monotonic_ns()

    def note(self) -> None:
        """Look at the clocks: the further apart readings are, the better."""
        self._last = _read_both()

    def to_time(self, tsc: Array) -> pa.Array:
        """Nanoseconds since 1970, i64, of time stamps (u64)."""
        return pa.array(self.to_ns(tsc))

    def to_ns(self, tsc: Array) -> Array:
        """The same as an array."""
        while self._last[1] - self._first[1] < _SHORTEST_NS:
            time.sleep(_SHORTEST_NS / 1e9)
            self.note()
        start_tsc, start_ns = self._first
        ns_per_tick = (self._last[1] - start_ns) / (self._last[0] - start_tsc)
        elapsed = (tsc - np.uint64(start_tsc)).astype(np.int64) * ns_per_tick
        ns: Array = elapsed.astype(np.int64) + start_ns + self._since_1970_ns
        return ns


def _read_both() -> tuple[int, int]:
    """Both clocks at one moment: of a few readings the one in the shortest time, so that no interruption is in it."""
    readings = []
    for _ in range(_TRIES):
        before, ns, behind = read_time_stamp(), time.monotonic_ns(), read_time_stamp()
        readings.append((behind - before, before + (behind - before) // 2, ns))
    _, tsc, ns = min(readings)
    return tsc, ns
