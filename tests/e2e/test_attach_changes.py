"""Processes that change while they are attached to: children, new programs, released and many threads; and failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

import clew
from clew.address import Pid
from clew.analysis.tables.totals import summarize_trace
from clew.errors import AttachError, ClewError, ControlError
from clew.process import attach as attach_module
from clew.process.attach import attach as attach_runtime
from clew.process.detach import detach
from clew.process.runtime_image import load_runtime_image
from clew.recording.control.client import ControlClient
from tests.e2e import runs
from tests.e2e.attaching import (
    LIMIT_SECONDS,
    attach,
    attach_here,
    attach_while_it_runs,
    attaching,
    end_attaching,
    start,
    wait_for,
)

CYCLES = int(os.environ.get("CLEW_CYCLES", "1000"))
CYCLES_OF_ONE = 50


def test_a_process_that_starts_others(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "spawning") as target:
        for cycle in range(5):
            run = attach(target.pid, tmp_path / f"{cycle}.clew", seconds=0.1)
            assert run.status == 0, run.stderr
            assert not target.has_runtime()
            runs.read(tmp_path / f"{cycle}.clew")
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


def test_a_process_that_becomes_another_program(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "spawning", "again-and-again") as target:
        run = attach(target.pid, tmp_path / "out.clew", seconds=2.0)
        assert run.status == 0, run.stderr
        assert not target.has_runtime()
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


def test_a_thread_that_was_released(programs_to_attach: Path, tmp_path: Path) -> None:
    """Its alternate stack is its own again, too."""
    with start(programs_to_attach / "releasing") as target:
        with attaching(target.pid, tmp_path / "out.clew") as clew_process:
            target.wait_for(target.is_attached)
            os.kill(target.pid, signal.SIGUSR2)
            target.read_until(b"far\n")
            status, said = end_attaching(clew_process)
        assert status == 0, said
        assert not target.has_runtime()
        assert target.end(number=signal.SIGTERM) == (0, "ready\nfar\ngood\n")


def test_a_process_that_is_left_in_32bit_code(programs_to_attach: Path, tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    with start(programs_to_attach / "visiting") as target:
        with attaching(target.pid, trace) as clew_process:
            target.wait_for(target.is_attached)
            os.kill(target.pid, signal.SIGUSR1)
            target.read_until(b"there\n")
            # It may not have returned from writing that. The loop there is all that takes time.
            before = target.user_ticks()
            wait_for(lambda: target.user_ticks() > before + 1)
            wait_for(partial(has_control, target.pid))
            status, said = end_attaching(clew_process)
        assert status == 0, said
        assert not target.has_runtime()
        assert target.end(number=signal.SIGTERM) == (0, "ready\nthere\n42\n")
    losses = summarize_trace(clew.Trace(trace))["losses"]
    # Whether it is found there, or on the way there, is a matter of time.
    lost = {name for name in ("uncounted_instructions", "released_threads") if losses[name]}
    assert "uncounted_instructions" in lost
    runs.read(trace, lost=frozenset(lost))


def test_a_thread_in_32bit_code_is_waited_for(programs_to_attach: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(programs_to_attach / "visiting", "on") as target:
        os.kill(target.pid, signal.SIGUSR1)
        target.read_until(b"there\n")
        # It may not have returned from writing that. The loop there is all that takes time.
        before = target.user_ticks()
        wait_for(lambda: target.user_ticks() > before + 1)
        monkeypatch.setattr(attach_module, "OTHER_CODE_SECONDS", 0.0)
        with pytest.raises(AttachError, match="stays in 32-bit code"):
            attach_here(target.pid)
        assert not target.has_runtime()
        monkeypatch.setattr(attach_module, "OTHER_CODE_SECONDS", LIMIT_SECONDS)
        is_called = False

        def call_back() -> bool:
            """Asked while it is stopped, too."""
            nonlocal is_called
            if not is_called and target.status("TracerPid") == "0":
                is_called = True
                os.kill(target.pid, signal.SIGTERM)
            return False

        attach_here(target.pid, call_back)
        assert is_called
        assert target.has_runtime()
        assert target.end() == (0, "ready\nthere\n42\n")


def has_control(pid: int) -> bool:
    """Whether its recording has come so far that it listens."""
    with suppress(ControlError):
        return ControlClient.find(Pid(pid)).pid == pid
    return False


@pytest.mark.long
def test_several_hundred_threads(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "many", "300") as target:
        before = target.look()
        for cycle in range(2):
            run = attach(target.pid, tmp_path / f"{cycle}.clew", seconds=0.5)
            assert run.status == 0, run.stderr
            assert target.look() == before
            assert runs.read(tmp_path / f"{cycle}.clew").trace.threads.num_rows == 301
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


def test_too_many_threads(programs_to_attach: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [programs_to_attach / "many", "4200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as alone:
        assert alone.stdout is not None
        can_be = alone.stdout.readline() == b"ready\n"
        alone.kill()
    if not can_be:
        pytest.skip("no process may have 4,200 threads here")
    with start(*command) as target:
        before = target.look()
        run = attach(target.pid, tmp_path / "out.clew")
        assert (run.status, b"has 4201 threads; clew follows up to 4096" in run.stderr) == (1, True)
        assert target.look() == before
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


@pytest.mark.long
def test_a_failure_on_the_way_leaves_nothing(programs_to_attach: Path) -> None:
    def fail(fd: int, *_: object) -> None:
        os.close(fd)
        raise ClewError("the disk is full, say")

    with start(programs_to_attach / "waiting", "3") as target:
        before = target.look()
        for _ in range(3):
            with pytest.raises(ClewError, match="the disk is full, say"):
                attach_runtime(Pid(target.pid), load_runtime_image(), fail)  # type: ignore[arg-type]
            assert target.look() == before
            assert target.status("TracerPid") == "0"
        status, output = target.end(stdin=b"x")
        assert (status, output.splitlines()[-1]) == (0, "good"), output


def test_filters(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "threads") as target:
        assert attach_while_it_runs(target, tmp_path / "out.clew", "--include", "threads").status == 0
        assert target.end(number=signal.SIGTERM)[0] == 0
    recorded = runs.read(tmp_path / "out.clew")
    images = recorded.summary["processes"][0]["images"]
    assert {Path(image["path"]).name for image in images if image["instructions"]} == {"threads"}


def test_from_python(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "busy") as target:
        before = target.look()
        trace = clew.attach(target.pid, duration=0.2, output=tmp_path / "out.clew")
        assert target.look() == before
        assert trace.threads["end"].to_pylist() == ["detached"]
        with pytest.raises(ClewError, match="is this clew itself"):
            clew.attach(os.getpid(), duration=1)
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


def test_a_thread_that_can_not_leave(programs_to_attach: Path, tmp_path: Path) -> None:
    """Told once more, clew writes the trace; the process goes on as it is."""
    with start(programs_to_attach / "vforking", "late") as target:
        children = Path(f"/proc/{target.pid}/task/{target.pid}/children")
        assert target.process.stdin is not None
        with attaching(target.pid, tmp_path / "out.clew") as clew_process:
            target.wait_for(target.is_attached)
            target.process.stdin.write(b"g")
            target.process.stdin.flush()
            target.wait_for(lambda: children.read_text() != "")
            clew_process.send_signal(signal.SIGINT)
            target.wait_for(lambda: target.status("TracerPid") != "0")
            status, said = end_attaching(clew_process)
        assert (status, "the process goes on with clew's runtime in it" in said) == (0, True), said
        assert target.end(stdin=b"x") == (0, "ready\ngood\n")
    runs.read(tmp_path / "out.clew")


def test_leaving_again_after_it_was_given_up(programs_to_attach: Path) -> None:
    """Threads that had parked and go on take back the attempt that they parked for, not the next one."""
    with start(programs_to_attach / "threads") as target:
        attachment = attach_here(target.pid)

        def give_up() -> None:
            if attachment.shared.status_u32("detach_ticket"):
                raise AttachError(attachment.pid, "not now")

        for _ in range(20):
            with pytest.raises(AttachError, match="not now"):
                detach(attachment.pid, attachment.shared, attachment.plan, on_wait=give_up)
        departure = detach(attachment.pid, attachment.shared, attachment.plan, patience_seconds=LIMIT_SECONDS)
        assert departure.seconds < LIMIT_SECONDS / 2
        assert not target.has_runtime()
        assert target.end(number=signal.SIGTERM)[0] == 0


def test_a_critical_section_about_to_be_announced(programs_to_attach: Path, tmp_path: Path) -> None:
    """Attached between the instruction that names the descriptor and the one that announces it."""
    with start(programs_to_attach / "announcing", ready=b"\n") as target:
        if b"no rseq" in target.output:
            pytest.skip("the C library registers no area for restartable sequences")
        with attaching(target.pid, tmp_path / "out.clew") as clew_process:
            target.wait_for(target.is_attached)
            assert target.end(number=signal.SIGUSR1) == (0, "ready\naborted\n")
            _, said = clew_process.communicate(timeout=LIMIT_SECONDS)
        assert clew_process.returncode == 0, said


@pytest.mark.parametrize("name", ["sequences", pytest.param("sequences.static", marks=pytest.mark.stress)])
def test_restartable_sequences_under_way(programs_to_attach: Path, tmp_path: Path, name: str) -> None:
    """Left in the middle of one, a thread goes on where it was aborted, and natively is aborted as before."""
    with start(programs_to_attach / name, ready=b"\n") as target:
        if b"no rseq" in target.output:
            pytest.skip("the C library registers no area for restartable sequences")
        for cycle in range(12):
            run = attach(target.pid, tmp_path / f"{cycle}.clew", "-q", seconds=0.003 * cycle + 0.001)
            assert (run.status, run.stderr) == (0, b"")
            assert not target.has_runtime()
        runs.read(tmp_path / "11.clew")
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["sequences", pytest.param("sequences.static", marks=pytest.mark.stress)])
def test_restartable_sequences_over_and_over(programs_to_attach: Path, name: str) -> None:
    """Attached to wherever a thread may be on its way into one and through it, CLEW_CYCLES times."""
    for _ in range(0, CYCLES, CYCLES_OF_ONE):
        with start(programs_to_attach / name) as target:
            for cycle in range(CYCLES_OF_ONE):
                attachment = attach_here(target.pid)
                time.sleep(0.001 * (cycle % 8))
                detach(attachment.pid, attachment.shared, attachment.plan)
                attachment.shared.close()
                # Until every thread has had a processor, and lost it somewhere.
                time.sleep(0.02)
            assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


def test_a_trap_that_waits_blocked(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "trapping") as target:
        before = target.look()
        for cycle in range(3):
            assert attach(target.pid, tmp_path / f"{cycle}.clew").status == 0
            assert target.look() == before
            assert int(target.status("ShdPnd"), 16) | int(target.status("SigPnd"), 16) == 1 << 4
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


NO_NEW_CODE = """
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
    sys.exit("no PR_SET_MDWE")
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["threads", "spawning", "sequences", "busy"])
def test_where_no_memory_becomes_executable(programs_to_attach: Path, tmp_path: Path, name: str) -> None:
    with start(sys.executable, "-I", "-S", "-c", NO_NEW_CODE, programs_to_attach / name) as target:
        mappings = target.look().mappings
        for cycle in range(2):
            run = attach_while_it_runs(target, tmp_path / f"{cycle}.clew")
            assert run.status == 0, run.stderr
            assert not target.has_runtime()
        # The others map memory for their threads and children meanwhile.
        assert name != "busy" or target.look().mappings == mappings
        status, said = target.end(number=signal.SIGTERM)
    assert (status, said[:6], said[-5:]) == (0, "ready\n", "good\n")
    for cycle in range(2):
        assert runs.read(tmp_path / f"{cycle}.clew").totals["instructions"] > 0
