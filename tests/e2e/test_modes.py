"""A running recording is told to record the order of execution, or no more."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clew
from clew.address import Pid
from clew.analysis.invariants.check import check_invariants
from clew.errors import ControlError
from clew.recording.control.client import ControlClient
from tests.e2e import runs
from tests.e2e.controlled import control, controlled
from tests.e2e.test_control import executions_of, finish_well
from tests.programs.build import BIN

THREADS = """
import hashlib, subprocess, threading, time
def work(number):
    for turn in range(60):
        hashlib.sha256(str(turn * number).encode() * 50).hexdigest()
        sorted([(place * 7919) % 101 for place in range(200)])
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads: thread.start()
for number in range(4): print(subprocess.run(["echo", str(number)], capture_output=True).stdout)
for thread in threads: thread.join()
until = time.monotonic() + 2
while time.monotonic() < until: work(3)
"""
SIGNALS = """
import signal, time
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
until = time.monotonic() + 2
while time.monotonic() < until:
    sum(number * number for number in range(500))
    try: int("x")
    except ValueError: pass
signal.setitimer(signal.ITIMER_REAL, 0, 0)
print("done")
"""
FORKS = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i | sed s/1/x/ | tr x y | md5sum; done"
CODE_MADE = """
const start = Date.now(), seen = {};
while (Date.now() - start < 2000) {
  for (let i = 0; i < 2000; i++) seen["k" + (i % 97)] = (seen["k" + (i % 97)] || 0) + i;
  eval("(function(){return " + (Date.now() % 13) + "})()");
}
console.log("done");
"""
HARD: dict[str, list[str | Path]] = {
    "threads": ["/usr/bin/python3", "-c", THREADS],
    "signals": ["/usr/bin/python3", "-c", SIGNALS],
    "forks": ["/bin/sh", "-c", FORKS],
    "sequences": [BIN / "rseq_counters"],
    "code_made": ["node", "-e", CODE_MADE],
}


CHANGES: list[tuple[str, dict[str, Any]]] = [
    *(("mode", {"mode": mode}) for mode in ("counts", "full", "full", "auto")),
    *((command, {"what": "libc.so.6"}) for command in ("include", "exclude", "only")),
]


@pytest.fixture
def program(programs_to_attach: Path) -> Path:
    return programs_to_attach / "controlled"


def told_of(trace: clew.Trace, function: str, pid: int) -> int:
    """How often the order has the entry of a function, in the thread that has its process's number."""
    entries = [
        row["block_id"]
        for row in trace.blocks.to_pylist()
        if (row["symbol"], row["symbol_offset"], row["pid"]) == (function, 0, pid)
    ]
    pieces = trace.path(pid, pid=pid).iter_pieces()
    return sum(int(np.isin(piece.block_ids, entries).sum()) for piece in pieces)


@pytest.mark.parametrize("first", ["counts", "full"])
def test_the_order_is_told_while_it_is_wanted(program: Path, tmp_path: Path, first: str) -> None:
    n_told = n_all = 0
    changes = [("counts", 100), ("full", 7), ("full", 2), ("counts", 300), ("auto", 5), ("full", 50), ("counts", 6)]
    with controlled(program, tmp_path / "out.clew", "--mode", first) as target:
        pid = target.target_pid
        for mode, n_calls in [(first, 40), *changes]:
            assert control(pid, "mode", mode).status == 0
            target.tell(str(n_calls))
            target.read_until(f"did {n_calls}\n".encode())
            n_all, n_told = n_all + n_calls, n_told + n_calls * (mode != "counts")
        finish_well(target)
    recorded = runs.read(tmp_path / "out.clew")
    assert recorded.trace.mode == "full"
    assert executions_of(tmp_path / "out.clew", "counted") == n_all
    assert told_of(clew.Trace(tmp_path / "out.clew"), "counted", pid) == n_told


def test_children_are_as_their_parents_are_then(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        for number, mode in enumerate(("counts", "full", "counts"), 1):
            target.do("mode", mode=mode)
            target.tell("f")
            target.read_until(number * b"child 17\n")
        finish_well(target)
    trace = runs.read(tmp_path / "out.clew").trace
    parent, *children = [row["pid"] for row in trace.processes.to_pylist()]
    assert parent == target.target_pid
    assert len(children) == 3
    ordered = [row["pid"] for row in trace.paths.to_pylist()]
    assert [children[1]] == [pid for pid in children if pid in ordered], "none but the one that came meanwhile"
    assert told_of(clew.Trace(tmp_path / "out.clew"), "counted", children[1]) == 1
    n_calls = {pid: sum(row["executions"] for row in trace.counts.to_pylist() if row["pid"] == pid) for pid in children}
    assert len(set(n_calls.values())) < 3, "they all did the same, but for what the dynamic linker had to find"


def test_a_recording_without_it_is_as_ever(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        target.do("mode", mode="counts")
        finish_well(target)
    trace = runs.read(tmp_path / "out.clew").trace
    assert trace.mode == "counts"
    assert trace.n_rows("paths") == 0


@pytest.mark.parametrize("what", ["include", "exclude"])
def test_what_filters_leave_out_is_in_the_order_and_not_counted(program: Path, tmp_path: Path, what: str) -> None:
    with controlled(program, tmp_path / "out.clew", f"--{what}", "libc.so.6") as target:
        for number, mode in enumerate(("full", "counts", "full", "counts"), 1):
            target.do("mode", mode=mode)
            target.tell("6")
            target.read_until(number * b"did 6\n")
        finish_well(target)
    trace = runs.read(tmp_path / "out.clew").trace
    assert told_of(clew.Trace(tmp_path / "out.clew"), "counted", target.target_pid) == 12
    assert executions_of(tmp_path / "out.clew", "counted") == (24 if what == "exclude" else 0)
    in_library = {row["block_id"] for row in trace.blocks.to_pylist() if row["symbol"] in ("fgets", "_IO_fgets")}
    n_in_library = sum(row["executions"] for row in trace.counts.to_pylist() if row["block_id"] in in_library)
    assert (n_in_library == 0) == (what == "exclude")


def test_filters_change_while_the_order_is_told(program: Path, tmp_path: Path) -> None:
    changes: list[tuple[str, dict[str, str], int, bool]] = [
        ("exclude", {"what": "controlled"}, 100, False),
        ("include", {"what": "controlled"}, 7, True),
        ("only", {"what": "libc.so.6"}, 20, False),
        ("mode", {"mode": "counts"}, 60, False),
        ("include", {"what": "controlled"}, 300, True),
        ("mode", {"mode": "full"}, 5, True),
        ("exclude", {"what": "controlled"}, 30, False),
        ("only", {"what": "controlled"}, 9, True),
    ]
    with controlled(program, tmp_path / "out.clew", "--mode", "full") as target:
        target.tell("40")
        target.read_until(b"did 40\n")
        for command, details, n_calls, _ in changes:
            target.do(command, **details)
            target.tell(str(n_calls))
            target.read_until(f"did {n_calls}\n".encode())
        finish_well(target)
    runs.read(tmp_path / "out.clew")
    assert executions_of(tmp_path / "out.clew", "counted") == 40 + sum(n for *_, n, is_counted in changes if is_counted)
    # The order is of all code, but for the time that none was recorded.
    n_ordered = 40 + sum(n for *_, n, _ in changes) - 60 - 300
    assert told_of(clew.Trace(tmp_path / "out.clew"), "counted", target.target_pid) == n_ordered


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_returns_are_counted_while_their_calls_are(program: Path, tmp_path: Path, mode: str) -> None:
    """Calls of `outer`, and returns to it, are counted as often as they were made while it was recorded."""
    with controlled(program, tmp_path / "out.clew", "--mode", mode, "--exclude", "controlled") as target:
        for change, n_calls in [("", 30), ("include", 9), ("exclude", 50), ("include", 2), ("exclude", 4)]:
            if change:
                target.do(change, what="controlled!outer")
            target.tell(str(n_calls))
            target.read_until(f"did {n_calls}\n".encode())
        finish_well(target)
    trace = runs.read(tmp_path / "out.clew").trace
    symbols = {row["block_id"]: row["symbol"] for row in trace.blocks.to_pylist()}
    counts: Counter[int] = Counter()
    for row in trace.counts.to_pylist():
        if row["edge_id"] is not None:
            counts[row["edge_id"]] += row["executions"]
    ways: Counter[tuple[str, str | None, str | None]] = Counter()
    for edge in trace.edges.to_pylist():
        if counts[edge["edge_id"]]:
            names = symbols.get(edge["source_block_id"]), symbols.get(edge["target_block_id"])
            ways[edge["kind"], *names] += counts[edge["edge_id"]]
    assert executions_of(tmp_path / "out.clew", "outer") == 11
    assert executions_of(tmp_path / "out.clew", "counted") == 0
    assert ways["call", "outer", "counted"] == 11
    assert ways["return", "outer", "outer"] == 11
    assert ways["call", "main", "outer"] == 11


def test_what_is_refused(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "counts.clew") as target:
        with pytest.raises(ControlError, match="tell it `mode auto`"):
            target.do("budget", budget=1)
        assert control(target.target_pid, "mode", "coverage").status == 2
        target.do("mode", mode="auto", budget=10_000)
        with pytest.raises(ControlError, match="not a number of bytes"):
            target.do("budget")
        finish_well(target)
    for mode in ("coverage", "region"):
        with controlled(program, tmp_path / f"{mode}.clew", "--mode", mode) as target:
            with pytest.raises(ControlError, match=f"mode {mode} stays"):
                target.do("mode", mode="full")
            finish_well(target)


@pytest.mark.stress
@pytest.mark.usefixtures("programs")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", HARD)
@pytest.mark.parametrize("options", [(), ("--include", "libc.so.6")], ids=["all", "filtered"])
def test_it_changes_all_the_time(tmp_path: Path, what: str, options: tuple[str, ...]) -> None:
    """Nothing of it is seen by the program, and what is told is what was counted."""
    if shutil.which(HARD[what][0]) is None:
        pytest.skip(f"this machine has no {HARD[what][0]}")
    expected = runs.run(HARD[what])
    numbers = random.Random(7)
    # On a busy machine it may have ended before it was changed often enough.
    for attempt in range(5):
        trace = tmp_path / f"{attempt}.clew"
        n_changes, ended = change_all_the_time(HARD[what], trace, numbers, *options)
        assert ended == (expected.status, expected.stdout, b"")
        assert not check_invariants(clew.Trace(trace))
        if n_changes > 2:
            break
    assert n_changes > 2


def change_all_the_time(
    command: runs.Command, trace: Path, numbers: random.Random, *options: str
) -> tuple[int, tuple[int, bytes, bytes]]:
    """Record a command and change the recording until it ends: how often, and status and output."""
    n_changes = 0
    recorded = runs.clew_command("record", "-q", "-o", trace, *options, "--", *command)
    with runs.start(recorded, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            time.sleep(numbers.random() / 10)
            with suppress(ControlError):
                command, details = numbers.choice(CHANGES)
                ControlClient.find(Pid(process.pid)).do(command, **details)
                n_changes += 1
        output, said = process.communicate()
    return n_changes, (process.returncode, output, said)


@pytest.mark.parametrize("budget", ["0", "0.001"])
def test_a_budget_takes_back_nothing(program: Path, tmp_path: Path, budget: str) -> None:
    """What was recorded while all was wanted is there, however little may be recorded later."""
    with controlled(program, tmp_path / "out.clew", "--mode", "full") as target:
        pid = target.target_pid
        target.tell("40")
        target.read_until(b"did 40\n")
        assert control(pid, "budget", budget).status == 0
        target.tell("9")
        target.read_until(b"did 9\n")
        finish_well(target)
    runs.read(tmp_path / "out.clew")
    assert told_of(clew.Trace(tmp_path / "out.clew"), "counted", pid) >= 40
