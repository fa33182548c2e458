"""What calls of a function had, taken while no thread stops: a table that grows while the program runs.

Runs in the controller, in any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from clew.dataclass import dataclass
from clew.protocol._constants import CAPTURE_EXECUTING, CAPTURE_LEFT
from clew.protocol._generated import CAPTURE_RECORD
from clew.sessions.capture_fields import read_fields, read_values
from clew.store.arrow_types import ARROW_TYPES

if TYPE_CHECKING:
    from clew.sessions.capture_sink import Captured, CaptureSink
    from clew.sessions.live_clock import LiveClock
    from clew.sessions.target import SessionTarget
    from clew.sessions.wanted import Wanted

__all__ = ["CallEnd", "CallLog", "CallRows", "read_together", "take_together"]

_PLACE: Final = {"time_ns": pa.int64(), "pid": pa.uint32(), "tid": pa.uint32(), "pc": pa.uint64()}


class CallEnd(IntEnum):
    """What has become of a call. Of one that is `EXECUTING` that is told: it is over if the process executes the
    program that it is about to; if it does not, `STAYS` follows, of the same thread, and the call goes on."""

    RETURNED = 0
    LEFT = CAPTURE_LEFT >> 30
    EXECUTING = CAPTURE_EXECUTING >> 30
    STAYS = LEFT | EXECUTING


_END_SHIFT: Final = 30


@dataclass(frozen=True)
class CallRows:
    """Rows of a log, of process `pid`: when each was told (ns since 1970), who called, where, `CallEnd`; and a column
    of each expression, as they were asked for."""

    pid: int
    told_ns: list[int]
    tid: list[int]
    pc: list[int]
    ends: list[int]
    columns: list[list[Any]]


class CallLog:
    """Calls of a function, recorded where they are made. `where` is the function, as it was asked for.

    `schema` is of the rows: `time_ns` (i64, since 1970; null while no clock is known), `pid`, `tid` (u32), `pc` (u64),
    and a column for each expression, null where that could not be had. Rows of one thread come in its order. `began`,
    when a call began, is as `time_ns`.

    `tells_left`: there are rows of calls, too, that are over without having returned, with nothing but what they kept,
    and `began`; their `time_ns` is when that was found out. A column `end` (u8) has `CallEnd`.
    """

    def __init__(
        self,
        target: SessionTarget,
        sink: CaptureSink,
        number: int,
        where: str,
        wanted: Wanted,
        remove: Callable[[], None],
        tells_left: bool = False,
    ) -> None:
        self.where = where
        self._target, self._sink, self.number = target, sink, number
        self._kinds, texts = wanted.kinds(), wanted.texts
        self._remove = remove
        # What has a column anyway, and what is asked for twice, gets no other.
        self._own = [n for n, text in enumerate(texts) if text not in _PLACE and text not in texts[:n]]
        self._texts = texts
        self._times = [index for index in self._own if texts[index] == "began"]
        self._tells_left = tells_left

    @cached_property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        end = [("end", pa.uint8())] if self._tells_left else []
        own = [(self._texts[index], ARROW_TYPES[self._kinds[index]]) for index in self._own]
        return pa.schema([*_PLACE.items(), *end, *own])

    def read(self) -> pa.Table:
        """The calls that were not read yet, among them all that have been made by now. What is read is let go of."""
        [table] = read_together([self])
        return table

    def remove(self) -> None:
        """Record no more calls. What was recorded can still be read."""
        self._remove()

    def __repr__(self) -> str:
        return f"<log of calls of {self.where}>"

    def rows_of(self, captured: Captured, clock: LiveClock) -> CallRows:
        """Rows of records as Python has them."""
        heads = captured.heads.view(CAPTURE_RECORD)[:, 0]
        columns = read_values(captured, self._kinds)
        for index in self._times:
            stamps = np.array([stamp or 0 for stamp in columns[index]], np.uint64)
            times = clock.to_ns(stamps).tolist()
            columns[index] = [time if stamp else None for time, stamp in zip(times, stamps.tolist(), strict=True)]
        told, ends = clock.to_ns(heads["tsc"]).tolist(), (heads["number"] >> _END_SHIFT).tolist()
        return CallRows(captured.pid, told, heads["tid"].tolist(), heads["pc"].tolist(), ends, columns)

    def _to_batch(self, captured: Captured, clock: LiveClock) -> pa.RecordBatch:
        """Rows of an array of records."""
        heads = captured.heads.view(CAPTURE_RECORD)[:, 0]
        pid = np.full(len(heads), captured.pid, np.uint32)
        places = [clock.to_time(heads["tsc"]), *(pa.array(values) for values in (pid, heads["tid"], heads["pc"]))]
        if self._tells_left:
            places.append(pa.array((heads["number"] >> _END_SHIFT).astype(np.uint8)))
        columns = read_fields(captured, self._kinds)
        for index in self._times:
            columns[index] = _to_times(columns[index], clock)
        return pa.RecordBatch.from_arrays([*places, *(columns[index] for index in self._own)], schema=self.schema)


def _to_times(stamps: pa.Array, clock: LiveClock) -> pa.Array:
    """Time stamps as times, in the same type; null where there are none."""
    times = clock.to_ns(stamps.fill_null(0).to_numpy())
    return pa.array(times.astype(np.uint64), mask=stamps.is_null().to_numpy(zero_copy_only=False))


def read_together(logs: Sequence[CallLog]) -> list[pa.Table]:
    """What `read` gives of logs of one session, up to one moment: each thread's calls are there up to one of them."""
    if not logs:
        return []
    clock, taken = take_together(logs)
    batches: list[list[pa.RecordBatch]] = [[] for _ in logs]
    for index, captured in taken:
        batches[index].append(logs[index]._to_batch(captured, clock))
    return [pa.Table.from_batches(own, log.schema) for log, own in zip(logs, batches, strict=True)]


def take_together(logs: Sequence[CallLog]) -> tuple[LiveClock, list[tuple[int, Captured]]]:
    """The same as records, each with the index of its log; and the clock for their times.

    To `logs` others may be added meanwhile, before there is anything of them.
    """
    target, sink = logs[0]._target, logs[0]._sink
    target.flush(sink.clock)
    taken = sink.take_together(log.number for log in logs)
    # One clock for all: it becomes better while the program runs, and order is to hold.
    return copy(sink.clock), [(index, one) for index, captured in enumerate(taken) for one in captured]
