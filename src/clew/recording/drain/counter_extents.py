"""Where a thread's counters lie in the shared memory, which is a sparse file.

Runs in the controller, beside the target. Whose counters they are, and what they count, is not known here.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Final

from clew.process.linux import punch_hole

__all__ = ["erase", "iter_data_extents"]

MAX_ZEROED_EXTENTS: Final = 16
_ZEROS: Final = memoryview(bytes(256 << 10))
"""So much of the counters of a thread that ended may stay in memory, in so many pieces."""


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


def erase(fd: int, first: int, size_bytes: int) -> None:
    """Make a part of the file zeros."""
    # The next thread needs as much: zeroing it is less work than to give it back, and to have it once more.
    used = list(itertools.islice(iter_data_extents(fd, first, first + size_bytes), MAX_ZEROED_EXTENTS + 1))
    if len(used) > MAX_ZEROED_EXTENTS or sum(end - start for start, end in used) > len(_ZEROS):
        punch_hole(fd, first, size_bytes)
    else:
        for start, end in used:
            os.pwrite(fd, _ZEROS[: end - start], start)
