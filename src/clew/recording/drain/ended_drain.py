"""Takes threads out of the shared memory that ended before anything of them was taken, all that there are at once.

Runs in the controller, beside the target. What the slots say is not trusted: who is not as most threads are is left to
the drain, which takes one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.process.shared_memory import SharedMemory
from clew.protocol._generated import (
    BUFFER_GUARD_BYTES,
    PATH_BUFFER_BYTES,
    PATH_SURPRISES_OFFSET,
    PATH_SYMBOLS_OFFSET,
    PATH_WINDOW_BYTES,
    RECORD_BYTES,
    Mode,
    RequestKind,
)
from clew.protocol.codec import MAX_SURPRISE_BYTES
from clew.recording.raw.ended_threads import ENDED_THREAD, pack_ended
from clew.recording.raw.path_tail import CELLS_BYTES, left_bytes, used_bytes
from clew.recording.sinks.sink import ProcessSink

__all__ = ["EndedDrain"]

Array = npt.NDArray[Any]

MAX_RECORDS: Final = 1 << 12
"""Of a frame: its records are looked at together later, too."""
MOST_COUNTER_BYTES: Final = 64 << 10
"""Where a process uses more counters, looking for the few that a thread used is worth the calls that it takes."""
_ZEROS: Final = memoryview(bytes(MOST_COUNTER_BYTES + PATH_BUFFER_BYTES))
_NONE: Final = np.zeros(0, np.int64)


class EndedDrain:
    """Reads the slots of one target; `view` is what of its shared memory is mapped."""

    def __init__(self, shared: SharedMemory, view: memoryview, sink: ProcessSink, mode: Mode) -> None:
        layout = shared.layout
        self._fd, self._view, self._sink = shared.fd, view, sink
        self._shared = shared
        self._is_able = mode in (Mode.COUNTS, Mode.COVERAGE, Mode.FULL)
        self._ring_bytes, self._rings_offset = layout.ring_bytes, layout.rings_offset
        self._windows_offset, self._window_bytes = shared.offset + layout.counters_offset, layout.counter_bytes
        self._first_counter = 0 if mode == Mode.COVERAGE else PATH_WINDOW_BYTES // 8

    def take(self, slots: Array, rows: Array, tails: Array, used: int, first_stream: int, *, has_paths: bool) -> Array:
        """Hand over threads in some slots, whose `rows` say that they ended, and make what they counted zeros.

        `tails` are the positions in their rings up to which records were taken, `used` is how many counters the process
        uses. The threads get numbers in the journal from `first_stream` on. With `has_paths` there may be something of
        their paths (mode full). Which of `slots` were taken, their indices; not more than a frame should hold.
        """
        size_bytes = 8 * (used - self._first_counter)
        # What these did with memory would have to come along.
        is_able = self._is_able and not self._shared.tells_accesses
        if not is_able or size_bytes > min(MOST_COUNTER_BYTES, self._window_bytes - 8 * self._first_counter):
            return _NONE
        n_bytes = rows["ring_head"] - tails
        is_plain = (n_bytes <= self._ring_bytes) & (n_bytes % np.uint64(RECORD_BYTES) == 0)
        is_plain &= (rows["tid"] != 0) & (rows["request_kind"] == RequestKind.NONE)
        n_bytes[~is_plain] = 0
        is_plain &= np.cumsum(n_bytes) <= MAX_RECORDS * RECORD_BYTES
        chosen = np.flatnonzero(is_plain)
        cells = np.zeros((len(chosen), CELLS_BYTES // 8), np.uint64)
        if has_paths and len(chosen):
            self._read_windows(cells, slots[chosen], 0)
        if not len(chosen):
            return _NONE
        n, slots, rows, n_bytes = len(chosen), slots[chosen], rows[chosen], n_bytes[chosen]
        content = b"".join(self._iter_ring_parts(slots, tails[chosen], n_bytes))
        value, index, n_counters = self._read_counters(slots, size_bytes)
        parts = self._read_tails(slots, cells)
        table = np.zeros(n, ENDED_THREAD)
        table["stream"], table["slot"] = first_stream + np.arange(n), slots
        for name in ("tid", "parent_tid", "end_kind", "start_tsc", "end_tsc", "lost_records"):
            table[name] = rows[name]
        table["name"] = np.ascontiguousarray(rows["name"]).view("S16")[:, 0]
        table["n_records"], table["n_counters"] = n_bytes // np.uint64(RECORD_BYTES), n_counters
        table["tail_bytes"] = [len(part) for part in parts]
        payload = pack_ended(table, content, value, index, b"".join(parts))
        if not self._sink.take_ended(n, payload):
            return _NONE
        for slot, found in zip(slots.tolist(), n_counters.tolist(), strict=True):
            if found:
                self._make_zeros(slot, 8 * self._first_counter, size_bytes)
        # What had been in the buffers, too: it may have left for the ring.
        lengths = np.minimum(used_bytes(cells) + left_bytes(cells), PATH_BUFFER_BYTES + BUFFER_GUARD_BYTES)
        for slot, (surprises, symbols), part in zip(slots.tolist(), lengths.tolist(), parts, strict=True):
            if part:
                self._make_zeros(slot, 0, CELLS_BYTES)
                self._make_zeros(slot, PATH_SURPRISES_OFFSET, surprises + MAX_SURPRISE_BYTES)
                self._make_zeros(slot, PATH_SYMBOLS_OFFSET, symbols)
        return chosen

    def _iter_ring_parts(self, slots: Array, tails: Array, n_bytes: Array) -> Iterator[memoryview]:
        """What is in the rings of some slots from `tails` on."""
        for slot, tail, size_bytes in zip(slots.tolist(), tails.tolist(), n_bytes.tolist(), strict=True):
            ring, at = self._rings_offset + slot * self._ring_bytes, tail % self._ring_bytes
            first_bytes = min(size_bytes, self._ring_bytes - at)
            yield self._view[ring + at : ring + at + first_bytes]
            if first_bytes < size_bytes:
                yield self._view[ring : ring + size_bytes - first_bytes]

    def _read_counters(self, slots: Array, size_bytes: int) -> tuple[Array, Array, Array]:
        """The counters in some slots that are not 0, their indices, and how many each slot has."""
        n = len(slots)
        values = np.empty((n, max(size_bytes, 0) // 8), np.uint64)
        if size_bytes > 0:
            self._read_windows(values, slots, 8 * self._first_counter)
        at = np.flatnonzero(values != 0)
        row_of, index = np.divmod(at, max(values.shape[1], 1))
        return values.reshape(-1)[at], index + self._first_counter, np.bincount(row_of, minlength=n)

    def _read_tails(self, slots: Array, cells: Array) -> list[bytes]:
        """What is left of the paths of some slots, as `cut_tail` gives it; nothing where none began."""
        parts = []
        for slot, own, (surprises, symbols) in zip(slots.tolist(), cells, used_bytes(cells).tolist(), strict=True):
            if not own.any():
                parts.append(b"")
                continue
            first = self._windows_offset + slot * self._window_bytes
            there = os.pread(self._fd, surprises + MAX_SURPRISE_BYTES, first + PATH_SURPRISES_OFFSET)
            part = own.tobytes() + there[:surprises]
            if symbols:
                part += os.pread(self._fd, symbols, first + PATH_SYMBOLS_OFFSET)
            parts.append(part + there[surprises:])
        return parts

    def _read_windows(self, into: Array, slots: Array, offset: int) -> None:
        """Fill each row of `into` from a slot's counters window."""
        for row, slot in zip(into, slots.tolist(), strict=True):
            n_read = os.preadv(self._fd, [row.data], self._windows_offset + slot * self._window_bytes + offset)
            row[n_read // 8 :] = 0

    def _make_zeros(self, slot: int, offset: int, size_bytes: int) -> None:
        if size_bytes:
            at = self._windows_offset + slot * self._window_bytes + offset
            os.pwrite(self._fd, _ZEROS[:size_bytes], at)
