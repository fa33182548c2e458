"""When something was: time stamps of a process as nanoseconds since 1970.

Runs in the controller.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import replace
from clew.recording.raw.process import RawProcess

__all__ = ["Clock", "find_rate", "set_start"]

Array = npt.NDArray[Any]


def find_rate(status: np.void) -> float:
    """Nanoseconds of a tick, by the two pairs that a status page (dtype STATUS_PAGE) has; 0.0: there are none."""
    ticks = int(status["last_tsc"]) - int(status["start_tsc"])
    nanoseconds = int(status["last_ns"]) - int(status["start_ns"])
    return nanoseconds / ticks if ticks > 0 and nanoseconds > 0 else 0.0


_LATE_NS: Final = 60 * 10**9
"""A process is noticed within that; what says otherwise was written by the program, or somebody has set the clock."""


def set_start(process: RawProcess, offset_ns: object) -> RawProcess:
    """The process, begun when its runtime says: a fork's child is noticed milliseconds later.

    `offset_ns`: by how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, if a recording tells.
    """
    begun_ns = int(process.status["start_ns"])
    if not isinstance(offset_ns, int) or not begun_ns:
        return process
    start_ns = begun_ns + offset_ns
    if abs(start_ns - process.start_ns) > _LATE_NS or start_ns > process.end_ns:
        return process
    return replace(process, start_ns=start_ns)


class Clock:
    """Time stamps of a process turned into CLOCK_REALTIME nanoseconds, kept within the life of the process."""

    def __init__(self, process: RawProcess) -> None:
        status = process.status
        self.start_tsc = int(status["start_tsc"])
        self.ns_per_tick = find_rate(status)
        self.start_ns = process.start_ns
        self.duration_ns = max(process.end_ns - process.start_ns, 0)

    def to_ns(self, tsc: Array) -> Array:
        """Nanoseconds, i64, of time stamps."""
        elapsed = (
            np.where(tsc > self.start_tsc, tsc - np.uint64(self.start_tsc), 0).astype(np.float64) * self.ns_per_tick
        )
        return self.start_ns + np.minimum(elapsed, self.duration_ns).astype(np.int64)

    def one_to_ns(self, tsc: int) -> int:
        """Nanoseconds of one time stamp."""
        return int(self.to_ns(np.array([tsc], np.uint64))[0])
