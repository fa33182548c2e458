"""Some rows of a trace, as a trace of their own.

Runs in the controller. Which rows belong together is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from clew.store.columns import Array, numbers
from clew.store.rows import RowRanges
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace

__all__ = ["Excerpt", "excerpt_of_pid", "excerpt_of_process"]


class Excerpt(Trace):
    """The rows `ranges` of the tables of `whole`, with its manifest. Numbers of rows count within the excerpt.

    Only the row groups that hold some of them are read. Raises TraceDamagedError when a table is read.
    """

    def __init__(self, whole: Trace, ranges: Mapping[str, RowRanges]) -> None:
        # Not as `Trace` does: the manifest is there already, and so are the footers of the files.
        self.directory = whole.directory
        self._manifest = whole.manifest
        self._parts = {table: whole.parts(table) for table in SCHEMAS}
        self._whole = whole
        self._ranges = ranges

    def __repr__(self) -> str:
        return f"Excerpt({str(self.directory)!r})"

    def n_rows(self, table: str) -> int:
        """How many rows of a table are in the excerpt."""
        return len(self._ranges[table])

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a table that are in the excerpt, or only `columns` of them."""
        names = list(SCHEMAS[table].names if columns is None else columns)
        return self._parts[table].join(list(self.iter_pieces(table, names)), names).combine_chunks()

    def iter_pieces(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """`columns` of the rows that are in the excerpt, a row group at a time, in the order of the rows."""
        for group in self._parts[table].find_groups(self._ranges[table]):
            inside = self._ranges[table].within(group.first_row, group.first_row + group.n_rows)
            piece = self._parts[table].read_group(group, columns)
            first, last = int(inside.first[0]) - group.first_row, int(inside.last[-1]) - group.first_row
            # A slice keeps all of its row group in memory, so of a large one the rows are copied.
            if len(inside.first) == 1 and 2 * len(inside) > group.n_rows:
                yield piece.slice(first, last - first)
            else:
                yield piece.take(numbers(inside.rows() - group.first_row, pa.int64()))

    def read_rows(self, table: str, rows: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
        """What `columns` have in some rows, in the order of `rows`. Raises IndexError where there is no such row."""
        return self._whole.read_rows(table, self.whole_rows(table, np.array(rows, np.int64)).tolist(), columns)

    @property
    def whole(self) -> Trace:
        """The trace that this is an excerpt of."""
        return self._whole

    def whole_rows(self, table: str, rows: Array) -> Array:
        """The rows of the whole trace that rows of the excerpt are. -1 stays."""
        return self._ranges[table].locate(rows)


def excerpt_of_pid(trace: Trace, pid: int) -> Excerpt:
    """What is about the process `pid`, with all programs that it ran."""
    return Excerpt(trace, {table: trace.parts(table).find_rows("pid", pid) for table in SCHEMAS})


def excerpt_of_process(trace: Trace, process_id: int) -> Excerpt:
    """What is about one row of `processes`: a program that a process ran."""
    return Excerpt(trace, {table: trace.parts(table).find_rows("process_id", process_id) for table in SCHEMAS})
