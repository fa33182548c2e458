"""Breakpoints that somebody else puts into code that is followed."""

from __future__ import annotations

import os
import time
from subprocess import PIPE

import pytest

import clew
from clew.address import Tid
from clew.process import ptrace
from tests.programs.build import build_all, programs_to_attach

BREAKPOINT, NOP = b"\xcc", b"\x90"
TURNS = 20
"""Each time the thread comes to the dispatcher before its next trap stops it, or does not."""

LATE_SECONDS = 0.003


def test_a_thread_that_is_about_to_be_stopped_meets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = (one for one in programs_to_attach() if one.name == "attach/breakable")
    build_all([program])
    interrupt = ptrace.interrupt
    interrupted: list[Tid] = []

    def interrupt_late(tid: Tid) -> None:
        if tid != session.pid:
            # The thread that comes to the breakpoint has a tracer, and runs.
            time.sleep(LATE_SECONDS)
            interrupted.append(tid)
        interrupt(tid)

    with clew.spawn([program.path], stdin=PIPE, stdout=PIPE) as session:
        session.resume()
        assert session.stdin is not None and session.stdout is not None
        stdin, stdout = session.stdin, session.stdout
        address = int(stdout.readline().split()[1], 16)

        def ask(line: bytes) -> bytes:
            stdin.write(line)
            stdin.flush()
            return stdout.readline()

        with open(f"/proc/{session.pid}/mem", "r+b", buffering=0) as memory:
            os.pwrite(memory.fileno(), BREAKPOINT, address)
            assert ask(b"t\n") == b"traps\n"
            monkeypatch.setattr(ptrace, "interrupt", interrupt_late)
            for _ in range(TURNS):
                # All threads are stopped for it.
                session.prefetch([address])
            assert len(interrupted) >= TURNS
            assert ask(b"t\n") == b"traps\n"
            os.pwrite(memory.fileno(), NOP, address)
        assert ask(b"f\n") == b"free\n"
        stdin.close()
        assert session.wait(60) == 0
        assert not any(session.trace.manifest.losses.values()), session.trace.manifest.losses
        assert not session.trace.verify()
