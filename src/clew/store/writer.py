"""Writes a trace: tables as Parquet parts, then the manifest, each published by a rename.

Runs in the controller. A directory without a manifest is no trace, so one that was cut off is never taken for whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from clew.store.manifest import MANIFEST_NAME, Manifest
from clew.store.schema import SCHEMAS

__all__ = ["TraceWriter"]

PART_ROWS: Final = 1 << 18

_DICTIONARY_COLUMNS: Final = ("symbol", "exit_kind", "kind", "end", "pid", "tid", "image_id", "name", "path")
_DELTA_COLUMNS: Final = {
    "blocks": ("block_id", "offset", "app_pc", "first_ns", "function_offset", "symbol_offset"),
    "edges": ("edge_id", "source_block_id", "target_block_id", "callee_block_id"),
    "counts": ("block_id", "edge_id", "executions"),
}


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

    def write(self, name: str, table: pa.Table) -> None:
        """Append `table` to the table `name`. Small ones are kept until together they make a part worth its file."""
        self._waiting.setdefault(name, []).append(table)
        self._waiting_rows[name] = self._waiting_rows.get(name, 0) + table.num_rows
        if self._waiting_rows[name] >= self._part_rows:
            self._write_part(name)

    def _write_part(self, name: str) -> None:
        self._waiting_rows.pop(name, None)
        tables = self._waiting.pop(name, None) or [SCHEMAS[name].empty_table()]
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()
        parts = self._tables[name]["parts"]
        part = Path(name) / f"part-{len(parts):05}.parquet"
        path = self._directory / part
        path.parent.mkdir(exist_ok=True)
        delta = list(_DELTA_COLUMNS.get(name, ()))
        with self._publish(path) as file:
            pq.write_table(
                table,
                file,
                compression="zstd",
                compression_level=1,
                use_dictionary=[column for column in table.column_names if column in _DICTIONARY_COLUMNS],
                column_encoding=dict.fromkeys(delta, "DELTA_BINARY_PACKED") or None,
                write_statistics=["pid", "tid"],
            )
        parts.append(part.as_posix())
        self._tables[name]["rows"] += table.num_rows

    def finish(self, manifest: Manifest) -> None:
        """Publish `manifest` with the tables written; the trace is whole then."""
        for name in SCHEMAS:
            if name in self._waiting or not self._tables[name]["parts"]:
                self._write_part(name)
        text = dataclasses.replace(manifest, tables=self._tables).to_json()
        with self._publish(self._directory / MANIFEST_NAME) as file:
            file.write(text.encode())

    def discard(self) -> None:
        """Remove what was published, as far as that is possible: it is not to become a trace."""
        with contextlib.suppress(OSError):
            (self._directory / MANIFEST_NAME).unlink(missing_ok=True)
        for name in SCHEMAS:
            shutil.rmtree(self._directory / name, ignore_errors=True)

    @contextlib.contextmanager
    def _publish(self, path: Path) -> Any:
        """A file to write that becomes `path` when all of it is there."""
        unfinished = path.with_name(f".{path.name}.unfinished")
        try:
            with open(unfinished, "wb") as file:
                yield file
            os.replace(unfinished, path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
