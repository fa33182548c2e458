"""What a path says of the code as it goes, and of open calls: what it takes to go on at a later checkpoint.

Pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import PathEventKind
from clew.store.path_checkpoints import STATE, carry_calls, find_states
from clew.store.path_frames import FrameKind

__all__ = ["PassedPath", "PathStates"]

Array = npt.NDArray[Any]


class PathStates:
    """The states that hold behind the events of a path that were passed."""

    def __init__(self) -> None:
        self._states: list[Array] = []

    def add(self, passed: Array) -> None:
        """Further events were passed, of dtype PATH_EVENT_RECORD."""
        lost = np.flatnonzero(passed["event_kind"] == PathEventKind.LOST)
        if len(lost):
            # Behind a loss the path tells all anew.
            self._states, passed = [], passed[lost[-1] + 1 :]
        states = find_states(passed, 0)
        if len(states):
            self._states.append(states)

    @property
    def rows(self) -> Array:
        """All of them, of dtype STATE, numbered from 0 on."""
        rows = np.concatenate([np.zeros(0, STATE), *self._states])
        rows["event"] = np.arange(len(rows))
        return rows


class PassedPath:
    """A path that nobody reads; somebody may from the next checkpoint on. What it says comes as to a `PathKeeper`."""

    def __init__(self) -> None:
        self.states = PathStates()
        self.calls = np.zeros(0, np.uint64)
        """Open at the last checkpoint."""

    def add_bytes(self, kind: FrameKind, start: int, data: bytes | memoryview) -> None:
        """Of no interest."""

    def add_accesses(self, start: int, data: bytes | memoryview) -> None:
        """Of none either."""

    def add_events(self, records: Array) -> None:
        self.states.add(records)

    def add_checkpoint(self, record: np.void, counters: bytes, calls: bytes, *, is_after_loss: int) -> None:
        self.calls = carry_calls(self.calls, record, calls)
