"""Adds tables to a trace that is whole already: what was found out besides, while it was recorded or later.

Runs in the controller. Parts are there before the manifest names them, which is replaced by a rename.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa

from clew.dataclass import replace
from clew.errors import UsageError
from clew.store.manifest import read_manifest
from clew.store.names import MANIFEST_NAME
from clew.store.schema import OPTIONAL_TABLES
from clew.store.writer import publish, write_part

__all__ = ["append_tables"]

_PART_ROWS: Final = 1 << 18


def append_tables(directory: Path, tables: dict[str, pa.Table]) -> None:
    """Give the trace in `directory` tables that it lacks. Raises OSError, ClewError, UsageError where it has one."""
    manifest = read_manifest(directory)
    told = dict(manifest.tables)
    for name, table in tables.items():
        if name not in OPTIONAL_TABLES or told[name]["parts"]:
            raise UsageError(f"the trace has a table {name} already")
        parts: list[str] = []
        (directory / name).mkdir(exist_ok=True)
        for start in range(0, table.num_rows, _PART_ROWS):
            part = f"{name}/part-{len(parts):05}.parquet"
            write_part(directory / part, name, [table.slice(start, _PART_ROWS)])
            parts.append(part)
        told[name] = {"rows": table.num_rows, "parts": parts}
    named = {name: table for name, table in told.items() if table["parts"]}
    with publish(directory / MANIFEST_NAME) as file:
        file.write(replace(manifest, tables=named).to_json().encode())
