"""Takes threads out of the shared memory that ended before anything of them was taken, all that there are at once.

Runs in the controller, beside the target. What the slots say is not trusted: who is not as most threads are is left to
the drain, which takes one after the other.
"""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.process.shared_memory import SharedMemory
from clew.protocol._generated import PATH_WINDOW_BYTES, RECORD_BYTES, Mode, RequestKind
from clew.recording.ended_threads import ENDED_THREAD, pack_ended
from clew.recording.journal import FrameKind, ProcessJournal

__all__ = ["EndedDrain"]

Array = npt.NDArray[Any]

MAX_RECORDS: Final = 1 << 12
"""Of a frame: its records are looked at together later, too."""
MAX_COUNTER_BYTES: Final = 64 << 10
"""Where a process uses more counters, looking for the few that a thread used is worth the calls that it takes."""
_ZEROS: Final = memoryview(bytes(MAX_COUNTER_BYTES))


class EndedDrain:
    """Reads the slots of one target; `view` is what of its shared memory is mapped."""

    def __init__(self, shared: SharedMemory, view: memoryview, journal: ProcessJournal, mode: Mode) -> None:
        layout = shared.layout
        self._fd, self._view, self._journal = shared.fd, view, journal
        self._is_able = mode in (Mode.COUNTS, Mode.COVERAGE)
        self._ring_bytes, self._rings_offset = layout.ring_bytes, layout.rings_offset
        self._counter_bytes = layout.counter_bytes
        window_bytes = PATH_WINDOW_BYTES if mode == Mode.COUNTS else 0
        self._first_counter = window_bytes // 8
        self._counters_offset = shared.offset + layout.counters_offset + window_bytes

    def take(self, slots: Array, rows: Array, tails: Array, used: int, first_stream: int) -> int:
        """Write the threads of some slots, whose `rows` say that they ended, and make their counters zeros.

        `tails` are the positions in their rings up to which records were taken, `used` is how many counters the process
        uses. The threads get numbers in the journal from `first_stream` on. How many of `slots` were taken, the first
        ones; not more than a frame should hold.
        """
        size_bytes = 8 * (used - self._first_counter)
        if not self._is_able or size_bytes > min(MAX_COUNTER_BYTES, self._counter_bytes):
            return 0
        n_bytes = rows["ring_head"] - tails
        is_plain = (n_bytes <= self._ring_bytes) & (n_bytes % np.uint64(RECORD_BYTES) == 0)
        is_plain &= (rows["tid"] != 0) & (rows["request_kind"] == RequestKind.NONE)
        is_plain &= np.cumsum(n_bytes) <= MAX_RECORDS * RECORD_BYTES
        n = len(rows) if is_plain.all() else int(is_plain.argmin())
        if not n:
            return 0
        slots, rows, n_bytes = slots[:n], rows[:n], n_bytes[:n]
        content = b"".join(
            part
            for slot, tail, size in zip(slots.tolist(), tails[:n].tolist(), n_bytes.tolist(), strict=True)
            for part in self._ring_parts(slot, tail, size)
        )
        value, index, n_counters = self._read_counters(slots, size_bytes)
        table = np.zeros(n, ENDED_THREAD)
        table["stream"], table["slot"] = first_stream + np.arange(n), slots
        for name in ("tid", "parent_tid", "end_kind", "start_tsc", "end_tsc", "lost_records"):
            table[name] = rows[name]
        table["name"] = np.ascontiguousarray(rows["name"]).view("S16")[:, 0]
        table["n_records"], table["n_counters"] = n_bytes // np.uint64(RECORD_BYTES), n_counters
        payload = pack_ended(table, content, value, index, b"")
        if not self._journal.write(FrameKind.ENDED, payload, first=n):
            return 0
        for slot, found in zip(slots.tolist(), n_counters.tolist(), strict=True):
            if found:
                os.pwrite(self._fd, _ZEROS[:size_bytes], self._counters_offset + slot * self._counter_bytes)
        return n

    def _ring_parts(self, slot: int, tail: int, size_bytes: int) -> list[memoryview]:
        """What is in a ring from `tail` on."""
        ring, at = self._rings_offset + slot * self._ring_bytes, tail % self._ring_bytes
        first_bytes = min(size_bytes, self._ring_bytes - at)
        first = self._view[ring + at : ring + at + first_bytes]
        return [first] if first_bytes == size_bytes else [first, self._view[ring : ring + size_bytes - first_bytes]]

    def _read_counters(self, slots: Array, size_bytes: int) -> tuple[Array, Array, Array]:
        """The counters in some slots that are not 0, their indices, and how many each slot has."""
        n = len(slots)
        if size_bytes <= 0:
            empty = np.zeros(0, np.int64)
            return empty, empty, np.zeros(n, np.int64)
        values = np.empty((n, size_bytes // 8), np.uint64)
        for row, slot in zip(values, slots.tolist(), strict=True):
            n_read = os.preadv(self._fd, [row.data], self._counters_offset + slot * self._counter_bytes)
            row[n_read // 8 :] = 0
        at = np.flatnonzero(values != 0)
        row_of, index = np.divmod(at, values.shape[1])
        return values.reshape(-1)[at], index + self._first_counter, np.bincount(row_of, minlength=n)
