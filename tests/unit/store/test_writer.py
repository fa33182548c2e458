"""How parts of tables are written: as pyarrow.parquet would, without what else that brings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.store import writer
from clew.store.schema import SCHEMAS


def _edges(n: int) -> pa.Table:
    rows = [
        {
            "edge_id": at,
            "process_id": 0,
            "pid": 7,
            "source_block_id": at or None,
            "target_block_id": at + 1,
            "kind": "call" if at % 3 else "jump",
            "callee_block_id": None,
        }
        for at in range(n)
    ]
    return pa.Table.from_pylist(rows, SCHEMAS["edges"])


@pytest.mark.parametrize("n_rows", [0, 5, 5000])
def test_parts_are_as_pyarrow_writes_them(n_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.write_part(tmp_path / "own", "edges", [_edges(n_rows)])
    monkeypatch.setattr(writer, "ParquetWriter", pq.ParquetWriter)
    writer.write_part(tmp_path / "public", "edges", [_edges(n_rows)])
    assert (tmp_path / "own").read_bytes() == (tmp_path / "public").read_bytes()
    assert pq.read_table(tmp_path / "own").num_rows == n_rows


def test_nothing_that_opens_files_elsewhere_is_imported() -> None:
    program = "import sys, clew.store.writer; print(*{'ssl', 'pyarrow.fs', 'pyarrow.parquet'} & sys.modules.keys())"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split() == []
