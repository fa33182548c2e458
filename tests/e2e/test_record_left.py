"""`clew record` that is told to leave: its targets go on natively, as if they had never been recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from clew.address import Pid
from clew.process import ptrace
from tests.e2e import runs
from tests.e2e.attaching import (
    LIMIT_SECONDS,
    attach,
    find_descendants,
    has_shared_memory,
    is_pending,
    start,
    wait_for,
    wait_for_a_while_of,
)
from tests.e2e.forked import Process

IN_IT = "runtime in it"
WALL = 0x40000000
TOGETHER_SECONDS = 0.2
"""Signals that are sent one after the other within this time may come at the same time."""


@contextmanager
def recording(trace: Path, *command: str | Path, **how: Any) -> Iterator[Process]:
    """`clew record` at work; whatever is left of it and its targets in the end is killed."""
    words = runs.clew_command("record", "-o", trace, "--", *command)
    # In a process group of its own, which is not interrupted with the tests.
    null = subprocess.DEVNULL
    process = runs.start(words, stdin=null, stdout=null, stderr=subprocess.PIPE, **how)
    try:
        yield process
    finally:
        assert process.stderr is not None
        # Targets in sessions of their own have clew's stderr still.
        process.kill()
        for pid in find_holders(process.stderr.fileno()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def find_holders(fd: int) -> list[int]:
    """The other processes that have the file that is open as `fd`."""
    own, found = os.readlink(f"/proc/self/fd/{fd}"), []
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            if int(folder.parent.name) != os.getpid() and own in map(os.readlink, folder.iterdir()):
                found.append(int(folder.parent.name))
    return found


def tell_to_leave(process: Process, *numbers: int) -> tuple[int, str]:
    for number in numbers:
        process.send_signal(number)
        # Another one of the same number would be one with it.
        wait_for(lambda number=number: not is_pending(process.pid, number))  # type: ignore[misc]
    assert process.stderr is not None
    # Until its end: the targets have the same stderr still.
    wait_for(lambda: process.poll() is not None)
    return process.returncode, os.read(process.stderr.fileno(), 1 << 20).decode()


def begin_to_leave(process: Process, pid: int) -> None:
    """Send SIGTERM until clew tries to leave a process: two that come at the same time may be one."""

    def is_told() -> bool:
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + TOGETHER_SECONDS
        while not is_traced(pid) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return is_traced(pid) or process.poll() is not None

    wait_for(is_told)


def is_traced(pid: int) -> bool:
    return "\nTracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.long
def test_a_shell_and_its_commands(tmp_path: Path) -> None:
    """A second SIGTERM means clew itself: the target, which gets both, ignores them."""
    counted = tmp_path / "counted"
    loop = f"trap '' TERM; while :; do /bin/echo x | /bin/cat >> {counted}; (exit 3) && exit 1; done"
    with recording(tmp_path / "t", "bash", "-c", loop) as process:
        wait_for(lambda: counted.exists() and counted.stat().st_size > 20)
        bash = find_descendants(process.pid)[0]
        status, said = tell_to_leave(process, signal.SIGTERM, signal.SIGTERM)
        assert status == 128 + signal.SIGTERM
        assert "the target goes on without it" in said and IN_IT not in said, said
        assert not any(has_shared_memory(pid) for pid in [bash, *find_descendants(bash)])
        size_bytes = counted.stat().st_size
        wait_for(lambda: counted.stat().st_size > size_bytes + 20)
        # As it was: it can be attached to.
        assert attach(bash, tmp_path / "again").status == 0
    recorded = runs.read(tmp_path / "t")
    assert recorded.summary["processes"][0]["exit"] == {"code": None}


@pytest.mark.parametrize(
    "name", ["threads", pytest.param("threads.static", marks=pytest.mark.stress), "registers", "sequences"]
)
@pytest.mark.long
def test_a_program_recorded_from_its_start(programs_to_attach: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    # The handler of SIGTERM comes with the program: it gets the signals that are meant for clew, too.
    script = f"{programs_to_attach / name} > {out} & echo $! > {tmp_path / 'pid'}"
    with recording(tmp_path / "t", "setsid", "--wait", "sh", "-c", script) as process:
        wait_for(lambda: out.exists() and b"ready" in out.read_bytes())
        wait_for(lambda: len(find_descendants(process.pid)) == 1)
        pid = int((tmp_path / "pid").read_text())
        wait_for_a_while_of(pid)
        status, said = tell_to_leave(process, signal.SIGINT)
        assert (status, IN_IT in said) == (0, False), said
        assert not has_shared_memory(pid)
        assert attach(pid, tmp_path / "again").status == 0
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: out.read_bytes().endswith(b"good\n"))
    threads = runs.read(tmp_path / "t").trace.threads.to_pylist()
    assert "detached" in {thread["end"] for thread in threads if thread["pid"] == pid}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_descendants_that_run_on_at_a_signal(programs_to_attach: Path, tmp_path: Path, number: int) -> None:
    """The program itself has ended: Ctrl-C, or one SIGTERM, ends the recording of those that still run."""
    out = tmp_path / "out"
    script = f"{programs_to_attach / 'busy'} > {out} & exit 5"
    with recording(tmp_path / "t", "setsid", "--wait", "sh", "-c", script) as process:
        wait_for(lambda: out.exists() and b"ready" in out.read_bytes())
        wait_for(lambda: len(find_descendants(process.pid)) == 1)
        (child,) = find_descendants(process.pid)
        wait_for_a_while_of(child)
        status, said = tell_to_leave(process, number)
        assert (status, IN_IT in said) == (5, False), said
        assert not has_shared_memory(child)
        os.kill(child, signal.SIGTERM)
        wait_for(lambda: out.read_bytes() == b"ready\ngood\n")
    runs.read(tmp_path / "t")


@pytest.mark.long
@pytest.mark.parametrize("is_background", [False, True])
def test_the_way_to_leave_descendants_is_told(tmp_path: Path, is_background: bool) -> None:
    """A shell that runs a script starts its background jobs with SIGINT ignored."""
    how = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)} if is_background else {}
    with recording(tmp_path / "t", "sh", "-c", "sleep 100 & exit 5", **how) as process:
        assert process.stderr is not None
        told = process.stderr.readline().decode()
        way = f"SIGTERM to clew (kill {process.pid})"
        assert f"are recorded, until {way if is_background else f'Ctrl-C or {way}; Ctrl-C reaches'}" in told
        assert is_background != ("Ctrl-C" in told)
        if is_background:
            process.send_signal(signal.SIGINT)
        assert tell_to_leave(process, signal.SIGTERM)[0] == 5
    runs.read(tmp_path / "t")


@pytest.mark.long
def test_who_can_not_be_left_stays_recorded_and_runs_on(programs_to_attach: Path, tmp_path: Path) -> None:
    out, fifo = tmp_path / "out", tmp_path / "fifo"
    os.mkfifo(fifo)
    script = f"trap '' TERM; exec {programs_to_attach / 'vforking'} late < {fifo} > {out}"
    with recording(tmp_path / "t", "sh", "-c", script) as process, open(fifo, "wb", buffering=0) as pipe:
        pipe.write(b"g")
        wait_for(lambda: len(find_descendants(process.pid)) == 2)
        pid, _ = find_descendants(process.pid)
        begin_to_leave(process, pid)
        status, said = tell_to_leave(process, signal.SIGTERM)
        assert (status, IN_IT in said) == (128 + signal.SIGTERM, True), said
        assert has_shared_memory(pid)
        pipe.write(b"x")
        wait_for(lambda: b"good\n" in out.read_bytes())
    runs.read(tmp_path / "t")


def test_a_termination_reaches_the_program_that_the_first_one_became(tmp_path: Path) -> None:
    script = "exec sh -c 'trap \"exit 6\" TERM; touch ready; while :; do sleep 0.01; done'"
    with recording(tmp_path / "t", "sh", "-c", f"cd {tmp_path}; {script}") as process:
        wait_for(lambda: (tmp_path / "ready").exists())
        assert tell_to_leave(process, signal.SIGTERM)[0] == 6


@pytest.mark.parametrize("number", [0, signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_program_that_a_debugger_keeps_when_it_has_ended(number: int, tmp_path: Path) -> None:
    """Its status comes when that lets it go; a signal ends the wait."""
    script = "echo ready; read line; exit 7"
    with start(*runs.clew_command("record", "-o", tmp_path / "t", "--", "sh", "-c", script), stderr=-1) as clew:
        program = Pid(find_descendants(clew.pid)[0])
        ptrace.seize(program, 0)
        try:
            assert clew.process.stdin is not None and clew.process.stderr is not None
            clew.process.stdin.write(b"\n")
            clew.process.stdin.flush()
            line = clew.process.stderr.readline().decode()
            assert "whoever traces it has not let it go" in line and f"kill {clew.pid}" in line
            if number:
                clew.process.send_signal(number)
                assert clew.process.wait(LIMIT_SECONDS) == 7
        finally:
            os.waitpid(program, WALL)
        assert clew.end()[0] == 7
    assert runs.read(tmp_path / "t").summary["processes"][0]["exit"] == {"code": 7}
