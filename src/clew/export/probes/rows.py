"""Events one by one, as Python has them, in the order of time over all threads.

Pure. For writers that write a line an event.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa

from clew.export.probes.event_types import PLACE, EventBatch, EventType, Loss

__all__ = ["Event", "TimeOrder", "list_by_thread"]

_N_PLACE: Final = len(PLACE)


class Event(NamedTuple):
    """An event. `values` are those of its type's contexts and fields; None is missing."""

    time_ns: int
    sequence: int
    pid: int
    tid: int
    comm: bytes
    cpu: int | None
    type: EventType
    values: tuple[Any, ...]

    @property
    def contexts(self) -> tuple[Any, ...]:
        """The values of the contexts."""
        return self.values[: len(self.type.contexts)]

    @property
    def fields(self) -> tuple[Any, ...]:
        """The values of the fields."""
        return self.values[len(self.type.contexts) :]


def list_by_thread(batch: EventBatch) -> list[Event]:
    """The events of a batch, thread by thread, each thread's in their order; times rise there, whatever was told.

    Raises ValueError if a table is not of its type.
    """
    found: list[Event] = []
    for event_type, table in batch.tables:
        event_type.check(table)
        found += _iter_events(event_type, table)
    found.sort(key=lambda one: (one.pid, one.tid, one.sequence))
    for index, (one, other) in enumerate(pairwise(found), 1):
        before = found[index - 1].time_ns
        if other.time_ns < before and (one.pid, one.tid) == (other.pid, other.tid):
            found[index] = other._replace(time_ns=before)
    return found


class TimeOrder:
    """Brings batches in order. What is behind a batch's `until_ns` waits, as threads may still tell of what was before
    it; where that is not told nothing waits, and order is within a batch only."""

    def __init__(self) -> None:
        self._waiting: list[Event | Loss] = []

    def add(self, batch: EventBatch) -> list[Event | Loss]:
        """What is now known to be next. Raises ValueError if a table is not of its type."""
        # Sorting keeps what is of one time as it is: a thread's events, and losses behind them.
        found: list[Event | Loss] = [*self._waiting, *list_by_thread(batch), *batch.losses]
        found.sort(key=lambda one: one.time_ns)
        n = len(found)
        if batch.until_ns is not None:
            n = bisect_left(found, batch.until_ns, key=lambda one: one.time_ns)
        self._waiting = found[n:]
        return found[:n]

    def close(self) -> list[Event | Loss]:
        """What still waits."""
        waiting, self._waiting = self._waiting, []
        return waiting


def _iter_events(event_type: EventType, table: pa.Table) -> Iterator[Event]:
    columns = [column.to_pylist() for column in table.columns]
    places, values = columns[:_N_PLACE], columns[_N_PLACE:]
    rows = zip(*values, strict=True) if values else [()] * table.num_rows
    for (time_ns, sequence, pid, tid, comm, cpu), own in zip(zip(*places, strict=True), rows, strict=True):
        yield Event(time_ns, sequence, pid, tid, comm, cpu, event_type, own)
