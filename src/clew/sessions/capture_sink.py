"""Takes what is captured in a session's target, as it comes out of the rings, and keeps it until somebody reads it.

Runs in the controller: the sink in the thread that owns the target, reading in any. What the target wrote is not
believed: records that do not hold together are counted and dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._constants import CAPTURE_EXECUTING, CAPTURE_LEFT
from clew.protocol._generated import (
    CAPTURE_RECORD,
    CONTINUATION_PAYLOAD_BYTES,
    RECORD_BYTES,
    RecordKind,
)
from clew.recording.drain.capture_rows import split_captures
from clew.recording.raw.ended_threads import ENDED_THREAD
from clew.recording.sinks.sink import Identity, ProcessSink, ProcessStart, Sink
from clew.sessions.live_clock import LiveClock

__all__ = ["CaptureSink", "Captured"]

Array = npt.NDArray[Any]

_CONTINUATION_HEAD: Final = RECORD_BYTES - CONTINUATION_PAYLOAD_BYTES
_ENDS: Final = np.uint32(CAPTURE_LEFT | CAPTURE_EXECUTING)
"""What numbers have beside that which was asked for."""


@dataclass(frozen=True)
class Captured:
    """Captures of one process that have equally many continuations.

    `heads` has shape (n, RECORD_BYTES), u8: each is a CAPTURE_RECORD. `payloads` has shape (n, bytes), u8: what
    continuations carry, and anything behind that.
    """

    pid: int
    heads: Array
    payloads: Array


class CaptureSink(Sink):
    """Of a whole session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[int, list[Captured]] = {}
        self.clock = LiveClock()
        self.begun: list[tuple[Identity, int]] = []
        """Processes, and programs that they executed, as they began: who, and when, in nanoseconds since 1970."""
        self.n_damaged = 0
        """Records that do not hold together."""
        self.most_bytes: int | None = None
        """With more than that waiting for somebody who reads, the target waits as well; None: it never does."""
        self.must_take: Callable[[], bool] = bool
        """Whether the target must get on all the same."""
        self._n_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether more is to be taken out of the rings."""
        return self.most_bytes is None or self._n_bytes < self.most_bytes or self.must_take()

    def open_process(self, number: int) -> ProcessSink:
        return _Process(self)

    def watch(self, number: int) -> None:
        """Keep captures of that number from now on."""
        with self._lock:
            self._kept.setdefault(number, [])

    def forget(self, number: int) -> None:
        """Keep captures of that number no more."""
        with self._lock:
            self._n_bytes -= sum(_size(one) for one in self._kept.pop(number, ()))

    def take(self, number: int) -> list[Captured]:
        """What came of a number since it was taken last."""
        return self.take_together([number])[0]

    def take_together(self, numbers: Iterable[int]) -> list[list[Captured]]:
        """The same of some numbers up to one moment: each thread's are there up to one of them.

        `numbers` are gone through while nothing is kept: of a list that grows the newest are among them.
        """
        with self._lock:
            asked = list(numbers)
            # Not a list that is kept on, to which more may be added before it is read.
            taken = [self._kept.get(number) or [] for number in asked]
            for number in asked:
                if self._kept.get(number):
                    self._kept[number] = []
            self._n_bytes -= sum(_size(one) for some in taken for one in some)
            return taken

    def keep(self, pid: int, records: Array) -> None:
        """Keep the captures among the records of a thread, of shape (n, RECORD_BYTES), which nobody changes."""
        self.put(self._by_number(pid, records))

    def put(self, captured: Iterable[tuple[int, Captured]]) -> None:
        """Keep captures, by their numbers."""
        found = [*captured]
        # All at once: who takes meanwhile would have later ones without earlier ones.
        with self._lock:
            for number, one in found:
                if number in self._kept:
                    self._kept[number].append(one)
                    self._n_bytes += _size(one)

    def _by_number(self, pid: int, records: Array) -> Iterator[tuple[int, Captured]]:
        for heads, payloads in self._find(records):
            numbers = _column(heads, "number", "<u4") & ~_ENDS
            if (numbers == numbers[0]).all():
                yield int(numbers[0]), Captured(pid, heads, payloads)
                continue
            for number in np.unique(numbers).tolist():
                own = numbers == number
                yield number, Captured(pid, heads[own], payloads[own])

    def _find(self, records: Array) -> Iterator[tuple[Array, Array]]:
        """Heads and payloads of captures that have equally many continuations, as bytes."""
        kinds = _column(records, "kind", "<u2")
        n_all = _column(records, "continuations", "<u2")
        is_one = kinds == RecordKind.CAPTURE
        if is_one.all() and not n_all.any():
            yield records, np.zeros((len(records), 0), np.uint8)
            return
        at = np.flatnonzero(is_one)
        n_parts = n_all[at].astype(np.int64)
        follows = np.concatenate([[0], np.cumsum(kinds == RecordKind.CONTINUATION)])
        ends = np.minimum(at + 1 + n_parts, len(records))
        is_sound = follows[ends] - follows[at + 1] == n_parts
        self.n_damaged += int((~is_sound).sum())
        for n in np.unique(n_parts[is_sound]).tolist():
            own = at[is_sound & (n_parts == n)]
            parts = records[own[:, None] + 1 + np.arange(n)][:, :, _CONTINUATION_HEAD:]
            yield records[own], parts.reshape(len(parts), n * CONTINUATION_PAYLOAD_BYTES)


def _column(records: Array, name: str, kind: str) -> Array:
    """A field of records that are bytes: copying rows field by field takes several times as long."""
    fields: Any = CAPTURE_RECORD.fields
    field, start = fields[name][:2]
    return np.ascontiguousarray(records[:, start : start + field.itemsize]).view(kind)[:, 0]


def _size(captured: Captured) -> int:
    return int(captured.heads.nbytes + captured.payloads.nbytes)


class _Process(ProcessSink):
    def __init__(self, sink: CaptureSink) -> None:
        self._sink = sink
        self._pid: int | None = None
        self._early: list[Array] = []

    @property
    def has_room(self) -> bool:
        return self._sink.has_room

    def begin(self, start: ProcessStart) -> None:
        self._pid = int(start.who.pid)
        self._sink.begun.append((start.who, start.start_ns))
        for records in self._early:
            self._sink.keep(self._pid, records)
        self._early.clear()

    def take_captures(self, records: Array) -> None:
        if self._pid is None:
            # A fork's child may show its first thread before it begins.
            self._early.append(records)
        else:
            self._sink.keep(self._pid, records)

    def take_ended(self, n_threads: int, packed: bytes) -> bool:
        rows = np.frombuffer(packed, ENDED_THREAD, n_threads)
        n_bytes = int(rows["n_records"].sum(dtype=np.int64)) * RECORD_BYTES
        captures, _ = split_captures(memoryview(packed)[rows.nbytes : rows.nbytes + n_bytes])
        if captures is not None:
            self.take_captures(captures)
        return True
