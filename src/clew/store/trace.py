"""A trace, opened for reading.

Runs in the controller. A trace may come from anywhere: what is not as the schema says is reported as damage, never
believed. What the numbers mean is `clew.analysis`'.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.known import KNOWN, architecture_named
from clew.store.columns import Array
from clew.store.manifest import Manifest, read_manifest
from clew.store.parts import TableParts
from clew.store.schema import SCHEMAS

__all__ = ["Trace"]


class Trace:
    """A finished trace. Its tables are Arrow tables with the columns of `clew.store.schema`, read when first used.

    Raises NotATraceError, TraceUnfinishedError, TraceVersionError or TraceDamagedError when it is opened, and
    TraceDamagedError when a table is read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.directory = Path(path)
        self._manifest = read_manifest(self.directory)
        machine = self._manifest.machine.get("architecture")
        stands_for = {"architecture": machine if isinstance(machine, str) else KNOWN[0].name}
        self._parts = {
            name: TableParts(self.directory, name, self._manifest.tables[name], stands_for) for name in SCHEMAS
        }

    def __repr__(self) -> str:
        return f"Trace({str(self.directory)!r})"

    @property
    def manifest(self) -> Manifest:
        """What was recorded, how it ended, and what was lost."""
        return self._manifest

    @property
    def mode(self) -> str:
        """What was recorded: coverage, counts, region or full."""
        return self._manifest.mode

    @cached_property
    def processes(self) -> pa.Table:
        """One row per process."""
        return self.read("processes")

    def architecture_of(self, process_id: int) -> Architecture:
        """The architecture of a process' code; one of which nothing is known, where the trace has no such process."""
        return architecture_named(self._architectures.get(process_id, ""))

    @cached_property
    def _architectures(self) -> dict[int, str]:
        rows = self.read("processes", ["process_id", "architecture"])
        return dict(zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True))

    @cached_property
    def threads(self) -> pa.Table:
        """One row per thread, with its totals."""
        return self.read("threads")

    @cached_property
    def images(self) -> pa.Table:
        """One row per loaded file and process."""
        return self.read("images")

    @cached_property
    def blocks(self) -> pa.Table:
        """One row per basic block."""
        return self.read("blocks")

    @cached_property
    def edges(self) -> pa.Table:
        """One row per edge between basic blocks."""
        return self.read("edges")

    @cached_property
    def counts(self) -> pa.Table:
        """How often each thread ran each block and took each edge; empty in mode coverage."""
        return self.read("counts")

    @cached_property
    def tags(self) -> pa.Table:
        """What each thread did, in order, thinned by activity; empty but in mode region."""
        return self.read("tags")

    @cached_property
    def events(self) -> pa.Table:
        """Signals, faults, and what else happened."""
        return self.read("events")

    @cached_property
    def paths(self) -> pa.Table:
        """One row per thread whose order of execution was recorded; empty but in mode full."""
        return self.read("paths")

    @cached_property
    def entities(self) -> pa.Table:
        """Processes, threads, files and sockets that recorded calls are about; may be empty."""
        return self.read("entities")

    @cached_property
    def calls(self) -> pa.Table:
        """Recorded calls of libraries and of the system; may be empty."""
        return self.read("calls")

    @cached_property
    def references(self) -> pa.Table:
        """What each recorded call did with which entity; may be empty."""
        return self.read("references")

    def parts(self, table: str) -> TableParts:
        """The files of a table."""
        return self._parts[table]

    def n_rows(self, table: str) -> int:
        """How many rows a table has."""
        return self._parts[table].n_rows

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table of the trace, or only `columns` of it."""
        return self._parts[table].read(SCHEMAS[table].names if columns is None else columns)

    def iter_pieces(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """`columns` of a table, a row group at a time, in the order of the rows."""
        for group in self._parts[table].groups:
            yield self._parts[table].read_group(group, columns)

    def read_rows(self, table: str, rows: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
        """What `columns` have in some rows, in the order of `rows`. Raises IndexError where there is no such row."""
        wanted = sorted(set(rows))
        if wanted and not 0 <= wanted[0] <= wanted[-1] < self.n_rows(table):
            raise IndexError(f"table {table} has no rows {wanted[0]} to {wanted[-1]}")
        found: dict[int, dict[str, Any]] = {}
        for group in self._parts[table].groups:
            inside = wanted[bisect_left(wanted, group.first_row) : bisect_left(wanted, group.first_row + group.n_rows)]
            if inside:
                piece = self._parts[table].read_group(group, columns)
                for row in inside:
                    found[row] = {name: piece[name][row - group.first_row].as_py() for name in columns}
        return [found[row] for row in rows]

    def find_first(self, table: str, column: str, values: Iterable[int]) -> dict[int, int]:
        """By value, of a few in a column of integers, the first row that has it; those that no row has are left out."""
        return self._parts[table].find_first(column, values)

    @property
    def whole(self) -> Trace:
        """The trace that this is an excerpt of, or itself."""
        return self

    def whole_rows(self, table: str, rows: Array) -> Array:
        """The rows of the whole trace that rows of this are: of a whole trace they themselves. -1 stays."""
        return rows
