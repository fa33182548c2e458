"""What was recorded is not lost with the one who recorded it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.forked import Process

BUSY = """import sys, os
print('ready', flush=True)
while not os.path.exists(sys.argv[1]): sum(range(10000))
print('done')"""
LIMIT_SECONDS = 60.0


@pytest.fixture
def stop(tmp_path: Path) -> Iterator[Path]:
    """A file whose being there ends the target, in the end at the latest."""
    path = tmp_path / "stop"
    yield path
    path.touch()


def start_busy(trace: Path, stop: Path) -> Process:
    """A recording of a program that runs until `stop` is there; it has begun."""
    command = runs.clew_command("record", "-q", "-o", trace, "--", sys.executable, "-S", "-c", BUSY, stop)
    process = runs.start(command, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process


def wait_for(path: Path, *, newer_than_ns: int = 0) -> None:
    """Until a file is there that was written after a time."""
    limit = time.monotonic() + LIMIT_SECONDS
    while not path.exists() or path.stat().st_mtime_ns <= newer_than_ns:
        assert time.monotonic() < limit, f"{path} does not come"
        time.sleep(0.01)


def recover(trace: Path) -> runs.Run:
    return runs.run(runs.clew_command("recover", trace))


def view(trace: Path) -> runs.Run:
    return runs.run(runs.clew_command("view", "--no-browser", "--port", "0", trace))


@pytest.mark.parametrize("victim", ["clew", pytest.param("group", marks=pytest.mark.long)])
def test_a_recording_that_was_killed(tmp_path: Path, stop: Path, victim: str) -> None:
    trace = tmp_path / "t"
    process = start_busy(trace, stop)
    wait_for(trace / "counters.journal", newer_than_ns=time.time_ns())
    if victim == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    run = view(trace)
    assert (run.status, b"finish it with `clew recover`" in run.stderr) == (1, True)
    run = recover(trace)
    assert run.status == 0, run
    assert sorted(path.name for path in trace.iterdir() if path.is_file()) == ["manifest.json"]
    recorded = runs.read(trace)
    assert recorded.totals["instructions"] > 1_000_000
    assert {thread["end"] for thread in recorded.summary["processes"][-1]["threads"]} == {"lost"}
    if victim == "clew":
        # The target goes on, unharmed.
        stop.touch()
        assert process.stdout is not None and process.stdout.read() == b"done\n"


def test_what_is_being_recorded_is_left_alone(tmp_path: Path, stop: Path) -> None:
    trace = tmp_path / "t"
    process = start_busy(trace, stop)
    run = recover(trace)
    assert run.status == 1
    assert b"is being recorded" in run.stderr
    run = view(trace)
    assert (run.status, run.stdout, run.stderr.count(b"\n")) == (1, b"", 1)
    for told in (f"is being recorded by process {process.pid}:", "`clew record --view` or `clew attach --view`"):
        assert told in run.stderr.decode()
    stop.touch()
    assert process.wait(LIMIT_SECONDS) == 0
    assert runs.read(trace).totals["instructions"] > 0
    assert b"is whole already" in recover(trace).stderr


def test_nothing_to_recover(tmp_path: Path) -> None:
    assert recover(tmp_path).status == recover(tmp_path / "none").status == 2
    (tmp_path / "recording.journal").write_bytes(b"nonsense" * 100)
    run = recover(tmp_path)
    assert run.status == 1
    assert run.stderr.count(b"\n") == 1 and b"beginning is missing" in run.stderr
