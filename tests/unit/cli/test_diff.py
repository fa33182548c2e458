"""`clew diff`: what it prints, its exit status, and what it says of traces that are none."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.cli.main import main
from clew.recording.journal.writer import JournalWriter
from clew.store.names import JOURNAL_NAME, MANIFEST_NAME
from tests.unit.small_trace import MakeTrace, Rows, repeated_trace

Captured = pytest.CaptureFixture[str]
SUBJECTS = ["function", "block", "edge"]


@pytest.fixture
def a(make_trace: MakeTrace, rows: Rows) -> str:
    return str(make_trace(deepcopy(rows), "a.clew").directory)


@pytest.fixture
def b(make_trace: MakeTrace, rows: Rows) -> str:
    """As A, but the function ran three times more, and the last block did not."""
    other = deepcopy(rows)
    other["blocks"], other["edges"] = [other["blocks"][index] for index in (0, 1, 3)], other["edges"][:4]
    other["counts"] = [row for row in other["counts"] if row["block_id"] != 2 and row["edge_id"] != 4]
    for row in other["counts"]:
        row["executions"] += 3 * (row["block_id"] == 3 or row["edge_id"] == 1)
    return str(make_trace(other, "b.clew").directory)


def run(capsys: Captured, *arguments: str) -> tuple[int, str, str]:
    status = main(["diff", *arguments])
    return status, *capsys.readouterr()


def run_json(capsys: Captured, *arguments: str) -> Any:
    status, out, err = run(capsys, "--json", *arguments)
    assert (status, err) == (0, "")
    return json.loads(out)


def test_equal(capsys: Captured, a: str) -> None:
    status, out, err = run(capsys, a, a, "--exit-code")
    assert (status, err) == (0, "")
    assert out.endswith("\nequal: A and B ran the same code, each block and each edge as often\n")
    assert "only in A:" not in out
    content = run_json(capsys, a, a)
    assert content["equal"]
    assert content["rows"] == content["only_in_a"] == content["only_in_b"] == []


@pytest.mark.parametrize("by", SUBJECTS)
def test_what_differs(capsys: Captured, a: str, b: str, by: str) -> None:
    status, out, err = run(capsys, "--by", by, a, b)
    assert (status, err) == (0, "")
    assert out.endswith("\nA and B differ\n")
    assert "only in A: 1 edge\n" in out if by == "edge" else "only in A: 1 block, 2 instructions\n" in out
    assert "in both, not as often" in out
    assert "× 1.60" in out
    assert [line for line in out.splitlines() if line != line.rstrip()] == []
    content = run_json(capsys, "--by", by, a, b)
    assert content["by"] == by
    assert content["order"] is None
    assert list(content) == [
        *("a", "b", "compared", "merged", "equal", "blocks", "edges", "not_comparable", "processes", "images"),
        *("notes", "order", "by", "only_in_a", "only_in_b", "rows"),
    ]
    assert all({"difference", "ratio", "a", "b"} <= row.keys() for row in content["rows"])
    assert content["blocks"] == {"same": 2, "differ": 1, "only_in_a": 1, "only_in_b": 0}
    assert content["edges"] == {"same": 3, "differ": 1, "only_in_a": 1, "only_in_b": 0}
    # Of main one block ran in A only, so that it differs, too.
    assert (len(content["rows"]), len(content["only_in_a"])) == (2 if by == "function" else 1, 1)


def test_a_part_of_a_function_is_told_from_all_of_it(capsys: Captured, a: str, b: str) -> None:
    assert "  main (part)  it+0x10\n" in run(capsys, a, b)[1]
    assert "(part)" not in run(capsys, "--by", "block", a, b)[1]


def test_number_of_rows(capsys: Captured, make_trace: MakeTrace, rows: Rows, a: str) -> None:
    for row in rows["counts"]:
        row["executions"] *= 2
    twice = str(make_trace(rows, "twice.clew").directory)
    assert len(run_json(capsys, a, twice)["rows"]) == 2
    assert len(run_json(capsys, "-n", "1", a, twice)["rows"]) == 1
    assert run(capsys, "-n", "0", a, twice)[0] == 2


def test_exit_status(capsys: Captured, a: str, b: str) -> None:
    assert run(capsys, a, b)[0] == 0
    assert run(capsys, "--exit-code", a, b)[0] == 3
    assert run(capsys, "--exit-code", "--json", a, b)[0] == 3
    assert "with --exit-code it is 3" in " ".join(run(capsys, "--help")[1].split())


def test_what_can_not_be_compared(capsys: Captured, make_trace: MakeTrace, rows: Rows) -> None:
    rows["blocks"][3] |= {"image_id": None, "offset": None}
    paths = [str(make_trace(rows, "a").directory)]
    rows["blocks"][3]["bytes"] = b"\x31\xdb\xc3"
    paths.append(str(make_trace(rows, "b").directory))
    status, out, _ = run(capsys, "--exit-code", *paths)
    assert status == 3
    assert out.splitlines()[-1] == (
        "no difference in what can be compared; not comparable, outside of images: 1 block of A, 1 block of B"
    )
    assert "not comparable in A" in out


def test_coverage(capsys: Captured, make_trace: MakeTrace, rows: Rows, a: str) -> None:
    rows["edges"] = rows["edges"][:4]
    path = str(make_trace(rows | {"counts": []}, "c.clew", mode="coverage").directory)
    for by in SUBJECTS:
        out = run(capsys, "--by", by, a, path)[1]
        assert "as often" not in out
        assert "note: A is of mode counts, B of mode coverage: only which code ran is compared\n" in out
    assert run_json(capsys, a, path)["compared"] == "coverage"
    assert "equal: A and B ran the same code, the same blocks and edges" in run(capsys, path, path)[1]


@pytest.mark.parametrize("by", SUBJECTS)
def test_processes(capsys: Captured, make_trace: MakeTrace, a: str, by: str) -> None:
    path = str(make_trace(repeated_trace(3), "many.clew").directory)
    out = run(capsys, "--by", by, a, path)[1]
    assert "process" in out and "note: 2 processes only in B" in out
    assert "process" not in run(capsys, "--by", by, "--merge", a, path)[1].replace("processes", "")
    assert "=" in run(capsys, "--by", by, path, path)[1]


def test_names_can_not_drive_the_terminal(capsys: Captured, make_trace: MakeTrace, rows: Rows, b: str) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jname\u202e[bold]\r\n"
    for block in rows["blocks"]:
        block["symbol"] = evil
    rows["images"][0] |= {"path": "/lib/" + evil, "build_id": "ab"}
    rows["processes"][0]["executable"] = evil
    one = str(make_trace(rows, "one", command=[evil]).directory)
    rows["images"][0]["build_id"] = "cd"
    rows["counts"][3]["executions"] = 70
    two = str(make_trace(rows, "two", command=[evil]).directory)
    for by in SUBJECTS:
        for pair in ((one, two), (one, b)):
            status, out, _ = run(capsys, "--by", by, *pair)
            assert status == 0
            assert not any(character in out for character in "\x1b\x07\r\u202e")


def test_no_trace(capsys: Captured, a: str, tmp_path: Path) -> None:
    for pair in ((a, str(tmp_path / "no")), (str(tmp_path / "no"), a)):
        status, out, err = run(capsys, *pair)
        assert (status, out, err) == (2, "", f"clew: {tmp_path / 'no'}: no such trace\n")
    assert run(capsys, a)[0] == 2
    assert run(capsys, "--by", "line", a, a)[0] == 2


def test_traces_that_can_not_be_read(capsys: Captured, a: str, b: str, tmp_path: Path) -> None:
    (tmp_path / "unfinished").mkdir()
    JournalWriter(tmp_path / "unfinished" / JOURNAL_NAME).close()
    status, out, err = run(capsys, a, str(tmp_path / "unfinished"))
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "being written" in err
    manifest = Path(a) / MANIFEST_NAME
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 99}))
    status, _, err = run(capsys, a, b)
    assert status == 1
    assert "newer clew" in err


@pytest.mark.parametrize("table", ["blocks", "edges", "counts", "images", "processes"])
@pytest.mark.parametrize("kept", [0, 50, -5])
def test_truncated_traces(capsys: Captured, a: str, b: str, table: str, kept: int) -> None:
    path = Path(b) / table / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    for pair in ((a, b), (b, a)):
        status, out, err = run(capsys, *pair)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert "damaged or truncated" in err


@pytest.mark.parametrize(
    ("table", "row", "damage"),
    [
        ("blocks", 0, {"offset": 1 << 63}),
        ("blocks", 0, {"size_bytes": 77}),
        ("blocks", 0, {"size_bytes": -1}),
        ("blocks", 0, {"image_id": 99}),
        ("blocks", 0, {"process_id": 99}),
        ("blocks", 0, {"n_instructions": -5}),
        ("blocks", 0, {"function_offset": (1 << 64) - 1}),
        ("blocks", 1, {"symbol_offset": -9}),
        ("edges", 1, {"target_block_id": 99}),
        ("edges", 1, {"source_block_id": 99}),
        ("edges", 2, {"callee_block_id": 99}),
        ("edges", 1, {"kind": "nonsense"}),
        ("counts", 0, {"block_id": 99}),
        ("counts", 0, {"executions": -1}),
    ],
)
def test_impossible_traces_end_in_a_line(
    capsys: Captured, make_trace: MakeTrace, rows: Rows, a: str, table: str, row: int, damage: dict[str, Any]
) -> None:
    rows[table][row] |= damage
    rows["images"][0]["build_id"] = "ab"
    path = str(make_trace(rows, "damaged").directory)
    for by in SUBJECTS:
        for pair in ((a, path), (path, a), (path, path)):
            status, _, err = run(capsys, "--by", by, *pair)
            assert status in (0, 1)
            assert "internal error" not in err
            assert err.count("\n") == status


def test_from_python(a: str, b: str) -> None:
    assert clew.diff(a, clew.Trace(a)).is_equal
    found = clew.diff(Path(a), b)
    assert not found.is_equal
    assert [row["function"] for row in found.rows()] == ["f", "main"]
    assert [row["function"] for row in found.rows_only_in("a")] == ["main"]
    assert found.rows_only_in("b", "edge") == []


def test_a_difference_of_pieces_is_told_as_one(capsys: Captured, make_trace: MakeTrace, rows: Rows, a: str) -> None:
    other = deepcopy(rows)
    for row in other["counts"]:
        row["executions"] += {0: 1, 1: -3}.get(row["block_id"], 0)
    b = str(make_trace(other, "other.clew").directory)
    told = "\ndifference: added up over the pieces of a function, whether A or B ran one more often\n"
    assert told in run(capsys, a, b)[1]
    (row,) = run_json(capsys, a, b)["rows"]
    assert row["difference"] == 7 > abs(row["a"]["instructions"] - row["b"]["instructions"])
    assert told not in run(capsys, "--by", "block", a, b)[1]
