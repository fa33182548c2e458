"""Much of everything: threads, children, signals, blocks; every one of them counted, none of them lost."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.analysis.tables.arrays import to_numpy
from tests.e2e import runs
from tests.programs.build import SOURCES
from tests.programs.load import blocks

pytestmark = [pytest.mark.stress, pytest.mark.timeout(600)]

SOURCE_FOLDER = SOURCES / "load"
TIMEOUT_SECONDS = 300.0
LOAD_SECONDS = int(os.environ.get("CLEW_LOAD_SECONDS", "60"))
MAX_GROWTH = 1.3
MOV_EAX = b"\xb8"


def build(folder: Path, source: Path, *options: str) -> Path:
    """Compile a program of tests/programs/load."""
    program = folder / source.stem
    subprocess.run(["gcc", "-O1", "-pthread", *options, "-o", program, source], check=True)
    return program


def record(folder: Path, name: str, *arguments: str) -> tuple[list[list[int]], runs.Recorded]:
    """Build and record a program that prints lines of numbers; these, and the trace, whole and without losses."""
    program, trace = build(folder, SOURCE_FOLDER / f"{name}.c"), folder / "t"
    run = runs.record([program, *arguments], trace, timeout_seconds=TIMEOUT_SECONDS)
    assert (run.status, run.stderr) == (0, b"")
    return [[int(word) for word in line.split()] for line in run.stdout.splitlines()], runs.read(trace)


def rows_of(recorded: runs.Recorded, symbol: str) -> np.ndarray[Any, Any]:
    """Rows of the blocks that start where a symbol does."""
    columns = recorded.trace.blocks.select(["symbol", "symbol_offset"]).to_pylist()
    return np.array([n for n, row in enumerate(columns) if row == {"symbol": symbol, "symbol_offset": 0}], np.int64)


def executions_by(recorded: runs.Recorded, symbol: str, column: str) -> Counter[int]:
    """How often the block of a symbol ran, by a column of the counts."""
    is_wanted = np.isin(recorded.arrays.count_block, rows_of(recorded, symbol))
    names = to_numpy(recorded.trace.counts[column])[is_wanted].tolist()
    found: Counter[int] = Counter()
    for name, executions in zip(names, recorded.arrays.count_executions[is_wanted].tolist(), strict=True):
        found[name] += executions
    return found


@pytest.mark.parametrize("together", [10, 1000])
def test_a_thousand_threads(together: int, tmp_path: Path) -> None:
    told, recorded = record(tmp_path, "threads", str(together))
    (process,) = recorded.summary["processes"]
    assert len(process["threads"]) == 1001
    assert {thread["end"] for thread in process["threads"]} == {"exit"}
    expected: Counter[int] = Counter()  # a number may be used twice
    for tid, turns in told:
        expected[tid] += turns
    assert executions_by(recorded, "turn", "tid") == expected
    assert recorded.arrays.block_executions[rows_of(recorded, "turn")].sum() == sum(range(2, 1002))


def test_a_thousand_children(tmp_path: Path) -> None:
    told, recorded = record(tmp_path, "forks")
    first, *children = recorded.trace.processes.to_pylist()
    assert len(children) == 1000
    assert {child["parent_pid"] for child in children} == {first["pid"]}
    assert {child["signal"] for child in children} == {None}
    turns = executions_by(recorded, "turn", "process_id")
    found = Counter((child["pid"], turns[child["process_id"]], child["exit_code"]) for child in children)
    assert found == Counter((pid, number, status) for pid, number, status in told)
    assert [(number, status) for _, number, status in told] == [(n + 2, n % 200) for n in range(1000)]


KILLER = """
import random, signal, subprocess, threading, time

def work(seed):
    chance = random.Random(seed)
    for _ in range(400):
        child = subprocess.Popen(["/bin/sleep", "100"], stdout=subprocess.PIPE)
        time.sleep(chance.choice((0, chance.random() * 0.004)))
        kind = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP))
        child.send_signal(kind)
        if kind == signal.SIGSTOP:
            child.send_signal(signal.SIGTERM)
            child.send_signal(signal.SIGCONT)
            kind = signal.SIGTERM
        child.communicate()
        assert child.returncode == -kind, (child.returncode, kind)

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_children_that_are_killed_as_they_begin(tmp_path: Path) -> None:
    trace = tmp_path / "t"
    run = runs.record([sys.executable, "-c", KILLER], trace, timeout_seconds=TIMEOUT_SECONDS)
    assert (run.status, run.stderr) == (0, b"")
    recorded = runs.read(trace)
    first, *children = recorded.trace.processes.to_pylist()
    # Who was killed before its first instruction is not among them.
    assert {(child["parent_pid"], child["signal"]) for child in children} == {
        (first["pid"], signal.SIGKILL),
        (first["pid"], signal.SIGTERM),
    }


def test_a_hundred_thousand_signals(tmp_path: Path) -> None:
    [[handled]], recorded = record(tmp_path, "signals")
    assert handled >= 100_000
    arrays = recorded.arrays
    handler = rows_of(recorded, "handle")
    assert arrays.block_executions[handler].sum() == handled
    into_handler = arrays.is_kind("signal") & np.isin(arrays.edge_target, handler)
    assert arrays.edge_executions[into_handler].sum() == handled


def test_a_hundred_and_fifty_thousand_blocks(tmp_path: Path) -> None:
    source, trace = tmp_path / "blocks.S", tmp_path / "t"
    blocks.write_source(source)
    run = runs.record([build(tmp_path, source)], trace, timeout_seconds=TIMEOUT_SECONDS)
    assert (run.status, run.stderr) == (0, b"")
    recorded = runs.read(trace)
    found: dict[str, list[tuple[int, int]]] = {}
    columns = recorded.trace.blocks.select(["symbol", "app_pc"]).to_pylist()
    for row, executions in zip(columns, recorded.arrays.block_executions.tolist(), strict=True):
        found.setdefault(row["symbol"], []).append((row["app_pc"], executions))
    for number in range(blocks.FUNCTIONS):
        executed = [executions for _, executions in sorted(found[f"function{number}"])]
        assert executed == blocks.expected(number), number


def read_resident_kib(pid: int) -> int:
    """Resident memory of a process."""
    found = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


def record_sampled(command: runs.Command, trace: Path) -> tuple[list[int], list[int]]:
    """Record a program that says nothing but its last words; these, and clew's memory in KiB every 0.1 s until then."""
    process = subprocess.Popen(
        runs.clew_command("record", "-q", "-o", trace, "--", *command),
        stdout=subprocess.PIPE,
        env=runs.environment(),
        start_new_session=True,
    )
    assert process.stdout is not None
    samples = []
    limit = time.monotonic() + LOAD_SECONDS + TIMEOUT_SECONDS
    try:
        while not select.select([process.stdout], [], [], 0.1)[0]:
            assert time.monotonic() < limit
            samples.append(read_resident_kib(process.pid))
        stdout, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0
    return [int(word) for word in stdout.split()], samples


@pytest.mark.timeout(LOAD_SECONDS + 2 * TIMEOUT_SECONDS)
def test_everything_at_once(tmp_path: Path) -> None:
    """Goes on for CLEW_LOAD_SECONDS; what clew needs meanwhile does not grow once it has seen everything."""
    program = build(tmp_path, SOURCE_FOLDER / "mixed.c")
    library = build(tmp_path, SOURCE_FOLDER / "library.c", "-shared", "-fPIC")
    told, samples = record_sampled([program, str(LOAD_SECONDS), library], tmp_path / "t")
    threads, children, programs, signals, codes, libraries = told
    recorded = runs.read(tmp_path / "t")
    first, *others = recorded.trace.processes.to_pylist()
    assert len(others) == children + programs
    assert len(recorded.summary["processes"][0]["threads"]) == 5 + threads
    turns = executions_by(recorded, "turn", "process_id")
    assert Counter(turns[other["process_id"]] for other in others) == {100: children, 0: programs}
    assert executions_by(recorded, "handle", "process_id") == {first["process_id"]: signals}
    assert executions_by(recorded, "library_work", "process_id") == {first["process_id"]: libraries}
    # A signal that came between its two instructions cuts a piece of code in two.
    is_made = [
        row["image_id"] is None and row["bytes"][:1] == MOV_EAX
        for row in recorded.trace.blocks.select(["image_id", "bytes"]).to_pylist()
    ]
    assert recorded.arrays.block_executions[is_made].sum() == codes
    third = len(samples) // 3
    assert third > 10
    assert max(samples[2 * third :]) < MAX_GROWTH * max(samples[third // 2 : third]), samples[:: max(third // 10, 1)]
