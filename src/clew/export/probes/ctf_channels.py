"""The channels of a CTF trace: types of events that have the same contexts, and a stream for each thread of them.

Runs in the controller. LTTng-UST has a stream for each processor, as its programs write into buffers of processors;
here events come by thread, each thread's in order, and those of a thread that waited may come hours behind others'. So
a stream is a thread's: it is in order as it comes, nothing is held back for others, and readers merge streams by time.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.export.probes.ctf_layout import CtfStruct
from clew.export.probes.ctf_records import TIME_AT, TIME_BYTES, Records, encode_rows
from clew.export.probes.ctf_streams import NO_CPU, Stream
from clew.export.probes.event_types import PLACE

__all__ = ["MAX_TYPES", "Channel", "Thread"]

Array = npt.NDArray[Any]
Thread = tuple[int, int]
"""Its process' number and its own."""

MAX_TYPES: Final = 65535
"""Of a channel: 65535 as the number of one says that the number follows."""
_ROWS: Final = 1 << 16
"""That are encoded at once."""
_TIME, _SEQUENCE, _PID, _TID, _COMM, _CPU = range(len(PLACE))


class Channel:
    """A class of streams: `contexts` are what its events have beside LTTng's own."""

    def __init__(self, folder: Path, uuid: bytes, number: int, contexts: CtfStruct, packet_bytes: int) -> None:
        self.number, self.contexts, self.n_types = number, contexts, 0
        self._folder, self._uuid, self._packet_bytes = folder, uuid, packet_bytes
        self._threads: dict[Thread, Stream] = {}
        self._idle: list[Stream] = []
        """Of threads that are over: other threads may go on with them."""
        self._n_streams = 0

    @property
    def n_waiting(self) -> int:
        """Bytes of events that are in no packet yet."""
        return sum(stream.n_waiting for stream in self._threads.values())

    def add(self, tables: list[tuple[int, CtfStruct, pa.Table]], offset_ns: int) -> None:
        """Add events: the number of a type in this channel, its fields, its rows. Raises OSError."""
        records: list[Records] = []
        for event_id, fields, table in tables:
            batches = table.to_batches(_ROWS)
            records += [encode_rows(rows, event_id, self.contexts, fields) for rows in batches]
        time, sequence, pid, tid, cpu = (_place(tables, index) for index in (_TIME, _SEQUENCE, _PID, _TID, _CPU))
        if not len(time):
            return
        # A time in front of the clock's beginning is damage.
        time = np.maximum(time - offset_ns, 0)
        order = np.lexsort((sequence, tid, pid))
        sizes = np.concatenate([np.diff(one.bounds) for one in records])
        bounds = np.concatenate([[0], np.cumsum(sizes[order])])
        starts = np.empty(len(order), np.int64)
        starts[order] = bounds[:-1]
        data = np.zeros(int(bounds[-1]), np.uint8)
        at = 0
        for one in records:
            n = len(one.bounds) - 1
            one.put_into(data, starts[at : at + n])
            at += n
        time, pid, tid, cpu = time[order], pid[order], tid[order], cpu[order]
        changes = np.flatnonzero((np.diff(pid) != 0) | (np.diff(tid) != 0)) + 1
        edges = [0, *changes.tolist(), len(time)]
        for start, end in pairwise(edges):
            stream = self._stream((int(pid[start]), int(tid[start])), int(time[start]))
            # The order of a thread's events is known; where times contradict it, they are wrong.
            rising = np.maximum(np.maximum.accumulate(time[start:end]), stream.last)
            _put_times(data, bounds[start:end], rising)
            stream.add(data, bounds[start : end + 1], rising, cpu[start:end])

    def has(self, thread: Thread) -> bool:
        """Whether a thread has a stream."""
        return thread in self._threads

    def lose(self, thread: Thread, time: int, count: int) -> None:
        """Events of a thread were lost. Raises OSError."""
        self._stream(thread, time).lose(time, count)

    def end_thread(self, thread: Thread) -> None:
        """Nothing more comes of a thread. Raises OSError."""
        stream = self._threads.get(thread)
        if stream is not None:
            stream.close()
            self._idle.append(self._threads.pop(thread))

    def flush(self) -> None:
        """Write what waits. Raises OSError."""
        for stream in self._threads.values():
            stream.flush()

    def close(self) -> None:
        """The same at the end. Raises OSError."""
        for stream in self._threads.values():
            stream.close()

    def _stream(self, thread: Thread, time: int) -> Stream:
        stream = self._threads.get(thread)
        if stream is None:
            stream = next((one for one in self._idle if one.last <= time), None)
            if stream is None:
                path = self._folder / f"channel{self.number}_{self._n_streams}"
                stream = Stream(path, self._uuid, self.number, self._n_streams, self._packet_bytes)
                self._n_streams += 1
            else:
                self._idle.remove(stream)
            self._threads[thread] = stream
        return stream


def _place(tables: list[tuple[int, CtfStruct, pa.Table]], index: int) -> Array:
    """A column of all tables; processors that are not known as NO_CPU."""
    columns = []
    for _, _, table in tables:
        column = table.column(index)
        if index == _CPU:
            column = column.cast(pa.int64()).fill_null(NO_CPU)
        columns.append(column.to_numpy())
    return np.concatenate(columns)


def _put_times(data: Array, starts: Array, times: Array) -> None:
    """Fill in the lower halves of the times of records that begin at `starts`."""
    halves = times.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :TIME_BYTES]
    windows = np.lib.stride_tricks.sliding_window_view(data, TIME_BYTES, writeable=True)
    windows[starts + TIME_AT] = halves
