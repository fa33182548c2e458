"""The records of ordered paths among those of a thread (mode `full`), handed to whoever keeps or reads the path.

Runs in the controller, beside the target. What a record claims is checked here as far as memory and files are
concerned; what its numbers mean is not known yet.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import (
    PATH_CHUNK_RECORD,
    PATH_EVENT_RECORD,
    RECORD_BYTES,
    PathEventKind,
    PathGap,
    PathStream,
    RecordKind,
)
from clew.store.path_frames import FrameKind

__all__ = ["PathKeeper", "PathRecords"]

Array = npt.NDArray[Any]

MAX_CHECKPOINT_BYTES: Final = 1 << 26
"""No checkpoint of the runtime's brings more."""

# Plain numbers: finding a member of an enumeration takes longer than what is done with it here.
_CHUNK: Final = int(RecordKind.PATH_CHUNK)
_EVENT: Final = int(RecordKind.PATH_EVENT)
_CHECKPOINT: Final = int(PathEventKind.CHECKPOINT)
_GAPS: Final = {int(PathEventKind.LOST): int(PathGap.LOST), int(PathEventKind.THINNED): int(PathGap.LEFT_OUT)}
"""What a checkpoint behind such an event says of it (`is_after_loss`)."""
_COUNTERS: Final = int(PathStream.COUNTERS)
_FEW: Final = int(PathStream.FEW)
_CALLS: Final = int(PathStream.CALLS)
_RISE: Final = np.dtype([("index", "<u4"), ("rise", "<u8")])
"""Of the stream `counters`."""
_HEAD_BYTES: Final = 4
_FEW_BYTES: Final = 3
_FAR: Final = 256
"""Of the stream `few`: an index, then each counter; and how many indices are stepped over where none follows."""
_ACCESSES: Final = int(PathStream.ACCESSES)
_STREAMS: Final = {int(PathStream.SURPRISES): FrameKind.SURPRISES, int(PathStream.SYMBOLS): FrameKind.SYMBOLS}


class PathKeeper(Protocol):
    """Takes what a path has, in its order."""

    def add_bytes(self, kind: FrameKind, start: int, data: bytes | memoryview) -> None:
        """A piece of a stream that begins at `start`; what lies before it and never came is missing."""

    def add_accesses(self, start: int, data: bytes | memoryview) -> None:
        """The same of what the thread did with memory: rows of dtype ACCESS_ROW."""

    def add_events(self, records: Array) -> None:
        """Events, of dtype PATH_EVENT_RECORD."""

    def add_checkpoint(self, record: np.void, counters: bytes, calls: bytes, *, is_after_loss: int) -> None:
        """A checkpoint: its event, of dtype PATH_EVENT_RECORD, and what came with it."""


class PathRecords:
    """The path of one thread; the records of its ring go through `take`, and what they say to `keeper`."""

    def __init__(self, keeper: PathKeeper) -> None:
        self.keeper = keeper
        """May be another one from some time on."""
        # What belongs to the checkpoint that comes next, by stream.
        self._waiting: dict[int, bytearray] = {_COUNTERS: bytearray(), _CALLS: bytearray()}
        self._calls_start = 0
        self._is_after_loss = 0

    def take_out(self, first: memoryview, second: memoryview) -> tuple[memoryview, memoryview]:
        """What of records in two pieces is not of a path, in two pieces; what is of one goes to the keeper."""
        pieces = [np.frombuffer(piece, np.uint8) for piece in (first, second) if len(piece)]
        data = pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.uint8), *pieces])
        rest = self.take(data.reshape(-1, RECORD_BYTES))
        return memoryview(rest.tobytes()), second[:0]

    def take(self, data: Array) -> Array:
        """The records in `data`, shape (n, RECORD_BYTES), that are not of a path; those that are go to the keeper."""
        kinds, view = data.view("<u2")[:, 0], data.reshape(-1).data
        rest = []
        at, end = 0, len(data)
        while at < end:
            if kinds[at] == _CHUNK:
                head = data[at : at + 1].view(PATH_CHUNK_RECORD)[0, 0]
                first, at = at + 1, at + 1 + int(head["rows"])
                self._add_chunk(head, view[first * RECORD_BYTES : at * RECORD_BYTES])
                continue
            # What is in the rows of a chunk may look like a record: no farther than to the next one.
            next_chunk = _find(kinds, _CHUNK, at + 1)
            records = data[at:next_chunk]
            is_event = kinds[at:next_chunk] == _EVENT
            self._add_records(records[is_event])
            rest.append(records[~is_event])
            at = next_chunk
        return np.concatenate(rest) if rest else data[:0]

    def _add_records(self, records: Array) -> None:
        """Add events, shape (n, RECORD_BYTES), in their order."""
        events = records.view(PATH_EVENT_RECORD)[:, 0]
        kinds = events["event_kind"]
        first = 0
        ends_some = kinds == _CHECKPOINT
        for kind in _GAPS:
            ends_some |= kinds == kind
        for index in np.flatnonzero(ends_some).tolist():
            self._add_events(events[first:index])
            first = index + 1
            if kinds[index] != _CHECKPOINT:
                self._is_after_loss = _GAPS[int(kinds[index])]
                self._add_events(events[index : index + 1])
            else:
                self._add_checkpoint(events[index])
        self._add_events(events[first:])

    def _add_checkpoint(self, record: np.void) -> None:
        counters, calls = self._waiting[_COUNTERS], self._waiting[_CALLS]
        self.keeper.add_checkpoint(record, bytes(counters), bytes(calls), is_after_loss=self._is_after_loss)
        self._is_after_loss = 0
        self._calls_start += len(calls)
        counters.clear()
        calls.clear()

    def _add_events(self, events: Array) -> None:
        if len(events):
            self.keeper.add_events(events)

    def _add_chunk(self, head: np.void, data: memoryview) -> None:
        size, stream, start = int(head["size_bytes"]), int(head["stream"]), int(head["start"])
        if not 0 < size <= len(data):
            return
        kind = _STREAMS.get(stream)
        if kind is not None:
            self.keeper.add_bytes(kind, min(start, 1 << 62), data[:size])
        elif stream == _ACCESSES:
            self.keeper.add_accesses(min(start, 1 << 62), data[:size])
        elif stream == _FEW:
            if len(self._waiting[_COUNTERS]) < MAX_CHECKPOINT_BYTES:
                self._waiting[_COUNTERS] += _decode_few(data[:size])
        elif stream in self._waiting:
            waiting = self._waiting[stream]
            if stream == _CALLS:
                # Where a checkpoint found no room it is written anew, from where the last whole one ended.
                del waiting[max(start - self._calls_start, 0) :]
            if len(waiting) < MAX_CHECKPOINT_BYTES:
                waiting += data[:size]


def _decode_few(data: memoryview) -> bytes:
    """A chunk of the stream `few` as the stream `counters` has it."""
    n = (len(data) - _HEAD_BYTES) // _FEW_BYTES
    if n <= 0:
        return b""
    entries = np.frombuffer(data, np.uint8, n * _FEW_BYTES, _HEAD_BYTES).reshape(n, _FEW_BYTES)
    rise = entries[:, 1] | entries[:, 2].astype(np.uint16) << 8
    steps = np.where(rise == 0, _FAR, 1) * entries[:, 0]
    # No sum of so few exceeds what an index may be by much.
    index = np.cumsum(steps) + int.from_bytes(data[:_HEAD_BYTES], "little")
    table = np.zeros(n, _RISE)
    table["index"], table["rise"] = index, rise
    return bytes(table[rise != 0])


def _find(kinds: Array, kind: int, start: int) -> int:
    """The first row from `start` on that is of a kind, or where they end."""
    size = 64
    while start < len(kinds):
        found = np.flatnonzero(kinds[start : start + size] == kind)
        if len(found):
            return start + int(found[0])
        start += size
        size *= 4
    return len(kinds)
