"""`clew info` of traces with many processes, and the tables that it prints."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from clew.analysis.order.order_gaps import OrderGaps
from clew.cli.main import main
from clew.cli.tables import Column, print_table
from tests.unit.small_trace import MakeTrace, repeated_trace

Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    return status, *capsys.readouterr()


@pytest.fixture
def many(make_trace: MakeTrace) -> str:
    """The trace of thirty processes; the 27th ran its loop a hundred times, the 28th was killed."""
    rows = repeated_trace(30)
    rows["threads"][26] |= {"instructions": 3700, "block_executions": 1600}
    rows["processes"][26]["command"] = ["hot", "it's", "\x1b[2J"]
    for row in rows["counts"]:
        row["executions"] *= 100 if row["process_id"] == 26 else 1
    rows["processes"][27] |= {"exit_code": None, "signal": 9}
    return str(make_trace(rows, "many.clew").directory)


def test_info_of_many_processes_is_short(capsys: Captured, many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    status, out, err = run(capsys, "info", many)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    at = lines.index("30 processes; the 20 with the most instructions:")
    assert lines[at + 2].split() == ["share", "instructions", "process", "parent", "threads", "end", "command"]
    first = lines[at + 4]
    assert first.split()[:6] == ["77.5", "%", "3,700", "33", "1", "1"]
    assert first.endswith(r"""hot 'it'"'"'s' '\x1b[2J'""")
    assert len(lines) < at + 30
    assert "10 more with 370 instructions; --all shows every one, with its threads and images" in lines
    assert lines[-1] == "nothing lost"


def test_info_of_many_processes_tells_how_they_ended(capsys: Captured, many: str) -> None:
    killed = next(line for line in run(capsys, "info", "--all", many)[1].splitlines() if line.startswith("process 34"))
    assert killed.endswith("killed by SIGKILL")


@pytest.mark.parametrize(("code", "end"), [(0, "with its process"), (None, "killed")])
def test_info_tells_that_a_process_takes_its_threads_with_it(
    capsys: Captured, make_trace: MakeTrace, code: int | None, end: str
) -> None:
    rows = repeated_trace(1)
    rows["processes"][0]["exit_code"] = code
    rows["threads"][0]["end"] = "killed"
    _, out, _ = run(capsys, "info", str(make_trace(rows, "one.clew").directory))
    assert any(line.endswith(f"  {end}") for line in out.splitlines())


def test_info_of_all_processes(capsys: Captured, many: str, make_trace: MakeTrace) -> None:
    _, out, _ = run(capsys, "info", "--all", many)
    assert sum(line.startswith("process ") for line in out.splitlines()) == 30
    assert "more with" not in out
    few = str(make_trace(repeated_trace(20), "few.clew").directory)
    assert run(capsys, "info", few) == run(capsys, "info", "--all", few)
    _, content, _ = run(capsys, "info", "--json", many)
    assert len(json.loads(content)["processes"]) == 30
    assert run(capsys, "info", "--json", "--all", many)[1] == content


def test_info_of_many_programs_in_mode_coverage(capsys: Captured, make_trace: MakeTrace) -> None:
    rows = repeated_trace(30) | {"counts": []}
    for process in rows["processes"][::2]:
        process["pid"] += 1
    _, out, _ = run(capsys, "info", str(make_trace(rows, mode="coverage").directory))
    assert "15 processes, which ran 30 programs; the 20 with the most blocks:" in out
    assert "10 more with 40 blocks" in out
    assert "instructions" not in out


@pytest.mark.parametrize("width", [30, 60, 120])
def test_tables_are_the_same_on_a_terminal_and_in_a_file(width: int) -> None:
    columns = [Column("n", is_number=True), Column("name", min_width=6, style="bold"), Column("last", min_width=4)]
    rows = [["1,000", "線線線", "x"], ["2", "a" * 50, "naïve" * 9], ["", "\x1b[2J", ""]]
    printed = []
    for is_terminal in (False, True):
        file = io.StringIO()
        print_table(Console(file=file, width=width, force_terminal=is_terminal, color_system=None), columns, rows)
        printed.append(re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()))
    assert printed[0] == printed[1]


def test_info_tells_processor_time_only_where_it_is_known(capsys: Captured, make_trace: MakeTrace) -> None:
    trace = make_trace(repeated_trace(1)).directory
    assert "processor time    target 1.00 s, clew 0.50 s" in run(capsys, "info", str(trace))[1]
    manifest = json.loads((trace / "manifest.json").read_text())
    del manifest["cpu"]["target_seconds"]
    (trace / "manifest.json").write_text(json.dumps(manifest))
    assert "processor time    target not known, clew 0.50 s" in run(capsys, "info", str(trace))[1]


@pytest.mark.parametrize(
    ("order", "line"),
    [
        (OrderGaps(7, 7), "all of it"),
        (OrderGaps(1, 8, left_out=1), "12.5 % of the instructions, the rest left out in 1 place"),
        (OrderGaps(3, 4, 2, 1), "75.0 % of the instructions, the rest left out in 2 places and lost in 1 place"),
    ],
)
def test_info_tells_where_the_order_has_gaps(
    capsys: Captured, make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch, order: OrderGaps, line: str
) -> None:
    trace = str(make_trace(repeated_trace(1)).directory)
    monkeypatch.setenv("COLUMNS", "120")
    assert "\norder " not in run(capsys, "info", trace)[1], "mode counts has none"
    monkeypatch.setattr("clew.analysis.summary.find_order_gaps", lambda _: order)
    assert f"\norder             {line}\n" in run(capsys, "info", trace)[1]
