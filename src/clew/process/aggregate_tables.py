"""Tables of aggregates in one region of the shared memory: what threads of its process have added up.

Runs in the controller. What is in a row is not known here. It can still be read when the process has ended.
"""

from __future__ import annotations

import mmap
from typing import Final

from clew.dataclass import dataclass
from clew.protocol._constants import (
    AGGREGATE_BUCKETS,
    AGGREGATE_HEAD_BYTES,
    AGGREGATE_PROBES,
    AGGREGATE_ROW_BYTES,
)

__all__ = ["AggregateTables", "TableShape"]

_LINE_BYTES: Final = 128


@dataclass(frozen=True)
class TableShape:
    """A table at `start` of the room for them: of `n_keys` keys in 2**`rows_log2` rows."""

    start: int
    n_keys: int
    rows_log2: int
    has_values: bool
    has_histograms: bool

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, with its histogram."""
        return _line_up(AGGREGATE_ROW_BYTES + 8 * AGGREGATE_BUCKETS * self.has_histograms)

    @property
    def size_bytes(self) -> int:
        """Bytes of all of it."""
        return AGGREGATE_HEAD_BYTES + ((1 << self.rows_log2) + AGGREGATE_PROBES) * self.row_bytes


@dataclass(frozen=True)
class TableContent:
    """The rows of a table that are not free, one behind the other, and how many executions found no room."""

    rows: bytes
    n_left_out: int


class AggregateTables:
    """Those in `memory` from `start` on. `family` are the tables of a process and of those that it forked."""

    def __init__(self, memory: mmap.mmap, start: int) -> None:
        self._memory, self._start = memory, start
        self._shapes: set[TableShape] = set()
        self._left: dict[TableShape, TableContent] | None = None
        self.family = [self]

    def add(self, shape: TableShape) -> None:
        """Have a table, which is empty."""
        self._shapes.add(shape)

    def inherit(self, parent: AggregateTables) -> None:
        """Have the tables that the parent of a process has that is about to be born: empty ones."""
        self._shapes |= parent._shapes
        self.family = parent.family
        self.family.append(self)

    def read(self, shape: TableShape) -> TableContent:
        """What a table has now, or had when the process ended."""
        if self._left is not None:
            return self._left.get(shape, TableContent(b"", 0))
        at = self._start + shape.start
        data = self._memory[at : at + shape.size_bytes]
        starts = range(AGGREGATE_HEAD_BYTES, shape.size_bytes, shape.row_bytes)
        rows = b"".join(data[start : start + shape.row_bytes] for start in starts if data[start])
        return TableContent(rows, int.from_bytes(data[:8], "little"))

    def clear(self, shape: TableShape) -> None:
        """Empty a table: no thread may be about to add to it."""
        if self._left is not None:
            self._left.pop(shape, None)
            return
        at = self._start + shape.start
        self._memory[at : at + shape.size_bytes] = bytes(shape.size_bytes)

    def keep(self) -> None:
        """Keep what is there: the memory is about to be given back."""
        if self._left is None:
            contents = {shape: self.read(shape) for shape in self._shapes}
            self._left = {shape: one for shape, one in contents.items() if one.rows or one.n_left_out}
            if not self._left:
                self.family.remove(self)


def _line_up(size_bytes: int) -> int:
    return -(-size_bytes // _LINE_BYTES) * _LINE_BYTES
