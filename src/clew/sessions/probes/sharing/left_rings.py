"""What threads wrote for a session that was killed, and that it did not read: whoever has the memory can read it.

Runs in the controller of a session that was its guest. What the target wrote is not believed, nor is where it lies: all
has to be inside of the file.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.errors import UsageError
from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import OnFull
from clew.protocol._generated import RECORD_BYTES, THREAD_SLOT
from clew.protocol.layout import field_offset

__all__ = ["LeftRings", "layout_to_json"]

_MASK: Final = (1 << 64) - 1
_NAMES: Final = ("offset", "status", "slots", "rings", "ring_bytes", "max_threads")


def layout_to_json(shared: SharedMemory) -> dict[str, Any]:
    """Where rings are in a file, as it is told; `is_read` says whether their tails tell what was read."""
    layout = shared.layout
    numbers = (
        shared.offset,
        layout.status_offset,
        layout.slots_offset,
        layout.rings_offset,
        layout.ring_bytes,
        layout.max_threads,
    )
    return dict(zip(_NAMES, numbers, strict=True)) | {"is_read": shared.settings.on_full == OnFull.DROP}


class LeftRings:
    """Of file `fd`, which stays the caller's, as somebody `told`. Raises UsageError where that can't be."""

    def __init__(self, fd: int, told: Any) -> None:
        if not isinstance(told, dict) or any(type(told.get(name)) is not int for name in _NAMES):
            raise UsageError("rings are told by what they do not have")
        offset, status, slots, rings, ring_bytes, max_threads = (int(told[name]) for name in _NAMES)
        slots_end, rings_end = slots + max_threads * THREAD_SLOT.itemsize, rings + max_threads * ring_bytes
        is_sound = min(offset, status, slots, rings, max_threads) >= 0 < ring_bytes and offset % mmap.PAGESIZE == 0
        most = os.fstat(fd).st_size - offset
        if not is_sound or max(status + mmap.PAGESIZE, slots_end, rings_end) > most:
            raise UsageError("rings are told where they are not")
        self._fd = fd
        self._is_read = told.get("is_read") is True
        self._offset, self._lost_at = offset, offset + status + field_offset("StatusPage", "lost_records")
        self._slots, self._rings, self._ring_bytes, self._n = slots, rings, ring_bytes, max_threads

    def count_lost(self) -> int:
        """How many events were lost, as the target tells it."""
        return int.from_bytes(os.pread(self._fd, 8, self._lost_at), "little")

    def read(self) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
        """The records that nobody has read, of shape (n, RECORD_BYTES), thread by thread, each with the number of its
        process, 0: the first one's."""
        if not self._is_read:
            return
        size = self._n * THREAD_SLOT.itemsize
        rows = np.frombuffer(os.pread(self._fd, size, self._offset + self._slots), THREAD_SLOT)
        for slot, row in enumerate(rows):
            head, tail = int(row["ring_head"]), int(row["ring_tail"])
            n_bytes = (head - tail) & _MASK
            if not 0 < n_bytes <= self._ring_bytes or n_bytes % RECORD_BYTES:
                continue
            start = self._offset + self._rings + slot * self._ring_bytes
            at = tail % self._ring_bytes
            first = min(n_bytes, self._ring_bytes - at)
            data = os.pread(self._fd, first, start + at) + os.pread(self._fd, n_bytes - first, start)
            yield int(row["process"]), np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES)
