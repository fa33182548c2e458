"""A table of which some rows are in no file of the trace: they are kept in memory, packed as a file of them would be.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from clew.store.parts import TableParts
from clew.store.writer import write_rows

__all__ = ["HeldParts"]

_HELD: Final = "(in memory)"
"""No part has that path: there is nothing behind it."""


class HeldParts(TableParts):
    """The rows of `files`, if any, and behind them those of `tables`, each of which is about one process."""

    def __init__(self, directory: Path, name: str, tables: Sequence[pa.Table], files: TableParts | None) -> None:
        n_rows = sum(table.num_rows for table in tables)
        self._held: pa.Buffer | None = None
        parts = [] if files is None else [*files.paths]
        if n_rows:
            output = pa.BufferOutputStream()
            write_rows(output, name, [*tables])
            self._held = output.getvalue()
            parts.append(_HELD)
        described = {"rows": n_rows + (0 if files is None else files.n_rows), "parts": parts}
        super().__init__(directory, name, described, None if files is None else files.stands_for)

    @contextmanager
    def _open(self, part: str) -> Iterator[pq.ParquetFile]:
        if part == _HELD and self._held is not None:
            with pq.ParquetFile(pa.BufferReader(self._held)) as file:
                yield file
        else:
            with super()._open(part) as file:
                yield file
