"""Counters as frames of the journal.

Runs in the controller, beside the target. Whose counters they are, and what they count, is not known here.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from clew.recording.journal.frames import FrameKind

__all__ = ["write_counters"]


class Write(Protocol):
    """`ProcessJournal.write`."""

    def __call__(
        self, kind: FrameKind, payload: bytes, /, *, second: bytes, stream: int, slot: int, first: int
    ) -> bool: ...


def write_counters(write: Write, data: bytes, first: int, stream: int, slot: int) -> None:
    """Write the counters `data` of a thread, from index `first` on; only those that are not 0, if these are few."""
    values = np.frombuffer(data[: len(data) // 8 * 8], np.uint64)
    used = np.flatnonzero(values)
    if not len(used):
        return
    kind, content, second = FrameKind.COUNTERS, data, b""
    if 12 * len(used) < len(data) // 2:
        kind, content, second = FrameKind.SPARSE_COUNTERS, used.astype(np.uint32).tobytes(), values[used].tobytes()
    write(kind, content, second=second, stream=stream, slot=slot, first=first)
