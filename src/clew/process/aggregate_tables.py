"""Tables of aggregates in one region of the shared memory: what threads of its process have added up.

Runs in the controller. What is in a row is not known here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from clew.dataclass import dataclass
from clew.protocol._constants import AGGREGATE_HEAD_BYTES

if TYPE_CHECKING:
    from clew.process.table_shape import TableShape

__all__ = ["AggregateTables", "TableContent"]


@dataclass(frozen=True)
class TableContent:
    """The rows of a table that are not free, one behind the other, and how many executions found no room."""

    rows: bytes
    n_left_out: int


class AggregateTables:
    """Those of a process, in file `fd` from `start` on. `family` are the tables of it and of those that it forked, as
    long as they run."""

    def __init__(self, fd: int, start: int) -> None:
        self._fd, self._start = fd, start
        self._on_end: dict[TableShape, Callable[[AggregateTables], None]] = {}
        self.family = [self]
        self._data = (0, 0)
        """From some place on: where the next data is, as far as is known."""

    def add(self, shape: TableShape, on_end: Callable[[AggregateTables], None]) -> None:
        """Have a table, which is empty; `on_end` is told when the process is about to be forgotten."""
        self._on_end[shape] = on_end

    def inherit(self, parent: AggregateTables) -> None:
        """Have the tables that the parent of a process has that is about to be born: empty ones."""
        self._on_end |= parent._on_end
        self.family = parent.family
        self.family.append(self)

    def read(self, shape: TableShape) -> TableContent:
        """What a table has now; nothing, once it was let go of."""
        if shape not in self._on_end:
            return TableContent(b"", 0)
        return self._read(shape)

    def _read(self, shape: TableShape) -> TableContent:
        n_left_out = int.from_bytes(os.pread(self._fd, 8, self._start + shape.start), "little")
        return TableContent(b"".join(self._iter_rows(shape)), n_left_out)

    def _iter_rows(self, shape: TableShape) -> Iterator[bytes]:
        """Rows that are not free. What was never written is not read, which would take memory."""
        first = self._start + shape.start + AGGREGATE_HEAD_BYTES
        end, size_bytes = self._start + shape.start + shape.size_bytes, shape.row_bytes
        at = first
        while at < end:
            try:
                data = os.lseek(self._fd, at, os.SEEK_DATA)
            except OSError:
                return
            if data >= end:
                return
            hole = os.lseek(self._fd, data, os.SEEK_HOLE)
            start = max(at, first + (data - first) // size_bytes * size_bytes)
            at = min(end, first - (first - hole) // size_bytes * size_bytes)
            part = os.pread(self._fd, at - start, start)
            for place in range(0, len(part), size_bytes):
                if part[place]:
                    yield part[place : place + size_bytes]

    def let_go(self, shape: TableShape) -> None:
        """Have a table no more."""
        self._on_end.pop(shape, None)

    def end(self) -> None:
        """The memory is about to be given back."""
        # Of hundreds of tables a short process has written few.
        for shape, on_end in list(self._on_end.items()):
            start = self._start + shape.start
            if self._find_data(start) < start + shape.size_bytes:
                on_end(self)
        self._on_end.clear()
        self._data = (0, 0)
        if self in self.family:
            self.family.remove(self)

    def _find_data(self, at: int) -> int:
        """Where the next bytes are that were ever written, at some place or behind it."""
        start, data = self._data
        if not start <= at <= data:
            try:
                data = os.lseek(self._fd, at, os.SEEK_DATA)
            except OSError:
                data = sys.maxsize
            self._data = at, data
        return data
