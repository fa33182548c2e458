"""Takes the records of ordered paths out of what the rings bring (mode `full`), and writes them to the paths' files.

Runs in the controller, beside the target. What a record claims is checked here as far as memory and files are
concerned; what its numbers mean is not known yet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import (
    CONTINUATION_PAYLOAD_BYTES,
    PATH_CHUNK_RECORD,
    PATH_EVENT_RECORD,
    RECORD_BYTES,
    PathEventKind,
    PathStream,
    RecordKind,
)
from clew.store.path_frames import FOLDER_NAME, FrameKind, file_name
from clew.store.path_writer import PathWriter

__all__ = ["PathDrain"]

Array = npt.NDArray[Any]

MAX_CHECKPOINT_BYTES: Final = 1 << 26
"""No checkpoint of the runtime's brings more."""

_HEADER_BYTES: Final = RECORD_BYTES - CONTINUATION_PAYLOAD_BYTES
_STREAMS: Final = {PathStream.SURPRISES: FrameKind.SURPRISES, PathStream.SYMBOLS: FrameKind.SYMBOLS}


class PathDrain:
    """The path of one thread; the records of its ring go through `take`."""

    def __init__(self, folder: Path, process: int, stream: int) -> None:
        self.writer = PathWriter(folder / FOLDER_NAME / file_name(process, stream))
        # What belongs to the checkpoint that comes next, by stream.
        self._waiting: dict[int, bytearray] = {PathStream.COUNTERS: bytearray(), PathStream.CALLS: bytearray()}
        self._calls_start = 0
        self._is_after_loss = False

    def take(self, data: Array) -> Array:
        """The records in `data`, shape (n, RECORD_BYTES), that are not of a path; those that are are written."""
        kinds = data.view("<u2")[:, 0]
        is_path = (kinds == RecordKind.PATH_CHUNK) | (kinds == RecordKind.PATH_EVENT)
        if not is_path.any():
            return data
        # Continuations belong to the record before them.
        heads = np.flatnonzero(kinds != RecordKind.CONTINUATION)
        ends = np.append(heads[1:], len(data))
        path_heads = is_path[heads]
        is_taken = np.zeros(len(data), bool)
        is_taken[heads[path_heads]] = True
        for at, end in zip(heads[path_heads].tolist(), ends[path_heads].tolist(), strict=True):
            is_taken[at:end] = True
        self._take_all(data, kinds, heads[path_heads], ends[path_heads])
        return data[~is_taken]

    def _take_all(self, data: Array, kinds: Array, heads: Array, ends: Array) -> None:
        events = np.ascontiguousarray(data[heads]).view(PATH_EVENT_RECORD)[:, 0]
        is_chunk = kinds[heads] == RecordKind.PATH_CHUNK
        kind = np.where(is_chunk, -1, events["event_kind"].astype(np.int64))
        first = 0
        for index in np.flatnonzero(np.isin(kind, (-1, PathEventKind.CHECKPOINT, PathEventKind.LOST))).tolist():
            self._add_events(events[first:index])
            first = index + 1
            if is_chunk[index]:
                head = data[heads[index]].view(PATH_CHUNK_RECORD)[0]
                rows = data[heads[index] + 1 : ends[index], _HEADER_BYTES:]
                self._add_chunk(head, np.ascontiguousarray(rows).reshape(-1).data)
            elif kind[index] == PathEventKind.LOST:
                self._is_after_loss = True
                self._add_events(events[index : index + 1])
            else:
                self._add_checkpoint(events[index])
        self._add_events(events[first:])

    def _add_checkpoint(self, record: np.void) -> None:
        counters, calls = self._waiting[PathStream.COUNTERS], self._waiting[PathStream.CALLS]
        self.writer.add_checkpoint(record, bytes(counters), bytes(calls), is_after_loss=self._is_after_loss)
        self._is_after_loss = False
        self._calls_start += len(calls)
        counters.clear()
        calls.clear()

    def _add_events(self, events: Array) -> None:
        if len(events):
            self.writer.add_events(events)

    def _add_chunk(self, head: np.void, data: memoryview) -> None:
        size, stream = int(head["size_bytes"]), int(head["stream"])
        if not 0 < size <= len(data):
            return
        if stream in self._waiting:
            waiting = self._waiting[stream]
            if stream == PathStream.CALLS:
                # Where a checkpoint found no room it is written anew, from where the last whole one ended.
                del waiting[max(int(head["start"]) - self._calls_start, 0) :]
            if len(waiting) < MAX_CHECKPOINT_BYTES:
                waiting += data[:size]
        elif stream in _STREAMS:
            self.writer.add_bytes(_STREAMS[PathStream(stream)], min(int(head["start"]), 1 << 62), data[:size])

    def save(self) -> None:
        """Write what waits; more comes."""
        self.writer.save()

    def finish(self) -> None:
        """The thread ended, or the process."""
        self.writer.close()
