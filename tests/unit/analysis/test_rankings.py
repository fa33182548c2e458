"""Totals and rankings of a trace that is small enough to add up by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clew.analysis.code.functions import FunctionTable
from clew.analysis.ranking.hottest import MERGEABLE, RANKINGS
from clew.analysis.ranking.hottest import rank as rank_trace
from clew.analysis.tables.arrays import TraceArrays
from clew.analysis.tables.split import iter_by_pid
from clew.analysis.tables.totals import summarize_trace
from clew.binary.elf import open_elf
from clew.store.trace import Trace
from tests.unit.small_trace import MakeTrace, Rows, repeated_trace


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


def test_totals_are_of_what_is_recorded(make_trace: MakeTrace, rows: Rows) -> None:
    """With the order there are blocks and edges that were left out: nothing counts them."""
    rows["blocks"][2]["is_recorded"] = False
    rows["counts"] = [row for row in rows["counts"] if (row["block_id"], row["edge_id"]) not in ((2, None), (None, 4))]
    totals = summarize_trace(make_trace(rows))["totals"]
    assert (totals["blocks"], totals["edges"]) == (3, 4)


def test_killed_process(make_trace: MakeTrace, rows: Rows) -> None:
    rows["processes"][0] |= {"exit_code": None, "signal": 11}
    assert summarize_trace(make_trace(rows))["processes"][0]["exit"] == {"signal": 11}


@pytest.fixture
def many(make_trace: MakeTrace) -> Trace:
    """Seven processes; the third goes on as the sixth, and the fifth ran its loop more often."""
    rows = repeated_trace(7)
    for content in rows.values():
        for row in content:
            row["pid"] = 9 if row["process_id"] == 5 else row["pid"]
            if "tid" in row:
                row["tid"] = row["pid"]
    for row in rows["counts"]:
        row["executions"] *= 1 + (row["process_id"] == 4)
    rows["threads"][4] |= {"instructions": 74, "block_executions": 32}
    return make_trace(rows, "many")


@pytest.mark.parametrize("by", RANKINGS)
@pytest.mark.parametrize("merge", [False, True])
def test_pieces_rank_as_the_whole(by: str, merge: bool, many: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    if merge and by not in MERGEABLE:
        pytest.skip("is not merged")
    whole = rank_trace(many, by, 100, merge=merge)
    assert merge or whole.rows == RANKINGS[by](TraceArrays(many), 100)
    monkeypatch.setattr("clew.analysis.ranking.hottest.iter_by_pid", lambda trace: iter_by_pid(trace, 1))
    assert len(list(iter_by_pid(many, 1))) == 6
    for n in (100, 5):
        found = rank_trace(many, by, n, merge=merge)
        assert (found.rows, found.image_rows) == (whole.rows[:n], whole.image_rows)


def test_merged_functions(many: Trace) -> None:
    main, f = rank_trace(many, "function", 10, merge=True).rows
    assert main == {
        "processes": 6,
        "function": "main",
        "image": "/bin/it",
        "offset": "0x10",
        "instructions": 8 * 27,
        "share": pytest.approx(27 / 37, abs=1e-6),
        "executions": 8 * 11,
        "entries": 8,
        "calls": 0,
        "returns": 0,
        "blocks": 21,
    }
    assert (f["instructions"], f["calls"], f["returns"], f["processes"]) == (80, 40, 40, 6)


def test_merged_images_and_lines(many: Trace) -> None:
    (image,) = rank_trace(many, "image", 10, merge=True).rows
    assert (image["processes"], image["image"], image["instructions"]) == (6, "/bin/it", 8 * 37)
    assert {"pid", "base"}.isdisjoint(image)
    (line,) = rank_trace(many, "line", 10, merge=True).rows
    assert (line["processes"], line["file"], line["instructions"], line["executions"]) == (6, None, 8 * 37, 10)


def test_what_is_built_anew_is_another_file(make_trace: MakeTrace) -> None:
    rows = repeated_trace(3)
    rows["images"][1]["build_id"] = "ab" * 20
    rows["blocks"][8] |= {"image_id": None, "offset": None, "function_offset": None, "symbol": None}
    merged = rank_trace(make_trace(rows), "function", 10, merge=True).rows
    assert [(row["function"], row["processes"], row["blocks"]) for row in merged if row["image"]] == [
        ("main", 2, 5),
        ("main", 1, 3),
        ("f", 2, 2),
        ("f", 1, 1),
    ]


@pytest.mark.parametrize("by", RANKINGS)
def test_one_process(by: str, many: Trace, make_trace: MakeTrace, rows: Rows) -> None:
    alone = rank_trace(make_trace(rows), by, 100).rows
    of_one = rank_trace(many, by, 100, pid=8).rows
    ids = ("pid", "tid", "block", "source_block", "target_block")
    assert [{**row, **dict.fromkeys(ids)} for row in of_one] == [{**row, **dict.fromkeys(ids)} for row in alone]
    assert {row["pid"] for row in of_one} == {8}


def test_totals_of_pieces(many: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = summarize_trace(many)
    assert whole["totals"]["instructions"] == 8 * 37
    monkeypatch.setattr("clew.analysis.tables.totals.iter_by_pid", lambda trace: iter_by_pid(trace, 1))
    assert summarize_trace(many) == whole


SOURCE = """\
.globl main
main:
    mov %eax, %eax
    mov %eax, %eax; mov %eax, %eax
    call 1f
    xor %eax, %eax
    ret
1:  nop; nop; nop
    ret
"""


def test_lines(make_trace: MakeTrace, rows: Rows, tmp_path: Path) -> None:
    """Blocks of one line, of a line for each instruction, and of several with several instructions."""
    source, program = tmp_path / "it.S", tmp_path / "it"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-o", program, source], check=True)
    nm = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout.splitlines()
    main = next(int(line.split()[0], 16) for line in nm if line.endswith(" T main"))
    rows["images"][0] |= {"path": str(program), "build_id": build_id_of(program), "size_bytes": 0x100000}
    code = program.read_bytes()[main : main + 16]
    # By file offset, which is the address in what gcc makes.
    blocks = [(0, 11, 4), (11, 3, 2), (14, 1, 1), (14, 1, 1)]
    for row, (first, size, n) in zip(rows["blocks"], blocks, strict=True):
        row |= {"offset": main + first, "size_bytes": size, "n_instructions": n, "bytes": code[first : first + size]}
    rows["blocks"][3]["image_id"] = None
    found = {
        row["line"]: (row["instructions"], row["executions"]) for row in rank_trace(make_trace(rows), "line", 10).rows
    }
    assert found == {3: (5, 5), 4: (10, 5), 5: (5, 5), 6: (5, 5), 7: (5, 5), 8: (1, 1), None: (5, 5)}


def build_id_of(program: Path) -> str | None:
    with open_elf(program) as elf:
        return elf.build_id
