"""The channels of a CTF trace: types of events that have the same contexts, with streams for each processor.

Runs in the controller. As in LTTng-UST a stream is of one processor. There a processor's events come in order; here
they come by thread, and those of a thread that waited may come hours behind others'. So nothing is held back: what is
earlier than a stream already is goes to a further one of that processor. There is one where batches follow each other
in time, and there are never more than threads. Readers merge streams anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.export.probes.ctf_layout import CtfStruct
from clew.export.probes.ctf_records import TIME_AT, TIME_BYTES, Records, encode_rows
from clew.export.probes.ctf_streams import NO_CPU, Stream
from clew.export.probes.event_types import PLACE, Loss

__all__ = ["MAX_TYPES", "Channel", "Thread", "TypeRows"]

Array = npt.NDArray[Any]
Thread = tuple[int, int]
"""Its process' number and its own."""
TypeRows = tuple[int, CtfStruct, pa.Table]
"""The number of a type in its channel, its fields, rows."""

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
        self._streams: dict[int, list[Stream]] = {}
        """By processor: each is behind the next one in time."""
        self._n_streams = 0
        self._threads: dict[Thread, tuple[int, int]] = {}
        """When and where each had its latest event."""

    @property
    def n_waiting(self) -> int:
        """Bytes of events that are in no packet yet."""
        return sum(stream.n_waiting for stream in self._iter_streams())

    def has(self, thread: Thread) -> bool:
        """Whether there were events of a thread."""
        return thread in self._threads

    def add(self, tables: Sequence[TypeRows], losses: Sequence[Loss], offset_ns: int) -> None:
        """Add events, and what threads lost behind them. Raises OSError."""
        rows = _Rows(tables, self.contexts, offset_ns)
        rows.order_threads(self._threads)
        points: dict[int, list[tuple[int, int]]] = {}
        for loss in losses:
            last, cpu = self._threads.get((loss.pid, loss.tid), (0, NO_CPU))
            points.setdefault(cpu, []).append((max(loss.time_ns - offset_ns, last), loss.count))
        data, bounds, times, cpus = rows.lay_out()
        edges = [0, *(np.flatnonzero(np.diff(cpus)) + 1).tolist(), len(cpus)] if len(cpus) else []
        for start, end in pairwise(edges):
            cpu = int(cpus[start])
            self._put(cpu, data, bounds[start : end + 1], times[start:end], sorted(points.pop(cpu, [])))
        for cpu, lost in points.items():
            self._put(cpu, data, bounds[:1], times[:0], sorted(lost))

    def end_thread(self, thread: Thread) -> None:
        """Nothing more comes of a thread."""
        self._threads.pop(thread, None)

    def flush(self) -> None:
        """Write what waits. Raises OSError."""
        for stream in self._iter_streams():
            stream.flush()

    def close(self) -> None:
        """The same at the end. Raises OSError."""
        for stream in self._iter_streams():
            stream.close()

    def _iter_streams(self) -> Iterator[Stream]:
        return chain.from_iterable(self._streams.values())

    def _put(self, cpu: int, data: Array, bounds: Array, times: Array, lost: Sequence[tuple[int, int]]) -> None:
        """Add events of a processor, in the order of time, and losses: when, and how many."""
        streams = self._streams.setdefault(cpu, [])
        end = len(times)
        for number in count():
            if number == len(streams):
                streams.append(self._open(cpu))
            stream = streams[number]
            # What is earlier is for the next stream.
            first = at = int(np.searchsorted(times[:end], stream.last))
            for time, n_lost in lost if number == 0 else ():
                stop = max(int(np.searchsorted(times[:end], time, "right")), at)
                stream.add(data, bounds[at : stop + 1], times[at:stop])
                stream.lose(time, n_lost)
                at = stop
            stream.add(data, bounds[at : end + 1], times[at:end])
            end = first
            if not end:
                return

    def _open(self, cpu: int) -> Stream:
        path = self._folder / f"channel{self.number}_{self._n_streams}"
        stream = Stream(path, self._uuid, (self.number, self._n_streams, cpu), self._packet_bytes)
        self._n_streams += 1
        return stream


class _Rows:
    """Events that are to be added: records of all tables, one behind the other, and where and when they were."""

    def __init__(self, tables: Sequence[TypeRows], contexts: CtfStruct, offset_ns: int) -> None:
        self._records: list[Records] = []
        for event_id, fields, table in tables:
            batches = table.to_batches(_ROWS)
            self._records += [encode_rows(rows, event_id, contexts, fields) for rows in batches]
        time, sequence, pid, tid, cpu = (_place(tables, index) for index in (_TIME, _SEQUENCE, _PID, _TID, _CPU))
        self._order = np.lexsort((sequence, tid, pid))
        # A time in front of the clock's beginning is damage.
        self._time = np.maximum(time - offset_ns, 0)[self._order]
        self._pid, self._tid, self._cpu = (column[self._order] for column in (pid, tid, cpu))

    def order_threads(self, threads: dict[Thread, tuple[int, int]]) -> None:
        """Have the times of each thread rise, from its latest event on, of which `threads` tell and are told. The order
        of a thread's events is known: where times contradict it, they are wrong."""
        changes = np.flatnonzero((np.diff(self._pid) != 0) | (np.diff(self._tid) != 0)) + 1
        for start, end in pairwise([0, *changes.tolist(), len(self._pid)] if len(self._pid) else []):
            thread = int(self._pid[start]), int(self._tid[start])
            last, _ = threads.get(thread, (0, NO_CPU))
            own = self._time[start:end]
            np.maximum.accumulate(np.maximum(own, last), out=own)
            threads[thread] = int(own[-1]), int(self._cpu[end - 1])

    def lay_out(self) -> tuple[Array, Array, Array, Array]:
        """The records by processor and time: their bytes; where each begins and, last, where all end; times;
        processors."""
        n = len(self._order)
        by_time = np.lexsort((self._time, self._cpu))
        order = self._order[by_time]
        sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(one.bounds) for one in self._records)])
        bounds = np.concatenate([[0], np.cumsum(sizes[order])])
        starts = np.empty(n, np.int64)
        starts[order] = bounds[:-1]
        data = np.zeros(int(bounds[-1]), np.uint8)
        at = 0
        for one in self._records:
            n_rows = len(one.bounds) - 1
            one.put_into(data, starts[at : at + n_rows])
            at += n_rows
        time = self._time[by_time]
        if n:
            _put_times(data, bounds[:-1], time)
        return data, bounds, time, self._cpu[by_time]


def _place(tables: Sequence[TypeRows], index: int) -> Array:
    """A column of all tables; processors that are not known as NO_CPU."""
    columns = [np.zeros(0, np.int64)] if not tables else []
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
