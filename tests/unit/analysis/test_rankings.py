"""Totals and rankings of a trace that is small enough to add up by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clew.analysis.arrays import TraceArrays
from clew.analysis.functions import FunctionTable
from clew.analysis.hottest import RANKINGS
from clew.analysis.totals import summarize_trace
from tests.unit.small_trace import MakeTrace, Rows


@pytest.fixture
def arrays(make_trace: MakeTrace, rows: Rows) -> TraceArrays:
    return TraceArrays(make_trace(rows))


def rank(arrays: TraceArrays, by: str, n: int = 10) -> list[dict[str, Any]]:
    rows = RANKINGS[by](arrays, n)
    json.dumps(rows)
    assert all({"pid", "instructions", "executions"} <= row.keys() for row in rows)
    return rows


def test_functions(arrays: TraceArrays) -> None:
    main, f = rank(arrays, "function")
    assert (main["function"], main["instructions"], main["executions"], main["blocks"]) == ("main", 27, 11, 3)
    assert (main["entries"], main["calls"], main["returns"]) == (1, 0, 0)
    assert (f["function"], f["instructions"], f["executions"], f["image"]) == ("f", 10, 5, "/bin/it")
    assert (f["entries"], f["calls"], f["returns"], f["offset"]) == (5, 5, 5, "0x40")
    assert main["share"] + f["share"] == pytest.approx(1)


def test_blocks(arrays: TraceArrays) -> None:
    rows = rank(arrays, "block", 2)
    assert [(row["block"], row["symbol"], row["instructions"]) for row in rows] == [(0, "main", 20), (3, "f", 10)]
    assert rows[0]["app_pc"] == "0x400010"
    assert bytes.fromhex(rows[1]["bytes"]) == b"\x31\xc0\xc3"


def test_edges(arrays: TraceArrays) -> None:
    rows = rank(arrays, "edge")
    assert [(row["kind"], row["executions"]) for row in rows] == [
        ("call", 5),
        ("return", 5),
        ("taken", 4),
        ("start", 1),
        ("not_taken", 1),
    ]
    assert rows[0]["source"]["app_pc"] == "0x400010"
    assert rows[1]["callee"]["symbol"] == "f"
    assert rows[3]["source"] is None


def test_images_and_threads(arrays: TraceArrays) -> None:
    (image,) = rank(arrays, "image")
    assert (image["image"], image["instructions"], image["blocks"], image["base"]) == ("/bin/it", 37, 4, "0x400000")
    (thread,) = rank(arrays, "thread")
    assert (thread["tid"], thread["instructions"], thread["end"]) == (7, 37, "exit")


def test_lines_of_a_file_that_is_not_there(arrays: TraceArrays) -> None:
    (row,) = rank(arrays, "line")
    assert (row["file"], row["line"], row["instructions"]) == (None, None, 37)


def test_code_without_symbols(make_trace: MakeTrace, rows: Rows) -> None:
    rows["blocks"][0] |= {"symbol": None, "symbol_offset": None, "function_offset": None}
    rows["blocks"][3] |= {"symbol": None, "symbol_offset": None}
    rows["blocks"][2] |= {"image_id": None, "offset": None, "symbol": None, "function_offset": None}
    names = {row["function"] for row in rank(TraceArrays(make_trace(rows)), "function")}
    assert names == {"main", "sub_40", "(no function known)", "(outside of images)"}


def test_functions_of_two_images_stay_apart(make_trace: MakeTrace, rows: Rows) -> None:
    rows["images"].append(rows["images"][0] | {"image_id": 1, "path": "/lib/other", "base": 0x500000})
    rows["blocks"][3] |= {"image_id": 1, "app_pc": 0x500040, "function_offset": 0x10}
    assert len(FunctionTable(TraceArrays(make_trace(rows)))) == 2


def test_coverage_ranks_by_size(make_trace: MakeTrace, rows: Rows) -> None:
    rows["counts"] = []
    arrays = TraceArrays(make_trace(rows, mode="coverage"))
    assert [(row["function"], row["instructions"]) for row in rank(arrays, "function")] == [("main", 7), ("f", 2)]


def test_summary_has_the_promised_keys(make_trace: MakeTrace, rows: Rows) -> None:
    summary = summarize_trace(make_trace(rows))
    assert json.loads(json.dumps(summary)) == summary
    assert {"format", "command", "mode", "totals", "processes", "cpu"} <= summary.keys()
    assert summary["totals"] == {
        "instructions": 37,
        "block_executions": 16,
        "blocks": 4,
        "edges": 5,
        "edge_executions": 16,
        "lost_records": 0,
    }
    (process,) = summary["processes"]
    assert {"pid", "parent_pid", "executable", "exit", "threads", "images"} <= process.keys()
    assert process["exit"] == {"code": 0}
    (thread,) = process["threads"]
    assert {"tid", "name", "instructions", "block_executions", "tags", "stored_bytes", "end"} <= thread.keys()
    (image,) = process["images"]
    assert {"path", "base", "instructions", "block_executions", "blocks"} <= image.keys()
    assert summary["cpu"] == {"target_seconds": 1.0, "controller_seconds": 0.5}


def test_killed_process(make_trace: MakeTrace, rows: Rows) -> None:
    rows["processes"][0] |= {"exit_code": None, "signal": 11}
    assert summarize_trace(make_trace(rows))["processes"][0]["exit"] == {"signal": 11}
