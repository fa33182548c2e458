"""Writes a trace: tables as Parquet parts, then the manifest, each published by a rename.

Runs in the controller. A directory without a manifest is no trace, so one that was cut off is never taken for whole.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from clew.dataclass import replace
from clew.store.manifest import Manifest
from clew.store.names import MANIFEST_NAME
from clew.store.row_groups import iter_row_groups
from clew.store.schema import OPTIONAL_TABLES, SCHEMAS

try:
    # pyarrow.parquet only hands on to it what is said here, but brings all that can open files elsewhere, TLS among it:
    # that is a third of what importing pyarrow takes.
    from pyarrow._parquet import ParquetWriter
except ImportError:
    from pyarrow.parquet import ParquetWriter

__all__ = ["PART_ROWS", "TraceWriter", "publish", "save_names", "write_part", "write_rows"]

PART_ROWS: Final = 1 << 18

_DICTIONARY_COLUMNS: Final = (
    *("process_id", "pid", "tid", "image_id", "code_version"),
    *("symbol", "exit_kind", "kind", "end", "name", "path", "library", "error", "role"),
)
_DELTA_COLUMNS: Final = {
    "blocks": ("block_id", "offset", "app_pc", "first_ns", "function_offset", "symbol_offset"),
    "edges": ("edge_id", "source_block_id", "target_block_id", "callee_block_id"),
    "counts": ("block_id", "edge_id", "executions"),
    "tags": ("tag", "block_id", "target_block_id", "executions", "value", "time_ns"),
    "calls": ("call_id", "time_ns", "block_id", "position"),
    "references": ("call_id", "entity_id"),
}
_STATISTICS_COLUMNS: Final = (
    *("process_id", "pid", "tid", "image_id", "block_id", "edge_id", "time_ns", "call_id", "entity_id"),
)
"""Columns whose least and greatest value each row group tells, so that queries pass over those of other processes."""


class TraceWriter:
    """Writes one trace into `directory`, which exists. `write` any number of tables, then `finish` once.

    Raises OSError as the operating system gives it; what was published until then stays, until it is discarded.
    """

    def __init__(self, directory: Path, part_rows: int = PART_ROWS) -> None:
        """`part_rows`: tables are kept in memory until they have so many rows, and then written as one part."""
        self._directory = directory
        self._part_rows = part_rows
        self._waiting: dict[str, list[pa.Table]] = {}
        self._waiting_rows: dict[str, int] = {}
        self._tables: dict[str, dict[str, Any]] = {name: {"rows": 0, "parts": []} for name in SCHEMAS}

    @property
    def directory(self) -> Path:
        """The trace's."""
        return self._directory

    def write(self, name: str, table: pa.Table) -> None:
        """Append `table`, rows of one process, to the table `name`.

        Small ones are kept until together they make a part worth its file.
        """
        self._waiting.setdefault(name, []).append(table)
        self._waiting_rows[name] = self._waiting_rows.get(name, 0) + table.num_rows
        if self._waiting_rows[name] >= self._part_rows:
            self._write_part(name)

    def _write_part(self, name: str) -> None:
        self._waiting_rows.pop(name, None)
        tables = self._waiting.pop(name, None) or [SCHEMAS[name].empty_table()]
        parts = self._tables[name]["parts"]
        part = Path(name) / f"part-{len(parts):05}.parquet"
        path = self._directory / part
        path.parent.mkdir(exist_ok=True)
        write_part(path, name, tables)
        parts.append(part.as_posix())
        self._tables[name]["rows"] += sum(table.num_rows for table in tables)

    def finish(self, manifest: Manifest) -> None:
        """Publish `manifest` with the tables written; the trace is whole then."""
        for name in SCHEMAS:
            is_needed = not self._tables[name]["parts"] and name not in OPTIONAL_TABLES
            if name in self._waiting or is_needed:
                self._write_part(name)
        tables = {name: table for name, table in self._tables.items() if table["parts"]}
        text = replace(manifest, tables=tables).to_json()
        with publish(self._directory / MANIFEST_NAME) as file:
            file.write(text.encode())

    def discard(self) -> None:
        """Remove what was published, as far as that is possible: it is not to become a trace."""
        with contextlib.suppress(OSError):
            (self._directory / MANIFEST_NAME).unlink(missing_ok=True)
        for name in SCHEMAS:
            for part in self._tables[name]["parts"]:
                (self._directory / part).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                (self._directory / name).rmdir()


def write_part(path: Path, name: str, tables: list[pa.Table], *, is_safe: bool = False) -> None:
    """Write a part of the table `name` by rename; `is_safe`: so that it is on the disk before. Raises OSError."""
    with publish(path, is_safe=is_safe) as file:
        write_rows(file, name, tables)


def write_rows(file: BinaryIO | pa.NativeFile, name: str, tables: list[pa.Table]) -> None:
    """Write rows of the table `name` as a file of Parquet. Raises OSError."""
    schema = SCHEMAS[name]
    options = {
        "version": "2.6",
        "writer_engine_version": "V2",
        "data_page_version": "1.0",
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [column for column in schema.names if column in _DICTIONARY_COLUMNS],
        "column_encoding": dict.fromkeys(_DELTA_COLUMNS.get(name, ()), "DELTA_BINARY_PACKED") or None,
        "write_statistics": [column for column in schema.names if column in _STATISTICS_COLUMNS],
    }
    with contextlib.closing(ParquetWriter(file, schema, **options)) as writer:
        for group in iter_row_groups(tables):
            writer.write_table(group, row_group_size=group.num_rows)


@contextlib.contextmanager
def publish(path: Path, *, is_safe: bool = False) -> Iterator[BinaryIO]:
    """A file to write that becomes `path` when all of it is there; `is_safe`: on the disk."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with open(unfinished, "wb") as file:
            yield file
            if is_safe:
                file.flush()
                os.fsync(file.fileno())
        os.replace(unfinished, path)
        if is_safe:
            save_names(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def save_names(directory: Path) -> None:
    """Have the names of the files in a directory on the disk. Raises OSError."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
