"""Counters as frames of the journal.

Runs in the controller, beside the target. Whose counters they are, and what they count, is not known here.
"""

from __future__ import annotations

import numpy as np

from clew.recording.journal.frames import FrameKind

__all__ = ["pack_counters"]


def pack_counters(data: bytes) -> tuple[FrameKind, bytes, bytes] | None:
    """How to write the counters `data` of a thread: the kind of frame and two parts of its payload; None: they are 0.

    Only those that are not 0, if these are few.
    """
    values = np.frombuffer(data[: len(data) // 8 * 8], np.uint64)
    used = np.flatnonzero(values)
    if not len(used):
        return None
    if 12 * len(used) < len(data) // 2:
        return FrameKind.SPARSE_COUNTERS, used.astype(np.uint32).tobytes(), values[used].tobytes()
    return FrameKind.COUNTERS, data, b""
