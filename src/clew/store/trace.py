"""A trace, opened for reading.

Runs in the controller. A trace may come from anywhere: what is not as the schema says is reported as damage, never
believed. What the numbers mean is `clew.analysis`'.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clew.errors import TraceDamagedError
from clew.store.manifest import Manifest, read_manifest
from clew.store.schema import SCHEMAS

__all__ = ["Trace"]


class Trace:
    """A finished trace. Its tables are Arrow tables with the columns of `clew.store.schema`, read when first used.

    Raises NotATraceError, TraceUnfinishedError, TraceVersionError or TraceDamagedError when it is opened, and
    TraceDamagedError when a table is read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._manifest = read_manifest(self.path)

    def __repr__(self) -> str:
        return f"Trace({str(self.path)!r})"

    @property
    def manifest(self) -> Manifest:
        """What was recorded, how it ended, and what was lost."""
        return self._manifest

    @property
    def mode(self) -> str:
        """The recorder: coverage, counts."""
        return self._manifest.mode

    @cached_property
    def processes(self) -> pa.Table:
        """One row per process."""
        return self.read("processes")

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
    def events(self) -> pa.Table:
        """Signals, faults, and what else happened."""
        return self.read("events")

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table of the trace, or only `columns` of it."""
        schema = SCHEMAS[table]
        names = list(schema.names if columns is None else columns)
        described = self._manifest.tables[table]
        parts = []
        for part in described["parts"]:
            try:
                path = self.path / part
                if not path.is_file():
                    raise TraceDamagedError(self.path, f"{part} is missing")
                with pq.ParquetFile(path) as file:
                    parts.append(self._read_part(file, schema, part, names))
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise TraceDamagedError(self.path, f"{part} is damaged or truncated ({reason})") from error
        wanted = pa.schema([schema.field(name) for name in names])
        try:
            found = pa.concat_tables(parts) if parts else wanted.empty_table()
            if found.schema.types != wanted.types:
                found = found.cast(wanted)
        except (pa.ArrowException, ValueError) as error:
            raise TraceDamagedError(self.path, f"table {table} has columns that can't be joined") from error
        if found.num_rows != described["rows"]:
            raise TraceDamagedError(
                self.path, f"table {table} has {found.num_rows} rows, the manifest says {described['rows']}"
            )
        return found.combine_chunks()

    def _read_part(self, file: pq.ParquetFile, schema: pa.Schema, part: str, names: Sequence[str]) -> pa.Table:
        # The first traces of this format knew no program but a process' first one.
        named = {
            name: "pid" if name == "process_id" and file.schema_arrow.get_field_index(name) < 0 else name
            for name in names
        }
        self._check_columns(file.schema_arrow, schema, part, list(named.values()))
        table = file.read(list(dict.fromkeys(named.values())))
        return pa.Table.from_arrays([table[stored] for stored in named.values()], list(named))

    def _check_columns(self, found: pa.Schema, schema: pa.Schema, part: str, names: Sequence[str]) -> None:
        for name in names:
            index = found.get_field_index(name)
            if index < 0:
                raise TraceDamagedError(self.path, f"{part} has no column {name}")
            if not _is_same_type(found.field(index).type, schema.field(name).type):
                raise TraceDamagedError(self.path, f"{part}: column {name} has type {found.field(index).type}")


def _is_same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found) and pa.types.is_dictionary(wanted):
        return bool(found.value_type == wanted.value_type)
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return bool(found.value_type == wanted.value_type)
    return bool(found == wanted)
