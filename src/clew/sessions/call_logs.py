"""What calls of a function had, taken while no thread stops: a table that grows while the program runs.

Runs in the controller, in any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.capture.interpreter import from_bits
from clew.capture.types import SIZES, is_float
from clew.protocol._constants import CaptureType

if TYPE_CHECKING:
    from clew.sessions.capture_sink import Captured, CaptureSink
    from clew.sessions.live_clock import LiveClock
    from clew.sessions.target import SessionTarget
    from clew.sessions.wanted import Wanted

__all__ = ["CallLog"]

Array = npt.NDArray[Any]
_Value = int | float | bytes | None

_ARROW: Final = {
    CaptureType.I8: pa.int8(),
    CaptureType.U8: pa.uint8(),
    CaptureType.I16: pa.int16(),
    CaptureType.U16: pa.uint16(),
    CaptureType.I32: pa.int32(),
    CaptureType.U32: pa.uint32(),
    CaptureType.I64: pa.int64(),
    CaptureType.U64: pa.uint64(),
    CaptureType.F32: pa.float32(),
    CaptureType.F64: pa.float64(),
    CaptureType.TEXT: pa.binary(),
}


_PLACE: Final = {"time_ns": pa.int64(), "pid": pa.uint32(), "tid": pa.uint32(), "pc": pa.uint64()}


class CallLog:
    """Calls of a function, recorded where they are made. `where` is the function, as it was asked for.

    `schema` is of the rows: `time_ns` (i64, since 1970; null while no clock is known), `pid`, `tid` (u32), `pc` (u64),
    and a column for each expression, null where that could not be had. Rows of one thread come in its order.
    """

    def __init__(
        self,
        target: SessionTarget,
        sink: CaptureSink,
        number: int,
        where: str,
        wanted: Wanted,
        remove: Callable[[], None],
    ) -> None:
        self.where = where
        self._target, self._sink, self.number = target, sink, number
        self._kinds, texts = wanted.kinds(), wanted.texts
        self._remove = remove
        fields = [(text, _ARROW[kind]) for text, kind in zip(texts, self._kinds, strict=True)]
        # What has a column anyway, and what is asked for twice, gets no other.
        self._own = [n for n, (text, _) in enumerate(fields) if text not in _PLACE and text not in texts[:n]]
        self.schema = pa.schema([*_PLACE.items(), *(fields[index] for index in self._own)])

    def read(self) -> pa.Table:
        """The calls that were not read yet, among them all that have been made by now. What is read is let go of."""
        clock = self._sink.clock
        self._target.flush(clock)
        batches = [batch for captured in self._sink.take(self.number) for batch in self._batches(captured, clock)]
        return pa.Table.from_batches(batches, self.schema)

    def remove(self) -> None:
        """Record no more calls. What was recorded can still be read."""
        self._remove()

    def __repr__(self) -> str:
        return f"<log of calls of {self.where}>"

    def _batches(self, captured: Captured, clock: LiveClock) -> Iterator[pa.RecordBatch]:
        """Rows in stretches, so that those with all fields and no bytes among them are read as arrays."""
        n = len(self._kinds)
        n_bitmap = -(-n // 8)
        is_plain = captured.heads["payload_bytes"] == n_bitmap + 8 * n
        if CaptureType.TEXT in self._kinds or captured.payloads.shape[1] < n_bitmap + 8 * n:
            is_plain = np.zeros(len(captured.heads), bool)
        else:
            is_plain &= ~captured.payloads[:, :n_bitmap].any(axis=1)
        edges = np.flatnonzero(np.diff(is_plain)) + 1
        for start, end in pairwise([0, *edges.tolist(), len(is_plain)]):
            heads, payloads = captured.heads[start:end], captured.payloads[start:end]
            columns: list[pa.Array]
            if is_plain[start]:
                words = np.ascontiguousarray(payloads[:, n_bitmap : n_bitmap + 8 * n]).view("<u8")
                columns = [_to_arrow(words[:, index], kind) for index, kind in enumerate(self._kinds)]
            else:
                rows = [self._read_row(payload.tobytes(), n_bitmap) for payload in payloads]
                columns = [pa.array(list(ones), _ARROW[kind]) for ones, kind in zip(zip(*rows), self._kinds)]  # noqa: B905
            pid = np.full(len(heads), captured.pid, np.uint32)
            places = [clock.to_time(heads["tsc"]), *(pa.array(values) for values in (pid, heads["tid"], heads["pc"]))]
            own = (columns[index] for index in self._own)
            yield pa.RecordBatch.from_arrays([*places, *own], schema=self.schema)

    def _read_row(self, payload: bytes, n_bitmap: int) -> list[_Value]:
        """The values of a row; what is cut off is missing."""
        values: list[_Value] = []
        at = n_bitmap
        for index, kind in enumerate(self._kinds):
            if payload[index // 8] >> index % 8 & 1 or at + 4 > len(payload):
                values.append(None)
                continue
            if kind == CaptureType.TEXT:
                size = int.from_bytes(payload[at : at + 4], "little")
                values.append(payload[at + 4 : at + 4 + size])
                at += 4 + size
            else:
                values.append(from_bits(int.from_bytes(payload[at : at + 8], "little"), kind))
                at += 8
        return values


def _to_arrow(words: Array, kind: CaptureType) -> pa.Array:
    """Values out of the words that they are kept in."""
    kept = _ARROW[kind].to_pandas_dtype()
    if is_float(kind):
        words = words.astype(f"<u{SIZES[kind]}").view(kept)
    return pa.array(words.astype(kept), _ARROW[kind])
