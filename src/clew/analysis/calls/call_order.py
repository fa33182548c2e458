"""Where calls are in the order of execution of their threads, so that a replay tells which call is made.

Runs in the controller.
"""

from __future__ import annotations

import numpy as np

from clew.analysis.calls.call_rows import CallRows
from clew.analysis.tables.arrays import Array

__all__ = ["CallOrder"]


class CallOrder:
    """Calls whose place is known: `position` (i64, -1 for none) says by call how many executions of blocks of its
    thread lie before that of the block that made it."""

    def __init__(self, rows: CallRows, position: Array) -> None:
        self.position = position
        self._rows = rows
        self._by_thread: dict[int, Array] = {}

    def of_thread(self, tid: int) -> Array:
        """The calls (u32) of a thread that have a place, in that order; those at one place by time."""
        if tid not in self._by_thread:
            tids = self._rows.tids
            thread = tids.index(tid) if tid in tids else -1
            own = np.flatnonzero((self._rows.thread == thread) & (self.position >= 0)).astype(np.uint32)
            self._by_thread[tid] = own[np.argsort(self.position[own], kind="stable")]
        return self._by_thread[tid]

    def first_from(self, tid: int, position: int) -> int:
        """How many calls of a thread are in front of a position."""
        return int(np.searchsorted(self.position[self.of_thread(tid)], position))

    def find(self, tid: int, position: int, *, back: bool) -> int | None:
        """The position of the next call behind a position, or of the last one before it."""
        calls = self.of_thread(tid)
        at = self.first_from(tid, position if back else position + 1) - back
        return int(self.position[calls[at]]) if 0 <= at < len(calls) else None
