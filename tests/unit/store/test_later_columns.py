"""Columns that came within the format's version: what traces of before have in their place."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from clew.store.trace import Trace
from tests.unit.calls import add_calls
from tests.unit.small_trace import small_trace, write_trace


def test_a_trace_of_before_says_nothing_of_injections(tmp_path: Path) -> None:
    rows = add_calls(small_trace())
    rows["calls"][1]["injected"] = "result"
    write_trace(rows, tmp_path / "t.clew")
    trace = Trace(tmp_path / "t.clew")
    table = trace.read("calls", ["injected", "name"])
    assert table["injected"].to_pylist() == [None, "result", None, None, None]
    for part in trace.manifest.tables["calls"]["parts"]:
        path = tmp_path / "t.clew" / part
        pq.write_table(pq.read_table(path).drop_columns(["injected"]), path)
    before = Trace(tmp_path / "t.clew")
    found = before.read("calls", ["injected", "name"])
    assert found["injected"].null_count == 5
    assert found.schema == table.schema
