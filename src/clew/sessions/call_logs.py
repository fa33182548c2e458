"""What calls of a function had, taken while no thread stops: a table that grows while the program runs.

Runs in the controller, in any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.capture.types import SIZES, is_float
from clew.protocol._constants import CAPTURE_EXECUTING, CAPTURE_LEFT, CAPTURE_RECORD_VALUES, CaptureType
from clew.protocol._generated import CAPTURE_RECORD
from clew.sessions.arrow_types import ARROW_TYPES

if TYPE_CHECKING:
    from clew.sessions.capture_sink import Captured, CaptureSink
    from clew.sessions.live_clock import LiveClock
    from clew.sessions.target import SessionTarget
    from clew.sessions.wanted import Wanted

__all__ = ["CallEnd", "CallLog", "read_together"]

Array = npt.NDArray[Any]

_PLACE: Final = {"time_ns": pa.int64(), "pid": pa.uint32(), "tid": pa.uint32(), "pc": pa.uint64()}


class CallEnd(IntEnum):
    """What has become of a call. Of one that is `EXECUTING` that is told: it is over if the process executes the
    program that it is about to; if it does not, `STAYS` follows, of the same thread, and the call goes on."""

    RETURNED = 0
    LEFT = CAPTURE_LEFT >> 30
    EXECUTING = CAPTURE_EXECUTING >> 30
    STAYS = LEFT | EXECUTING


_END_SHIFT: Final = 30


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
        fields = [(text, ARROW_TYPES[kind]) for text, kind in zip(texts, self._kinds, strict=True)]
        # What has a column anyway, and what is asked for twice, gets no other.
        self._own = [n for n, (text, _) in enumerate(fields) if text not in _PLACE and text not in texts[:n]]
        end = [("end", pa.uint8())] if tells_left else []
        self.schema = pa.schema([*_PLACE.items(), *end, *(fields[index] for index in self._own)])
        self._times = [index for index in self._own if texts[index] == "began"]
        self._tells_left = tells_left

    def read(self) -> pa.Table:
        """The calls that were not read yet, among them all that have been made by now. What is read is let go of."""
        [table] = read_together([self])
        return table

    def remove(self) -> None:
        """Record no more calls. What was recorded can still be read."""
        self._remove()

    def __repr__(self) -> str:
        return f"<log of calls of {self.where}>"

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
    target, sink = logs[0]._target, logs[0]._sink
    target.flush(sink.clock)
    taken = sink.take_together([log.number for log in logs])
    # One clock for all: it becomes better while the program runs, and order is to hold.
    clock = copy(sink.clock)
    return [
        pa.Table.from_batches([log._to_batch(one, clock) for one in captured], log.schema)
        for log, captured in zip(logs, taken, strict=True)
    ]


def read_fields(captured: Captured, kinds: Sequence[CaptureType]) -> list[pa.Array]:
    """A column of each field, null where it is missing, or cut off by who made the record up."""
    heads, payloads = captured.heads.view(CAPTURE_RECORD)[:, 0], captured.payloads
    n_others = max(len(kinds) - CAPTURE_RECORD_VALUES, 0)
    n_there = min(n_others, payloads.shape[1] // 8)
    others = np.ascontiguousarray(payloads[:, : 8 * n_there]).view("<u8").reshape(len(heads), n_there)
    words = np.zeros((len(heads), len(kinds)), "<u8")
    n_first = len(kinds) - n_others
    words[:, :n_first] = heads["values"][:, :n_first]
    words[:, n_first : n_first + n_there] = others
    is_missing = heads["missing"][:, None] >> np.arange(len(kinds), dtype="<u4") & 1 != 0
    is_missing[:, n_first + n_there :] = True
    texts = _read_texts(payloads[:, 8 * n_others :], words, is_missing, kinds)
    return [
        texts[index] if kind == CaptureType.TEXT else _to_arrow(words[:, index], is_missing[:, index], kind)
        for index, kind in enumerate(kinds)
    ]


def _read_texts(payloads: Array, words: Array, is_missing: Array, kinds: Sequence[CaptureType]) -> dict[int, pa.Array]:
    """The columns of bytes, by field. Those of a record lie one behind the other."""
    columns: dict[int, pa.Array] = {}
    at = np.zeros(len(words), np.int64)
    rows = [payload.tobytes() for payload in payloads] if CaptureType.TEXT in kinds else []
    for index, kind in enumerate(kinds):
        if kind != CaptureType.TEXT:
            continue
        is_there = ~is_missing[:, index]
        sizes = np.where(is_there, np.minimum(words[:, index], payloads.shape[1]), 0).astype(np.int64)
        ends = at + sizes
        is_there &= ends <= payloads.shape[1]
        spans = zip(rows, at.tolist(), ends.tolist(), is_there.tolist(), strict=True)
        columns[index] = pa.array([row[start:end] if there else None for row, start, end, there in spans], pa.binary())
        at = ends
    return columns


def _to_arrow(words: Array, is_missing: Array, kind: CaptureType) -> pa.Array:
    """Values out of the words that they are kept in."""
    kept = ARROW_TYPES[kind].to_pandas_dtype()
    if is_float(kind):
        words = words.astype(f"<u{SIZES[kind]}").view(kept)
    return pa.array(words.astype(kept), ARROW_TYPES[kind], mask=is_missing)
