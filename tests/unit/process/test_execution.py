"""Threads that are seized because they execute a program."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from clew.address import Pid, Tid
from clew.process import ptrace
from clew.process.execution import Execution
from clew.process.identity import is_traced_here
from clew.recording.following.tracers import has_other_tracer


def test_a_thread_that_can_not_be_stopped_is_let_go_later_and_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    pid = os.fork()
    if pid == 0:
        # Its child waits for the pipe before it executes, and it waits for its child, as vfork has it.
        os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, str(fifo), os.O_RDONLY, 0)])
        signal.pause()
    try:
        while not Path(f"/proc/{pid}/task/{pid}/children").read_text():
            time.sleep(0.001)
        execution = Execution(Tid(pid), Pid(pid))
        with monkeypatch.context() as patch:
            # A wait in the kernel would be one for ever.
            patch.setattr(time, "sleep", lambda _: pytest.fail("it is waited for"))
            if execution.let_go():
                pytest.skip("posix_spawn does not use vfork here")
        with open(fifo, "wb"):
            deadline = time.monotonic() + 10
            while not execution.let_go():
                assert time.monotonic() < deadline
        assert "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_tracer_is_a_thread() -> None:
    """Another thread of the same process is none."""
    found: list[bool] = []
    with subprocess.Popen(["/bin/sleep", "60"]) as sleeper:
        pid = Pid(sleeper.pid)
        is_seized, is_asked = threading.Event(), threading.Event()

        def trace() -> None:
            ptrace.seize(pid, 0)
            found.extend((is_traced_here(pid), has_other_tracer(pid)))
            is_seized.set()
            is_asked.wait(20)
            ptrace.interrupt(pid)
            while ptrace.try_wait(pid) is None:
                time.sleep(0.001)
            ptrace.detach(pid)

        tracing = threading.Thread(target=trace)
        tracing.start()
        assert is_seized.wait(20)
        found.extend((is_traced_here(pid), has_other_tracer(pid)))
        is_asked.set()
        tracing.join()
        sleeper.kill()
    assert found == [True, False, False, True]
