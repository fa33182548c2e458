"""Where a thread's counters lie in the shared memory, which is a sparse file, and their frames in the journal.

Runs in the controller, beside the target. Whose counters they are, and what they count, is not known here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from clew.recording.journal.journal import FrameKind, ProcessJournal

__all__ = ["iter_data_extents", "write_counters"]


def write_counters(journal: ProcessJournal, data: bytes, first: int, stream: int, slot: int) -> None:
    """Write the counters `data` of a thread, from index `first` on; only those that are not 0, if these are few."""
    values = np.frombuffer(data[: len(data) // 8 * 8], np.uint64)
    used = np.flatnonzero(values)
    if not len(used):
        return
    kind, content, second = FrameKind.COUNTERS, data, b""
    if 12 * len(used) < len(data) // 2:
        kind, content, second = FrameKind.SPARSE_COUNTERS, used.astype(np.uint32).tobytes(), values[used].tobytes()
    journal.write(kind, content, second=second, stream=stream, slot=slot, first=first)


def iter_data_extents(fd: int, offset: int, end_offset: int) -> Iterator[tuple[int, int]]:
    """The parts of a sparse file between two offsets that hold data."""
    while offset < end_offset:
        try:
            start = os.lseek(fd, offset, os.SEEK_DATA)
        except OSError:  # ENXIO: nothing but a hole up to the end of the file
            return
        if start >= end_offset:
            return
        offset = min(os.lseek(fd, start, os.SEEK_HOLE), end_offset)
        yield start, offset
