"""Functions that were entered, and in which a signal or another thread ended the program, are told: each once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clew
from tests.e2e import runs
from tests.e2e.test_api_command import run_clew
from tests.programs.build import SOURCES, build_plain

Row = dict[str, Any]
NAMES = ("outer", "middle", "inner", "deep", "quick")
DESCRIBED = ("strlen", "memcpy", "abort")
FUNCTIONS = [
    word for name in (*(f"killed_inside:{name}" for name in NAMES), *DESCRIBED) for word in ("--function", name)
]
N_QUICK = 100
N_PLACES = 2048
"""Calls of a thread for which there is room."""


@pytest.fixture(scope="module")
def program() -> Path:
    return build_plain(SOURCES / "api" / "killed_inside.c", "-O1", "-g", "-pthread")


def told(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def unreturned(rows: list[Row]) -> list[str]:
    """What did not return, the outermost first, by thread; of the system calls nothing."""
    left = [row for row in rows if row["result"] is None and row["name"] in (*NAMES, *DESCRIBED)]
    own = sorted((row["tid"], row["time_ns"], row["text"]) for row in left)
    return [re.sub(r"0x\w{6,}", "A", text) for _, _, text in own]


def chain(how: str, number: int = 1) -> list[str]:
    return [f'{name}({number + n}, "{how}") = ?' for n, name in enumerate(("outer", "middle", "inner"))]


ENDS = {
    "strlen": (signal.SIGSEGV, ["strlen(0x8) = ?"]),
    "memcpy": (signal.SIGSEGV, ["memcpy(A, 0x8, 3) = ?"]),
    "abort": (signal.SIGABRT, ["abort() = ?"]),
    "kill": (signal.SIGKILL, []),
    "trap": (signal.SIGILL, []),
}
"""How a program ends, and in which functions beside its own."""


@pytest.mark.parametrize("how", ENDS)
def test_functions_in_which_a_signal_ends_the_program_are_told(program: Path, how: str, tmp_path: Path) -> None:
    done = run_clew([str(program), how], *FUNCTIONS, "--json", path=tmp_path / "told")
    number, innermost = ENDS[how]
    assert done.returncode == 128 + number, done.stderr
    rows = told(tmp_path / "told")
    assert unreturned(rows) == chain(how) + innermost
    assert sum(row["name"] == "quick" and row["result"] is not None for row in rows) == N_QUICK


@pytest.mark.parametrize("mode", ["coverage", "full"])
def test_they_are_within_one_another(program: Path, mode: str, tmp_path: Path) -> None:
    options = (*FUNCTIONS, "--filter", "signal", "--filter", "file", "--mode", mode)
    path = tmp_path / "out.clew"
    done = run_clew([str(program), "threads"], *options, "--trace", str(path), path=tmp_path / "told")
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    trace = clew.Trace(path)
    assert not trace.verify()
    rows = {row["call_id"]: row for row in trace.read("calls").to_pylist()}
    pairs = [
        (row["name"], rows[row["parent_call_id"]]["name"] if row["parent_call_id"] is not None else None)
        for row in rows.values()
        if row["result"] is None
    ]
    inner = [("outer", None), ("middle", "outer"), ("inner", "middle")]
    assert sorted(pairs, key=str) == sorted([*inner * 3, ("read", "inner"), ("kill", "inner")], key=str)


def test_another_thread_ends_the_program(program: Path, tmp_path: Path) -> None:
    """By a signal, while one waits and one runs; or by exit_group, which tells of all by itself."""
    for how, number, is_killed in (("threads", 3, True), ("leaves", 2, False)):
        done = run_clew([str(program), how], *FUNCTIONS, "--json", path=tmp_path / how)
        assert done.returncode == (128 + signal.SIGKILL if is_killed else 3), done.stderr
        expected = [*chain("kill" if is_killed else "exits"), *chain("waits", 100)]
        expected += chain("spins", 100) if number == 3 else []
        assert sorted(unreturned(told(tmp_path / how))) == sorted(expected)


def test_what_somebody_else_kills_is_told(program: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "clew", "api", *FUNCTIONS, "--json", "-o", str(tmp_path / "told")]
    command += ["--", str(program), "spins"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=runs.environment()) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        threads = Path(f"/proc/{process.pid}/task").iterdir()
        [pid] = [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]
        stat = Path(f"/proc/{pid}/stat")

        def ticks() -> int:
            return int(stat.read_text().rpartition(")")[2].split()[11])

        # It is there when it does nothing but run.
        before = ticks()
        runs.wait_until(lambda: ticks() > before + 50)
        os.kill(pid, signal.SIGKILL)
        assert process.wait(60) == 128 + signal.SIGKILL
    assert unreturned(told(tmp_path / "told")) == chain("spins")


def test_a_child_tells_only_its_own(program: Path, tmp_path: Path) -> None:
    done = run_clew([str(program), "forks"], *FUNCTIONS, "--json", path=tmp_path / "told")
    assert done.returncode == 0, done.stderr
    rows = told(tmp_path / "told")
    assert unreturned(rows) == ['middle(10, "abort") = ?', 'inner(11, "abort") = ?', "abort() = ?"]
    # The parent comes back from its own, and so does the other child, which was in them as well.
    results = [(row["name"], row["result"]) for row in rows if row["name"] in ("outer", "middle", "inner")]
    for name, result in (("inner", 3), ("middle", 4), ("outer", 5)):
        assert results.count((name, result)) == 2, results


def test_what_there_is_no_room_for_is_counted(program: Path, tmp_path: Path) -> None:
    depth = 3 * N_PLACES
    done = run_clew([str(program), "deep", str(depth)], *FUNCTIONS, "--json", path=tmp_path / "told")
    assert done.returncode == 128 + signal.SIGKILL
    calls = [row["text"] for row in told(tmp_path / "told") if row["name"] == "deep"]
    assert N_PLACES * 3 // 4 <= len(calls) <= N_PLACES
    assert len(set(calls)) == len(calls) and "deep(0) = ?" in calls
    found = re.search(rb"(\d+) calls are not told: too many were open", done.stderr)
    assert found is not None and int(found[1]) == depth + 1 - len(calls)
