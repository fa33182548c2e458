"""A probed program is followed from one of its events on: nothing is missed there, and nothing told twice.

What the program prints is how often what was called; where it was taken over a recording from the start is cut.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import UsageError
from clew.trace import Trace
from tests.e2e import runs
from tests.e2e.probed_program import PROBES
from tests.programs.build import build_plain

Event = dict[str, Any]


def program() -> Path:
    return build_plain(PROBES / "probed_taken_over.c", "-O1", "-g", "-pthread", "-no-pie")


class Traced:
    """`clew trace` of the program: what it printed, what was said, the events, the trace."""

    def __init__(self, folder: Path, *options: str, words: tuple[object, ...]) -> None:
        self.events_path, self.trace_path = folder / "events.json", folder / "recorded.clew"
        where: list[str | Path] = ["--format", "json", "-o", self.events_path, "--record-output", self.trace_path]
        self.command: list[str | Path] = [*runs.CLEW, "trace", *where, "-t", "arg1", "-t", "arg2", *options]
        self._words = [str(word) for word in words]
        self.out = self.err = ""
        self.status = 0

    def run(self) -> Traced:
        """From the program's start."""
        command: list[str | Path] = [*self.command, "--", program(), *self._words]
        done = subprocess.run(command, env=runs.environment(), capture_output=True, text=True, check=False, timeout=120)
        self.out, self.err, self.status = done.stdout, done.stderr, done.returncode
        return self

    def attach(self) -> Traced:
        """To the program while it waits for a line."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([program(), *self._words, "stay"], **pipes) as process:  # type: ignore[call-overload]
            assert process.stdout.readline() == "ready\n"
            command: list[str | Path] = [*self.command, "-p", str(process.pid)]
            tracing = subprocess.Popen(command, env=runs.environment(), stderr=subprocess.PIPE, text=True)
            wait_for_probe(process.pid)
            self.out, _ = process.communicate("\n", timeout=120)
            self.status = process.returncode
            _, self.err = tracing.communicate(timeout=60)
            assert tracing.returncode == 0, self.err
        return self

    def events(self, name: str) -> list[Event]:
        lines = map(json.loads, self.events_path.read_text().splitlines())
        return [one for one in lines if one.get("event") == name]

    def n_lost(self) -> int:
        return sum(json.loads(line).get("lost", 0) for line in self.events_path.read_text().splitlines())

    def check_steps(self, n_threads: int, n_calls: int, *, verifies: bool = True) -> None:
        """Each call of each thread has one event where it begins and one where it returns, in order."""
        begun, returned = defaultdict(list), defaultdict(list)
        for one in self.events("step_once_entry"):
            begun[one["fields"]["arg2"]].append(one["fields"]["arg1"])
        for one in self.events("step_once_exit"):
            returned[one["tid"]].append(one["fields"]["retval"])
        assert {thread: list(range(n_calls)) for thread in range(n_threads)} == begun
        results = sorted([2 * number + thread for number in range(n_calls)] for thread in range(n_threads))
        assert sorted(returned.values()) == results
        total = sum(map(sum, results))
        assert self.out.startswith(f"calls {n_threads * n_calls} sum {total} "), self.err
        assert "is followed from there on" in self.err and self.status == 0, self.err
        if verifies:
            check: list[str | Path] = [*runs.CLEW, "verify", self.trace_path]
            done = subprocess.run(check, env=runs.environment(), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout


def wait_for_probe(pid: int) -> None:
    """Until the function's first byte leads elsewhere."""
    symbol = next(line for line in symbols() if line.endswith(" step_once"))
    address, before = int(symbol.split()[0], 16), b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            found = os.pread(memory.fileno(), 8, address)
        before = before or found
        if found != before:
            return
        time.sleep(0.01)
    raise AssertionError("no probe came")


def symbols() -> list[str]:
    return subprocess.run(["nm", program()], capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_thread_is_followed_from_its_event_on(tmp_path: Path) -> None:
    """The call that is open then has its return, and so has the one that it was called by."""
    traced = Traced(
        tmp_path,
        *("--function", "step_once", "--function", "deeper", "--on", "deeper_entry:arg1 == 150", "record"),
        words=(1, 300, 1000),
    ).run()
    traced.check_steps(1, 300)
    inner = [one["fields"]["retval"] for one in traced.events("deeper_exit")]
    assert inner == [number & 7 for number in range(300)]
    assert [one["fields"]["arg1"] for one in traced.events("deeper_entry")] == list(range(300))


def test_the_first_block_is_where_the_event_was(tmp_path: Path) -> None:
    """And the rest is what a recording from the start has behind that: the blocks' executions are as many."""
    words, n_calls, nth = (1, 40), 40, 25
    traced = Traced(
        tmp_path, "--function", "step_once", "--on", f"step_once_entry:arg1 == {nth}", "record", words=words
    ).run()
    traced.check_steps(1, n_calls)
    address = int(traced.events("step_once_entry")[0]["fields"]["ip"], 16)
    own = executions(traced.trace_path)
    starts = [one for one in Trace(traced.trace_path).events.to_pylist() if one["kind"] == "thread_start"]
    assert [int(json.loads(one["details"])["app_pc"], 16) for one in starts] == [address]
    whole = tmp_path / "whole.clew"
    record: list[str | Path] = [*runs.CLEW, "record", "--mode", "full", "-o", whole, "--", program(), *map(str, words)]
    subprocess.run(record, env=runs.environment(), capture_output=True, check=True, timeout=120)
    everything = executions(whole)
    assert own[address] == n_calls - nth and everything[address] == n_calls
    # What main and `work` do in front of the call once was done before.
    inside = {line.split()[2]: int(line.split()[0], 16) for line in symbols() if len(line.split()) == 3}
    assert own[inside["deeper"]] == n_calls - nth and everything[inside["deeper"]] == n_calls
    assert inside["main"] not in own and everything[inside["main"]] == 1


def executions(path: Path) -> dict[int, int]:
    """How often blocks were executed, by their addresses."""
    trace = Trace(path)
    addresses = {one["block_id"]: one["app_pc"] for one in trace.blocks.to_pylist()}
    found: dict[int, int] = defaultdict(int)
    for one in trace.counts.to_pylist():
        if one["block_id"] is not None:
            found[addresses[one["block_id"]]] += one["executions"]
    return found


@pytest.mark.parametrize("event", ["step_once_entry:arg1 == 500", "step_once_exit:retval == 1002"])
def test_threads_that_come_there_at_once_are_all_followed(tmp_path: Path, event: str) -> None:
    """Several wait there then, and others are in handlers."""
    traced = Traced(tmp_path, "--function", "step_once", "--on", event, "record", words=(4, 1500, 20000)).run()
    assert not traced.n_lost()
    traced.check_steps(4, 1500, verifies=False)


def test_a_running_process_is_followed(tmp_path: Path) -> None:
    options = ("--function", "step_once", "--on", "step_once_entry:arg1 == 700 && arg2 == 3", "record")
    Traced(tmp_path, *options, words=(4, 1500, 20000, 0)).attach().check_steps(4, 1500, verifies=False)


@pytest.mark.parametrize("event", ["step_once_entry:arg1 == 400", "tick_entry:var:n_handled == 15"])
def test_handlers_of_signals_go_on(tmp_path: Path, event: str) -> None:
    """Where one of them has interrupted a handler of probes it is not told, and counted: once where it begins, and once
    where it returns."""
    options = ("--function", "step_once", "--function", "tick", "--on", event, "record")
    traced = Traced(tmp_path, *options, words=(2, 1500, 20000, 300)).run()
    traced.check_steps(2, 1500, verifies=False)
    handled = int(traced.out.split()[-1])
    begun, returned = len(traced.events("tick_entry")), len(traced.events("tick_exit"))
    assert begun + returned + traced.n_lost() == 2 * handled and begun > 15


def test_the_status_is_the_program_s(tmp_path: Path) -> None:
    options = ("--function", "step_once", "--on", "step_once_entry:arg1 == 5", "record")
    traced = Traced(tmp_path, *options, words=(1, 10, 0, 0, "fail")).run()
    assert traced.status == 3 and len(traced.events("step_once_exit")) == 10


def test_a_program_that_ends_meanwhile_has_ended(tmp_path: Path) -> None:
    """It is killed at several moments around the event: what it came to is there, and nothing waits for it."""
    for delay_ms in (0, 40, 120):
        folder = tmp_path / str(delay_ms)
        folder.mkdir()
        options = ("--function", "step_once", "--on", "step_once_entry:arg1 == 20", "record")
        traced = Traced(folder, *options, words=())
        command: list[str | Path] = [*traced.command, "--", "sh", "-c", f"sleep 0; exec {program()} 2 100000 100000"]
        process = subprocess.Popen(command, env=runs.environment(), stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not traced.events_path.exists() or "step_once_entry" not in traced.events_path.read_text():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.001)
        time.sleep(delay_ms / 1000)
        line = json.loads(traced.events_path.read_text().split("\n")[0])
        os.kill(line["pid"], signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 128 + signal.SIGKILL, err
        assert "internal error" not in err


def test_what_can_not_be_followed_keeps_its_probes(tmp_path: Path) -> None:
    """It is said why, and nothing is missing."""
    options = ("--function", "step_once", "--on", "step_once_entry:arg1 == 5", "record")
    traced = Traced(tmp_path, *options, words=(1, 50, 0, 0, "filter")).run()
    assert traced.status == 0 and traced.out.startswith("calls 50 "), traced.err
    assert "is not followed" in traced.err and "seccomp" in traced.err and not traced.trace_path.exists()
    assert [one["fields"]["arg1"] for one in traced.events("step_once_entry")] == list(range(50))
    assert len(traced.events("step_once_exit")) == 50


def test_tables_have_the_trace_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    options = ["--function", "step_once", "--on", "step_once_entry:arg1 == 5", "record", "--record-mode", "counts"]
    command: list[str | Path] = [*runs.CLEW, "trace", *options, "--format", "parquet", "-o", folder, "--", program()]
    subprocess.run(command, env=runs.environment(), capture_output=True, check=True, timeout=120)
    assert Trace(folder / "recorded.clew").mode == "counts"
    assert not list(tmp_path.glob("*recorded.clew")) and (folder / "events.parquet").is_file()


def test_from_python(tmp_path: Path) -> None:
    """A probe that is added when the process is followed already is the engine's, too."""
    output = tmp_path / "recorded.clew"
    with clew.probe_session([str(program()), "2", "4000", "100000"], stdout=subprocess.PIPE) as session:
        probe = session.probe("step_once", function=True, capture=["arg1", "arg2"])
        session.record_on("step_once", output, condition="arg1 == 100 && arg2 == 1")
        with pytest.raises(UsageError):
            session.record_on("step_once", tmp_path / "another")
        session.resume()
        deadline = time.monotonic() + 60
        while not session.notes:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        before = session.recorded
        assert "is followed from there on" in session.notes[0] and before is None
        later = session.probe("deeper", capture="arg1")
        assert {one.backend for one in (*probe.places, *later.places)} == {"engine"}
        assert session.wait(60) == 0 and 0 < later.n_events < 8000
        rows = [row for row in probe.read().to_pylist() if row["event"] == "step_once_entry"]
    assert session.n_lost == 0
    assert sorted((row["arg2"], row["arg1"]) for row in rows) == [(one, two) for one in (0, 1) for two in range(4000)]
    assert session.recorded is not None and session.recorded.directory == output


@pytest.mark.parametrize(
    "options",
    [
        ["--on", "step_once", "record", "--on", "step_once", "stop"],
        ["--on", "step_once", "record", "--snapshot", "64k"],
        ["--on", "step_once", "record", "--unsafe", "--set", "rdi=1"],
        ["--on", "step_once", "record", "--record-mode", "much"],
        ["--on", "step_once", "record", "--backend", "engine"],
        ["--record-mode", "full"],
    ],
)
def test_what_does_not_go_together_is_refused(options: list[str]) -> None:
    command: list[str | Path] = [*runs.CLEW, "trace", "--function", "step_once", *options, "--", program()]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith(b"clew: ") and not done.stdout
