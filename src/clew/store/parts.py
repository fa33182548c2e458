"""The files of one table of a trace, read whole or by row groups.

Runs in the controller. What is not as the schema and the manifest say is damage. The least and the greatest value that
a row group tells of itself are believed where they spare reading it, as every reader of Parquet does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clew.dataclass import dataclass
from clew.errors import TraceDamagedError
from clew.store.columns import Array, distinct, to_numpy
from clew.store.rows import RowRanges
from clew.store.schema import LATER_COLUMNS, SCHEMAS

__all__ = ["RowGroup", "TableParts"]


@dataclass(frozen=True)
class RowGroup:
    """A row group: the `index`-th of the file `part`. Its first row is the `first_row`-th of the table."""

    part: str
    index: int
    first_row: int
    n_rows: int


class TableParts:
    """The table `name` of the trace in `directory`; `described` is what the manifest says of it.

    Every method raises TraceDamagedError where a file is not as it should be.
    """

    def __init__(
        self, directory: Path, name: str, described: Mapping[str, Any], stands_for: Mapping[str, str] | None = None
    ) -> None:
        """`stands_for`: by name, what stands for a column that came later where a file has none (LATER_COLUMNS), if
        that is not null."""
        self.name = name
        self.n_rows: int = described["rows"]
        self._directory = directory
        self.paths: list[str] = described["parts"]
        """Of its files, relative to the trace."""
        self.stands_for = stands_for or {}
        self._footers: dict[str, pq.FileMetaData] = {}

    def read(self, columns: Sequence[str]) -> pa.Table:
        """All rows of `columns`."""
        found = []
        for part in self.paths:
            with self._open(part) as file:
                found.append(self._select(file, part, columns, None))
        table = self.join(found, columns)
        self._check_rows(table.num_rows)
        return table.combine_chunks()

    @cached_property
    def groups(self) -> list[RowGroup]:
        """The row groups of all files, in the order of their rows."""
        groups = []
        first_row = 0
        for part in self.paths:
            with self._open(part) as file:
                for index in range(file.metadata.num_row_groups):
                    n_rows = file.metadata.row_group(index).num_rows
                    groups.append(RowGroup(part, index, first_row, n_rows))
                    first_row += n_rows
        self._check_rows(first_row)
        return groups

    @cached_property
    def _borders(self) -> Array:
        return np.array([group.first_row for group in self.groups], np.int64)

    def find_groups(self, ranges: RowRanges) -> list[RowGroup]:
        """The row groups that have some of the rows `ranges`, in order."""
        borders = self._borders
        # Of each range the row groups of its first and its last row.
        first = np.searchsorted(borders, ranges.first, "right") - 1
        last = np.searchsorted(borders, ranges.last - 1, "right") - 1
        n_groups = last - first + 1
        which = np.repeat(first - (np.cumsum(n_groups) - n_groups), n_groups) + np.arange(n_groups.sum())
        return [self.groups[index] for index in dict.fromkeys(which.tolist())]

    def read_group(self, group: RowGroup, columns: Sequence[str]) -> pa.Table:
        """The rows of one row group, of `columns`."""
        with self._open(group.part) as file:
            table = self._select(file, group.part, columns, group.index)
        if table.num_rows != group.n_rows:
            raise TraceDamagedError(self._directory, f"{group.part} is damaged or truncated (rows are missing)")
        return self.join([table], columns)

    def find_rows(self, column: str, value: int) -> RowRanges:
        """The rows with `value` in a column of integers; row groups that tell that they have none are not read."""
        first, last = [], []
        for group in self.groups:
            told = self._find_bounds(group, column)
            if told == (value, value, 0):
                first.append(np.array([group.first_row]))
                last.append(np.array([group.first_row + group.n_rows]))
            elif told is None or told[0] <= value <= told[1]:
                is_held = to_numpy(self.read_group(group, [column])[column]) == value
                borders = np.flatnonzero(np.diff(is_held, prepend=False, append=False)) + group.first_row
                first.append(borders[::2])
                last.append(borders[1::2])
        return RowRanges.join(first, last)

    def find_first(self, column: str, values: Iterable[int]) -> dict[int, int]:
        """By value, of a few in a column of integers, the first row that has it; those that no row has are left out."""
        rows: dict[int, int] = {}
        wanted = distinct(np.array(list(values), np.int64))
        for group in self.groups:
            wanted = wanted[[value not in rows for value in wanted.tolist()]]
            if len(wanted) and self._may_hold(group, column, int(wanted[0]), int(wanted[-1])):
                held = to_numpy(self.read_group(group, [column])[column])
                for row in np.flatnonzero(np.isin(held, wanted))[::-1].tolist():
                    rows[int(held[row])] = group.first_row + row
        return rows

    def _may_hold(self, group: RowGroup, column: str, first: int, last: int) -> bool:
        """Whether a row of `group` may have a value from `first` to `last`, as far as it tells without being read."""
        told = self._find_bounds(group, column)
        return told is None or (told[0] <= last and told[1] >= first)

    def _find_bounds(self, group: RowGroup, column: str) -> tuple[int, int, int | None] | None:
        """The least and the greatest value of a column of integers, and how many are null if it says that, as far as
        `group` tells without being read."""
        with self._open(group.part) as file:
            of_group = file.metadata.row_group(group.index)
            for index in range(of_group.num_columns):
                if of_group.column(index).path_in_schema == column:
                    told = of_group.column(index).statistics
                    least, greatest = (told.min, told.max) if told is not None and told.has_min_max else (None, None)
                    if isinstance(least, int) and isinstance(greatest, int):
                        return least, greatest, told.null_count if told.has_null_count else None
        return None

    def join(self, tables: Sequence[pa.Table], columns: Sequence[str]) -> pa.Table:
        """`tables` of `columns`, one after the other, with the types of the schema."""
        schema = SCHEMAS[self.name]
        wanted = pa.schema([schema.field(name) for name in columns])
        try:
            found = pa.concat_tables(tables) if tables else wanted.empty_table()
            return found if found.schema.types == wanted.types else found.cast(wanted)
        except (pa.ArrowException, ValueError) as error:
            raise TraceDamagedError(self._directory, f"table {self.name} has columns that can't be joined") from error

    @contextmanager
    def _open(self, part: str) -> Iterator[pq.ParquetFile]:
        try:
            path = self._directory / part
            if not path.is_file():
                raise TraceDamagedError(self._directory, f"{part} is missing")
            with pq.ParquetFile(path, metadata=self._footers.get(part)) as file:
                self._footers[part] = file.metadata
                yield file
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TraceDamagedError(self._directory, f"{part} is damaged or truncated ({reason})") from error

    def _select(self, file: pq.ParquetFile, part: str, columns: Sequence[str], group: int | None) -> pa.Table:
        # The first traces of this format knew no program but a process' first one.
        later = [
            name
            for name in columns
            if (self.name, name) in LATER_COLUMNS and file.schema_arrow.get_field_index(name) < 0
        ]
        stored = {
            name: "pid" if name == "process_id" and file.schema_arrow.get_field_index(name) < 0 else name
            for name in columns
            if name not in later
        }
        self._check_columns(file.schema_arrow, part, list(stored.values()))
        names = list(dict.fromkeys(stored.values()))
        table = file.read(names) if group is None else file.read_row_group(group, names)
        found = {name: table[other] for name, other in stored.items()}
        for name in later:
            word, kind = self.stands_for.get(name), SCHEMAS[self.name].field(name).type
            found[name] = pa.nulls(table.num_rows, kind) if word is None else pa.repeat(word, table.num_rows)
        return pa.Table.from_arrays([found[name] for name in columns], list(columns))

    def _check_columns(self, found: pa.Schema, part: str, names: Sequence[str]) -> None:
        for name in names:
            index = found.get_field_index(name)
            if index < 0:
                raise TraceDamagedError(self._directory, f"{part} has no column {name}")
            if not _is_same_type(found.field(index).type, SCHEMAS[self.name].field(name).type):
                raise TraceDamagedError(self._directory, f"{part}: column {name} has type {found.field(index).type}")

    def _check_rows(self, n_rows: int) -> None:
        if n_rows != self.n_rows:
            raise TraceDamagedError(
                self._directory, f"table {self.name} has {n_rows} rows, the manifest says {self.n_rows}"
            )


def _is_same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found) and pa.types.is_dictionary(wanted):
        return bool(found.value_type == wanted.value_type)
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return bool(found.value_type == wanted.value_type)
    return bool(found == wanted)
