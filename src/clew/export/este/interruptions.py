"""What a thread was about to execute where something interrupted it: a signal, or a fault.

Runs in the controller. Asked for seldom: to find an event's place its stretch of the path is walked along.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from clew.analysis.order.thread_path import ThreadPath
from clew.protocol._generated import PathEventKind
from clew.store.columns import Array

__all__ = ["Interruptions"]

MAX_ASKED: Final = 10_000
"""So often a thread is asked for; that takes about a millisecond each time."""
KEPT_PLACES: Final = 1 << 14


class Interruptions:
    """The interruptions of the path of one thread. Raises TraceDamagedError."""

    def __init__(self) -> None:
        self._n_asked = 0
        self._path: ThreadPath | None = None
        self._place = lru_cache(KEPT_PLACES)(self._find_place)
        self._resumes = lru_cache(4)(self._read_resumes)

    def find(self, path: ThreadPath, execution: int) -> int | None:
        """The address that would have been executed in front of execution number `execution` of the path; None if
        nothing interrupted it there, or this was asked for too often."""
        self._n_asked += 1
        if self._n_asked > MAX_ASKED:
            return None
        self._path = path
        number = int(np.searchsorted(path.stretches.file.places["block_executions"], execution, "right"))
        # What happened at a checkpoint may be told of in front of it.
        for stretch in (number - 1, number):
            found = self._find_in(stretch, execution) if stretch >= 0 else None
            if found is not None:
                return found
        return None

    def _find_in(self, stretch: int, execution: int) -> int | None:
        numbers, addresses = self._resumes(stretch)
        low, high = 0, len(numbers)
        while low < high:
            middle = (low + high) // 2
            if self._place(stretch, int(numbers[middle])) < execution:
                low = middle + 1
            else:
                high = middle
        # Of several at one place the first: the others interrupted what it led to.
        if low < len(numbers) and self._place(stretch, int(numbers[low])) == execution:
            return int(addresses[low])
        return None

    def _read_resumes(self, stretch: int) -> tuple[Array, Array]:
        assert self._path is not None
        events = self._path.stretches.events(stretch)
        numbers = np.flatnonzero(events["event_kind"] == PathEventKind.RESUME)
        return numbers, events["pc"][numbers]

    def _find_place(self, stretch: int, event: int) -> int:
        assert self._path is not None
        return self._path.find_event_place(stretch, event).execution
