"""`clew api --trace`: the tables of calls, entities and references of real runs, and what is said of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import clew
from tests.e2e import runs

Row = dict[str, Any]
SCRIPT = 'echo one > "$0/made"; cat "$0/made" > "$0/copy"; mv "$0/copy" "$0/moved"; cat < "$0/moved"; rm "$0/made"'


def record(folder: Path, words: list[str], *arguments: str) -> clew.Trace:
    trace = folder / "it.clew"
    told = folder / "told"
    command = [sys.executable, "-m", "clew", "api", *arguments, "--trace", str(trace), "-o", str(told), "--", *words]
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    subprocess.run(command, env=environ, capture_output=True, check=True, timeout=120)
    return clew.Trace(trace)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def trace(folder: Path) -> clew.Trace:
    return record(folder, ["sh", "-c", SCRIPT, str(folder)], "--mode", "full")


def named(trace: clew.Trace, name: str) -> Row:
    (found,) = [row for row in trace.read("entities").to_pylist() if row["name"] == name]
    return dict(found)


def done_with(trace: clew.Trace, entity: Row) -> list[tuple[str, str]]:
    """Which calls did what with an entity, in the order of time."""
    calls = {row["call_id"]: row for row in trace.read("calls").to_pylist()}
    found = [row for row in trace.read("references").to_pylist() if row["entity_id"] == entity["entity_id"]]
    found.sort(key=lambda row: calls[row["call_id"]]["time_ns"])
    return [(calls[row["call_id"]]["name"], row["role"]) for row in found]


def test_the_trace_is_well_formed(trace: clew.Trace) -> None:
    assert not trace.verify()


def test_every_call_that_was_told_is_there_once(trace: clew.Trace, folder: Path) -> None:
    told = Counter(line.split(maxsplit=2)[2].split("(")[0] for line in (folder / "told").read_text().splitlines())
    calls = trace.read("calls").to_pylist()
    assert Counter(row["name"] for row in calls) == told
    assert len({row["call_id"] for row in calls}) == len(calls)


def test_files_are_followed_by_whatever_name_and_number(trace: clew.Trace, folder: Path) -> None:
    made, copied = named(trace, f"{folder}/made"), named(trace, f"{folder}/copy")
    roles = [role for _, role in done_with(trace, made)]
    assert roles[0] == "opened" and roles[-1] == "removed"
    # The shell opened it, and gave it another number before the one who writes had it.
    assert ("dup2", "duplicated") in done_with(trace, made)
    assert ("write", "written") in done_with(trace, made)
    # By copy_file_range, where the system has that.
    assert "read" in roles
    # It has two names, and is one file.
    assert json.loads(copied["details"])["path"] == f"{folder}/moved"
    assert {"opened", "written", "renamed", "read"} <= {role for _, role in done_with(trace, copied)}
    moved = [row for row in trace.read("entities").to_pylist() if row["name"] == f"{folder}/moved"]
    assert not moved


def test_calls_are_where_they_were_made(trace: clew.Trace) -> None:
    blocks = {row["block_id"]: row for row in trace.blocks.to_pylist()}
    calls = trace.read("calls").to_pylist()
    last: dict[tuple[int, int], int] = {}
    n_placed = 0
    for row in calls:
        # A system call ends its block.
        assert blocks[row["block_id"]]["exit_kind"] == "syscall", row
        if row["position"] is None:
            continue
        n_placed += 1
        thread = row["process_id"], row["tid"]
        assert row["position"] > last.get(thread, -1)
        last[thread] = row["position"]
    for (process_id, tid), position in last.items():
        placed = {
            row["position"]: row["block_id"] for row in calls if (row["process_id"], row["tid"]) == (process_id, tid)
        }
        path = trace.path(tid, process_id=process_id)
        for place in (min(one for one in placed if one is not None), position):
            assert path.blocks(place, 1).tolist() == [placed[place]]
    assert n_placed > 0.9 * len(calls)


def test_who_made_whom_and_who_inherited_what(trace: clew.Trace) -> None:
    entities = {row["entity_id"]: row for row in trace.read("entities").to_pylist()}
    processes = {row["process_id"]: row for row in trace.processes.to_pylist()}
    of_process = {row["process_id"]: row for row in entities.values() if row["kind"] == "process"}
    assert set(processes) <= set(of_process)
    for process_id, row in processes.items():
        parent = of_process[process_id]["parent_entity_id"]
        if parent is not None:
            assert entities[parent]["pid"] in (row["parent_pid"], row["pid"])


def test_reports_add_up(trace: clew.Trace, folder: Path) -> None:
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}

    def report(*arguments: str) -> list[Row]:
        command = [sys.executable, "-m", "clew", "report", str(trace.directory), *arguments, "--json", "-n", "100000"]
        told = subprocess.run(command, env=environ, capture_output=True, check=True, timeout=60)
        rows: list[Row] = json.loads(told.stdout)["rows"]
        return rows

    calls = trace.read("calls").to_pylist()
    for arguments in (["--by", "api"], ["--by", "api", "--merge"], ["--by", "syscall"]):
        rows = report(*arguments)
        assert sum(row["calls"] for row in rows) == len(calls)
        assert sum(row["errors"] for row in rows) == sum(row["error"] is not None for row in calls)
        assert sum(row["total_ns"] for row in rows) == sum(row["duration_ns"] or 0 for row in calls)
    (made,) = [row for row in report("--by", "entity") if row["name"] == f"{folder}/made"]
    assert made["roles"]["removed"] == 1 and made["processes"] > 1


def test_what_is_added_up_in_the_program_is_what_was_told(tmp_path: Path, folder: Path) -> None:
    trace = record(tmp_path, ["sh", "-c", f"ls {folder} /no/such/place; cat /etc/hostname"], "-c")
    calls = trace.read("calls").to_pylist()
    expected = Counter(row["name"] for row in calls)
    failed = Counter(row["name"] for row in calls if row["error"] is not None)
    lines = [line.split() for line in (tmp_path / "told").read_text().splitlines()[1:]]
    told = {words[-1]: words for words in lines}
    assert {name: int(words[1]) for name, words in told.items()} == expected | {"total": len(calls)}
    assert {name: int(words[2]) for name, words in told.items() if len(words) == 4} == failed | {
        "total": failed.total()
    }
