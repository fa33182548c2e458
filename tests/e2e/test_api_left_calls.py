"""Calls that never return are told, each once: with what they were called, and that they gave nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import clew
from tests.e2e import runs
from tests.e2e.test_api_command import run_clew
from tests.programs.build import SOURCES, build_plain

Row = dict[str, Any]
NAMES = ("thrower", "middle", "jumper", "jumps_over", "after", "ends_thread", "waits", "executes")
FUNCTIONS = [word for name in NAMES for word in ("--function", f"left:{name}")]
TURNS = 600


@pytest.fixture(scope="module")
def left() -> Path:
    return build_plain(SOURCES / "api" / "left.cc", "-O1", "-pthread", "-Wl,--no-as-needed", "-lstdc++", name="left")


def told(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def fates(rows: list[Row], name: str) -> Counter[tuple[int, bool]]:
    """How often a function was called with each argument, and did not return."""
    own = (row for row in rows if row["name"] == name)
    return Counter((int(row["text"].partition("(")[2].split(",")[0], 16), row["result"] is None) for row in own)


def test_exceptions_and_jumps_leave_calls(left: Path, tmp_path: Path) -> None:
    done = run_clew([str(left), str(TURNS)], *FUNCTIONS, "--json", path=tmp_path / "told")
    native = subprocess.run([left, str(TURNS)], capture_output=True, check=True)
    assert (done.returncode, done.stdout) == (0, native.stdout)
    rows = told(tmp_path / "told")
    for name, every in (("thrower", 3), ("middle", 3), ("jumper", 5), ("jumps_over", 5)):
        assert fates(rows, name) == Counter((n, n % every == 0) for n in range(TURNS)), name
    assert not [row for row in rows if row["name"] == "after" and row["result"] is None]
    assert fates(rows, "ends_thread") == Counter((n, True) for n in range(3))
    assert [(row["result"], row["duration_ns"]) for row in rows if row["name"] == "waits"] == [(None, None)]


def test_a_program_that_is_replaced_leaves_calls(left: Path, tmp_path: Path) -> None:
    done = run_clew([str(left), "7", "again"], *FUNCTIONS, "--filter", "process", "--json", path=tmp_path / "told")
    assert done.returncode == 0, done.stderr
    rows = told(tmp_path / "told")
    executed = [row["result"] for row in rows if row["name"] == "execve"]
    assert executed == [-2, 0]
    # The one that failed left nothing; each program has a thread that waits.
    names = Counter(row["name"] for row in rows)
    assert (names["executes"], names["waits"], names["exit_group"]) == (1, 2, 1)
    assert all(row["result"] is None for row in rows if row["name"] in ("executes", "waits", "exit_group"))


@pytest.mark.parametrize("mode", ["coverage", "full"])
def test_nothing_is_within_a_call_that_was_left(left: Path, tmp_path: Path, mode: str) -> None:
    trace_path = tmp_path / "out.clew"
    arguments = (*FUNCTIONS, "--filter", "process", "--filter", "file", "--trace", str(trace_path), "--mode", mode)
    assert run_clew([str(left), "40", "again"], *arguments, path=tmp_path / "told").returncode == 0
    trace = clew.Trace(trace_path)
    assert not trace.verify()
    rows = {row["call_id"]: row for row in trace.read("calls").to_pylist()}
    within = Counter(
        (row["name"], rows[row["parent_call_id"]]["name"]) for row in rows.values() if row["parent_call_id"] is not None
    )
    assert within["thrower", "middle"] == within["jumper", "jumps_over"] == 40
    assert within["after", "ends_thread"] == 6
    assert within["read", "waits"] == within["execve", "executes"] == 2
    # Behind what was left its caller goes on.
    others = ("thrower", "middle", "jumper", "jumps_over")
    assert not [pair for pair in within if pair[0] == "after" and pair[1] in others]


def test_calls_are_open_where_a_process_is_left(tmp_path: Path) -> None:
    script = "import os, time\nr, w = os.pipe()\nwhile not os.path.exists('go'): time.sleep(0.01)\nos.read(r, 7)"
    with subprocess.Popen([sys.executable, "-S", "-c", script], cwd=tmp_path) as process:
        command = [sys.executable, "-m", "clew", "api", "--pid", str(process.pid), "--json", "-o", "told"]
        environ = {**os.environ, "PYTHONPATH": str(runs.ROOT / "src")}
        try:
            with subprocess.Popen(command, env=environ, cwd=tmp_path) as looking:
                # What it waits in when it is met began before: only when its calls are told does it begin another one.
                runs.wait_until(
                    lambda: (tmp_path / "told").exists() and (tmp_path / "told").read_text().count("\n") > 3
                )
                (tmp_path / "go").touch()
                runs.wait_until(lambda: Path(f"/proc/{process.pid}/syscall").read_text().startswith("0 0x3 "))
                looking.send_signal(signal.SIGINT)
                assert looking.wait(60) == 0
            [read] = [row for row in told(tmp_path / "told") if row["name"] == "read"]
            assert read["result"] is None
            assert read["text"].startswith("read(3, ") and read["text"].endswith(", 7) = ?")
            assert process.poll() is None
        finally:
            process.kill()


def test_what_is_open_at_the_end_is_as_strace_has_it(left: Path, tmp_path: Path) -> None:
    """strace writes `<unfinished ...>` for it, and `= ?` when the thread is gone."""
    done = run_clew([str(left), "3"], path=tmp_path / "told")
    command = ["strace", "-f", "-o", str(tmp_path / "strace"), str(left), "3"]
    try:
        subprocess.run(command, env=runs.environment(), capture_output=True, check=True, timeout=120)
    except FileNotFoundError:
        pytest.skip("this machine has no strace")
    assert done.returncode == 0
    counts = [
        Counter(
            line.split()[-1] == "?" and name
            for line in path.read_text().splitlines()
            for name in ("read(", "exit_group(", "exit(")
            if name in line or name.removesuffix("(") + " resumed" in line
        )
        for path in (tmp_path / "told", tmp_path / "strace")
    ]
    assert counts[0]["read("] == counts[1]["read("] == 1
    assert counts[0]["exit("] == counts[1]["exit("] == 3


KILLED = {
    "alarm": ["read(3, A, 7) = ?"],
    "restarted": ["read(3, A, 9) = ?"],
    "abort": ["tgkill(PID, PID, SIGABRT) = ?"],
    "itself": ["kill(PID, SIGKILL) = ?"],
    "pipe": ['write(4, "the last words", 14) = ?'],
    "path": ['openat(AT_FDCWD, "fifo", O_RDONLY) = ?'],
    "thread": ["kill(PID, SIGTERM) = ?", "read(3, A, 16) = ?"],
}
"""How a program ends, and the calls that it was in."""


@pytest.mark.parametrize("mode", ["coverage", "full"])
@pytest.mark.parametrize("how", KILLED)
def test_calls_in_which_a_signal_ends_the_program_are_told(how: str, mode: str, tmp_path: Path) -> None:
    program = build_plain(SOURCES / "api" / "killed.c", "-O1", "-pthread")
    os.mkfifo(tmp_path / "fifo")
    traced = ("--trace", str(tmp_path / "out.clew"), "--mode", mode) if mode == "full" else ()
    done = run_clew([str(program), how, "fifo"], *traced, path=tmp_path / "told", cwd=tmp_path)
    assert done.returncode > 128
    lines = [line.split(maxsplit=2) for line in (tmp_path / "told").read_text().splitlines()]
    calls = [call for _, _, call in lines if call.endswith("?") and not call.startswith(("exit", "rt_sigreturn"))]
    numbers = re.compile("|".join({tid for tid, _, _ in lines}))
    assert sorted(re.sub(r"0x\w{6,}", "A", numbers.sub("PID", call)) for call in calls) == KILLED[how]
    if mode == "full":
        trace = clew.Trace(tmp_path / "out.clew")
        assert not trace.verify()
        rows = trace.read("calls", ["name", "result"]).to_pylist()
        ends = {call.partition("(")[0] for call in KILLED[how]}
        assert {row["name"] for row in rows if row["result"] is None} - {"exit_group", "rt_sigreturn"} == ends


def test_what_somebody_else_kills_is_told(tmp_path: Path) -> None:
    program = str(build_plain(SOURCES / "api" / "killed.c", "-O1", "-pthread"))
    command = [
        sys.executable,
        "-m",
        "clew",
        "api",
        "--json",
        "-o",
        str(tmp_path / "told"),
        "--",
        program,
        "polling",
        "-",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=runs.environment()) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        threads = Path(f"/proc/{process.pid}/task").iterdir()
        [pid] = [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]
        runs.wait_until(lambda: Path(f"/proc/{pid}/syscall").read_text().startswith("7 "))
        os.kill(pid, signal.SIGKILL)
        assert process.wait(60) == 128 + signal.SIGKILL
    last = told(tmp_path / "told")[-1]
    assert (last["text"], last["result"]) == ("poll([{fd=3, events=POLLIN}], 1, -1) = ?", None)
