"""The signals and faults of a process that took very many: they stay in the journal until they become rows.

Runs in the controller, after the target ended. What they mean is not known here. Records come from the target and are
untrusted: where time stamps go backwards rows come out of order, and nothing worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import EVENT_RECORD, RECORD_BYTES, EventKind, RecordKind
from clew.recording.raw.records import iter_records

if TYPE_CHECKING:
    from clew.recording.journal.frames import Frame

__all__ = ["EventChunks", "are_many", "without_events"]

Array = npt.NDArray[Any]

MANY_BYTES: Final = 4 << 20
"""Processes with less in the journal are read whole."""
_PIECE_RECORDS: Final = 1 << 14
"""So many records of a thread are looked at together: all that a frame has, as a rule."""


def are_many(streams: Iterable[Sequence[Frame]]) -> bool:
    """Whether the threads whose records are in `streams` may have told of so much that it is not held at once."""
    return sum(len(frame.payload) for frames in streams for frame in frames) > MANY_BYTES


def without_events(parts: Iterable[Array]) -> Iterator[Array]:
    """Records, shape (n, RECORD_BYTES), without those that `EventChunks` gives; copied."""
    for records in parts:
        yield records[~_is_chunked(records)]


class EventChunks:
    """The signals and faults of threads, of each the frames with its records."""

    def __init__(self, streams: Sequence[Sequence[Frame]]) -> None:
        self._streams = streams

    def iter_with(self, others: Array) -> Iterator[Array]:
        """All of them and `others`, rows of EVENT_RECORD, by time, some at a time."""
        left = [_iter_events(frames) for frames in self._streams]
        left.append(iter([_by_time(others)] if len(others) else []))
        # The rows of each that come next. Up to the earliest of their ends nothing else can come.
        heads = {index: head for index, one in enumerate(left) if (head := next(one, None)) is not None}
        while heads:
            until = min(head["tsc"][-1] for head in heads.values())
            parts = []
            for index, head in list(heads.items()):
                n = int(np.searchsorted(head["tsc"], until, "right"))
                parts.append(head[:n])
                rest = head[n:] if n < len(head) else next(left[index], None)
                if rest is None:
                    del heads[index]
                else:
                    heads[index] = rest
            yield _by_time(np.concatenate(parts) if len(parts) > 1 else parts[0])


def _iter_events(frames: Sequence[Frame]) -> Iterator[Array]:
    for frame in frames:
        for records in iter_records([frame]):
            for first in range(0, len(records), _PIECE_RECORDS):
                piece = records[first : first + _PIECE_RECORDS]
                is_chunked = _is_chunked(piece)
                chosen = piece if is_chunked.all() else piece[is_chunked]
                if len(chosen):
                    yield _by_time(chosen.reshape(-1).view(EVENT_RECORD))
        frame.let_go()


def _by_time(rows: Array) -> Array:
    """Rows of EVENT_RECORD by time; most are already."""
    tsc = rows["tsc"].copy()
    return rows if bool((tsc[1:] >= tsc[:-1]).all()) else rows[np.argsort(tsc, kind="stable")]


def _is_chunked(records: Array) -> Array:
    """Which of some records, shape (n, RECORD_BYTES), are signals or faults."""
    assert records.shape[1] == RECORD_BYTES
    rows = np.ascontiguousarray(records).reshape(-1).view(EVENT_RECORD)
    event_kind = rows["event_kind"]
    found: Array = (event_kind == EventKind.SIGNAL) | (event_kind == EventKind.FAULT)
    found &= rows["kind"] == RecordKind.EVENT
    return found
