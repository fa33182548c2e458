"""`clew info`, `report`, `verify`: what they print."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.running import Captured, run
from tests.unit.small_trace import MakeTrace, Rows, put_together, small_trace

GONE = "clew: note: /bin/it is gone, so its lines are not known\n"
"""Said of lines: the program of the small trace never was."""


def run_json(capsys: Captured, *arguments: str) -> Any:
    status, out, err = run(capsys, *arguments)
    assert status == 0 and err in ("", GONE)
    return json.loads(out)


def test_info(capsys: Captured, trace: str) -> None:
    status, out, err = run(capsys, "info", trace)
    assert (status, err) == (0, "")
    for text in ("it -x", "37", "exit status 0", "/bin/it", "nothing lost"):
        assert text in out


def test_info_json(capsys: Captured, trace: str) -> None:
    content = run_json(capsys, "info", "--json", trace)
    assert list(content["totals"]) == [
        "instructions",
        "block_executions",
        "blocks",
        "edges",
        "edge_executions",
        "lost_records",
    ]


def test_losses_are_shown(capsys: Captured, make_trace: MakeTrace, rows: Rows) -> None:
    path = make_trace(rows, losses={"dropped_records": 3, "damaged_records": 0}, warnings=["look here"]).directory
    _, out, _ = run(capsys, "info", str(path))
    assert "3 dropped records" in out
    assert "look here" in out


@pytest.mark.parametrize("by", ["function", "block", "edge", "line", "image", "thread"])
def test_report(capsys: Captured, trace: str, by: str) -> None:
    status, out, err = run(capsys, "report", "--by", by, trace)
    assert (status, err) == (0, GONE if by in ("line", "block") else "")
    assert out.strip()
    content = run_json(capsys, "report", "--by", by, "--json", trace)
    assert content["by"] == by
    keys = {
        "function": {"function", "image"},
        "block": {"block", "symbol"},
        "edge": {"source", "target", "kind"},
        "line": {"file", "line"},
        "image": {"image"},
        "thread": {"tid"},
    }[by]
    assert all({"pid", "instructions", "executions"} | keys <= row.keys() for row in content["rows"])
    status, out, _ = run(capsys, "report", "--by", by, "--csv", trace)
    assert len(list(csv.DictReader(io.StringIO(out)))) == len(content["rows"])


def test_blocks_are_disassembled(capsys: Captured, trace: str) -> None:
    _, out, _ = run(capsys, "report", "--by", "block", trace)
    assert "400040  xor eax, eax" in out
    assert "5 × 4 instructions = 20" in out


@pytest.mark.parametrize("words", [["info"], *(["report", "--by", by] for by in ("function", "block", "edge", "line"))])
def test_no_line_ends_in_blanks(capsys: Captured, trace: str, words: list[str]) -> None:
    _, out, _ = run(capsys, *words, trace)
    assert [line for line in out.splitlines() if line != line.rstrip()] == []


@pytest.fixture
def two(make_trace: MakeTrace, rows: Rows) -> str:
    """The trace of two processes that did the same."""
    both = put_together([rows, small_trace()], dict.fromkeys(("process", "image", "block", "edge"), 100))
    return str(make_trace(both, "two.clew").directory)


@pytest.mark.parametrize("by", ["function", "block", "edge", "line", "image", "thread"])
def test_one_process_of_several(capsys: Captured, trace: str, two: str, by: str) -> None:
    both = run_json(capsys, "report", "--by", by, "--json", two)["rows"]
    of_one = run_json(capsys, "report", "--by", by, "--pid", "8", "--json", two)["rows"]
    assert {row["pid"] for row in both} == {7, 8}
    assert {row["pid"] for row in of_one} == {8}
    alone = run_json(capsys, "report", "--by", by, "--json", trace)["rows"]
    assert [(row["instructions"], row["executions"]) for row in of_one] == [
        (row["instructions"], row["executions"]) for row in alone
    ]
    assert "process" in run(capsys, "report", "--by", by, two)[1]
    assert "process" not in run(capsys, "report", "--by", by, "--pid", "8", two)[1]
    assert "process" not in run(capsys, "report", "--by", by, trace)[1]


def test_a_process_that_is_not_there(capsys: Captured, two: str) -> None:
    status, out, err = run(capsys, "report", "--pid", "9", two)
    assert (status, out) == (2, "")
    assert "process 9: not in this trace, which is of 7, 8" in err


@pytest.mark.parametrize("by", ["function", "block", "edge", "line", "image", "thread"])
def test_what_coverage_counts_is_not_shown(capsys: Captured, make_trace: MakeTrace, rows: Rows, by: str) -> None:
    path = str(make_trace(rows | {"counts": []}, mode="coverage").directory)
    _, out, _ = run(capsys, "report", "--by", by, path)
    assert out.strip()
    assert "executions" not in out
    assert "entered" not in out


@pytest.mark.parametrize("build_id", ["00" * 20, None])
def test_a_program_that_is_not_what_it_was_has_no_lines(
    capsys: Captured,
    make_trace: MakeTrace,
    rows: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    build_id: str | None,
) -> None:
    program = tmp_path / "it"
    rows["images"][0] |= {"path": str(program), "build_id": build_id}
    path = str(make_trace(rows).directory)
    for by in ("line", "block"):
        assert f"note: {program} is gone, so its lines" in run(capsys, "report", "--by", by, path)[2]
    program.write_bytes(Path("/bin/true").read_bytes())
    told = f"clew: note: {program} is not what it was when it ran, so its lines are not known\n" if build_id else ""
    assert run(capsys, "report", "--by", "line", path)[2] == told
    program.write_text("no program at all")
    assert run(capsys, "report", "--by", "line", path)[2] == told
    assert run(capsys, "report", "--by", "function", path)[2] == ""
    monkeypatch.setattr(os, "access", lambda path, *_: str(path) != str(program))
    assert f"note: {program} can't be read, so its lines" in run(capsys, "report", "--by", "line", path)[2]


@pytest.mark.parametrize("name", ["[vdso]", "", "/memfd:jit (deleted)"])
def test_what_never_was_a_file_is_not_missed(capsys: Captured, make_trace: MakeTrace, rows: Rows, name: str) -> None:
    rows["images"][0] |= {"path": name}
    assert run(capsys, "report", "--by", "line", str(make_trace(rows).directory))[2] == ""


@pytest.mark.parametrize("by", ["function", "line", "image"])
def test_processes_together(capsys: Captured, two: str, by: str) -> None:
    apart = run_json(capsys, "report", "--by", by, "--json", two)["rows"]
    merged = run_json(capsys, "report", "--by", by, "--merge", "--json", two)["rows"]
    assert {row["processes"] for row in merged} == {2}
    assert not any("pid" in row for row in merged)
    assert 2 * len(merged) == len(apart)
    assert sum(row["instructions"] for row in merged) == sum(row["instructions"] for row in apart) == 74
    _, out, _ = run(capsys, "report", "--by", by, "--merge", two)
    assert "processes" in out.splitlines()[0].split()
    _, out, _ = run(capsys, "report", "--by", by, "--merge", "--csv", two)
    assert [row["processes"] for row in csv.DictReader(io.StringIO(out))] == ["2"] * len(merged)


def test_one_process_together_with_none(capsys: Captured, trace: str) -> None:
    assert "processes" not in run(capsys, "report", "--merge", trace)[1]
    assert {row["processes"] for row in run_json(capsys, "report", "--merge", "--json", trace)["rows"]} == {1}


@pytest.mark.parametrize("words", [["--by", "block"], ["--by", "edge"], ["--by", "thread"], ["--pid", "8"]])
def test_what_can_not_be_merged(capsys: Captured, two: str, words: list[str]) -> None:
    status, out, err = run(capsys, "report", "--merge", *words, two)
    assert (status, out) == (2, "")
    assert err.startswith("clew: --merge")


def test_number_of_rows(capsys: Captured, trace: str) -> None:
    assert len(run_json(capsys, "report", "-n", "1", "--json", trace)["rows"]) == 1
    assert run(capsys, "report", "-n", "0", trace)[0] == 2


def test_json_or_csv(capsys: Captured, trace: str) -> None:
    assert run(capsys, "report", "--json", "--csv", trace)[0] == 2


def test_verify(capsys: Captured, trace: str) -> None:
    status, out, _ = run(capsys, "verify", trace)
    assert status == 0
    assert "well-formed" in out and "lost" not in out
    assert run(capsys, "verify", "-q", trace) == (0, "", "")
    assert run_json(capsys, "verify", "--json", trace) == {
        "well_formed": True,
        "findings": [],
        "losses": {},
        "releases": [],
    }


def test_verify_finds(capsys: Captured, make_trace: MakeTrace, rows: Rows) -> None:
    rows["counts"][0]["executions"] = 6
    path = str(make_trace(rows).directory)
    status, out, _ = run(capsys, "verify", path)
    assert status == 1
    assert "does not hold: what comes into a block runs it" in out
    assert "block 0 at 0x400010" in out
    assert "lost" not in out
    status, out, _ = run(capsys, "verify", "--json", path)
    assert status == 1
    assert not json.loads(out)["well_formed"]


def test_verify_tells_that_records_were_lost(capsys: Captured, make_trace: MakeTrace, rows: Rows) -> None:
    rows["counts"][0]["executions"] = 6
    status, out, _ = run(capsys, "verify", str(make_trace(rows, losses={"dropped_records": 1}).directory))
    assert status == 1
    assert "records were lost" in out


def test_verify_tells_what_is_missing_where_all_holds(capsys: Captured, make_trace: MakeTrace, rows: Rows) -> None:
    status, out, _ = run(capsys, "verify", str(make_trace(rows, losses={"dropped_records": 1200}).directory))
    assert status == 0
    assert out.endswith(" invariants hold; lost: 1,200 dropped records\n")


@pytest.mark.parametrize("width", [80, 200])
def test_numbers_are_never_shortened(
    capsys: Captured, make_trace: MakeTrace, rows: Rows, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for block in rows["blocks"]:
        block["symbol"] = "a_function_with_a_long_name_" * 5
    path = str(make_trace(rows).directory)
    for by, cells in (("function", ["73.0 %", "27"]), ("edge", ["5", "not_taken"]), ("image", ["100.0 %", "37"])):
        _, out, _ = run(capsys, "report", "--by", by, path)
        assert all(cell in out for cell in cells)
        assert all(len(line) <= width for line in out.splitlines())


def test_names_cannot_drive_the_terminal(
    capsys: Captured, make_trace: MakeTrace, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jname\u202e[bold]\r\n"
    for block in rows["blocks"]:
        block["symbol"] = evil
    rows["images"][0]["path"] = "/lib/" + evil
    rows["threads"][0]["name"] = evil
    rows["processes"][0]["executable"] = evil
    path = str(make_trace(rows, command=[evil], warnings=[evil]).directory)
    monkeypatch.setenv("COLUMNS", "200")
    subjects = [["report", "--by", by] for by in ("function", "block", "edge", "line", "image", "thread")]
    for words in [["info"], *subjects]:
        status, out, _ = run(capsys, *words, path)
        assert status == 0
        assert not any(character in out for character in "\x1b\x07\r\u202e")
        assert "[bold]" in out or words[-1] == "line"


def test_one_of_a_thing(capsys: Captured, make_trace: MakeTrace, rows: Rows) -> None:
    from clew.cli.summary import print_summary

    one = {"dropped_records": 1, "lost_processes": 1, "unfollowed_children": 1, "damaged_counters": 2}
    rows["edges"], rows["counts"] = rows["edges"][:1], []
    print_summary(make_trace(rows, mode="coverage", losses=one))
    told = capsys.readouterr().err
    assert "4 blocks, 1 edge; 1 thread; lost: 1 dropped record, 1 lost process, 1 unfollowed child, 2 damaged" in told


def test_releases_are_told_by_reason(capsys: Captured, make_trace: MakeTrace, rows: Rows) -> None:
    start = make_trace(rows, "plain").manifest.start_ns
    releases = [
        {"pid": 8, "reason": "far_branch", "threads": 1200, "since_ns": start + 2_000_000_000},
        {"pid": 9, "reason": "far_branch", "threads": 1, "since_ns": start + 1_500_000_000},
        {"pid": 9, "reason": "evil \x1b", "threads": 1, "since_ns": start},
    ]
    path = str(make_trace(rows, losses={"released_threads": 1202}, releases=releases).directory)
    told = "1,202 released threads (1,201 far branch since 1.500 s, evil \\x1b since 0.000 s)"
    assert told in run(capsys, "info", path)[1].replace("\n", " ")
    assert told in run(capsys, "verify", path)[1]
    assert run_json(capsys, "info", "--json", path)["releases"] == releases
    assert run_json(capsys, "verify", "--json", path)["releases"] == releases


def test_a_long_note_is_one_line_where_nobody_looks(
    capsys: Captured, make_trace: MakeTrace, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "the disk was full for a while " * 20 + "in the end"
    path = str(make_trace(rows, warnings=[note]).directory)
    assert f"\nnote: {note}\n" in run(capsys, "info", path)[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")  # of 80 columns, and without colours
    lines = run(capsys, "info", path)[1].splitlines()
    assert max(map(len, lines)) <= 80
    assert f"note: {note}" in " ".join(map(str.rstrip, lines))


def test_summary(capsys: Captured, make_trace: MakeTrace, rows: Rows) -> None:
    from clew.cli.summary import print_summary

    print_summary(make_trace(rows))
    out, err = capsys.readouterr()
    assert out == ""
    assert "main" in err
    assert "37 instructions" in err
    assert "nothing lost" in err
    print_summary(make_trace(rows | {"counts": []}, name="coverage", mode="coverage"))
    assert "4 blocks, 5 edges" in capsys.readouterr().err
