"""Attaching to a process tells what its threads wait in, which they began before anybody looked."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import clew
from clew.api.reading import load_built_in
from clew.sessions.api_calls import ApiCall, ApiLog
from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

WAITS = {"read": "0 ", "poll": "7 ", "nanosleep": "230 ", "futex": "202 "}
"""What the program waits in, and how the number of that is shown."""


@contextmanager
def waiting(how: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that waits in a call until a byte comes, or a moment has passed."""
    program = build_plain(SOURCES / "api" / "waiting.c", "-O1", "-pthread")
    with subprocess.Popen([program, how], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        shown = Path(f"/proc/{process.pid}/syscall")
        runs.wait_until(lambda: shown.read_text().startswith(WAITS[how]))
        try:
            yield process
        finally:
            process.kill()


def calls_of(log: ApiLog, how: str, *, is_last: bool = False) -> list[ApiCall]:
    """Those that wait. Some the kernel begins anew by a call of its own when a thread was stopped in them."""
    calls = log.read(is_last=is_last)
    names = (how, f"clock_{how}", "restart_syscall")
    # Another thread wakes the first one.
    return [call for call in calls if call.function.name in names and call.tid == call.pid]


@pytest.mark.parametrize("mode", ["coverage", "full"])
@pytest.mark.parametrize("how", WAITS)
def test_what_returns_is_told_from_where_it_was_asked_for(how: str, mode: str) -> None:
    with waiting(how) as process, clew.attach_session(process.pid, mode=mode) as session:
        log = ApiLog(session, load_built_in())
        asked_ns = time.time_ns()
        assert not log.read()
        assert process.stdin is not None
        time.sleep(0.2)
        process.stdin.write(b"x")
        process.stdin.flush()
        found: list[ApiCall] = []

        def has_come() -> bool:
            found.extend(calls_of(log, how))
            return bool(found)

        runs.wait_until(has_come)
        call = found[0]
        assert call.result is not None and not call.has_failed
        assert call.time_ns < asked_ns + 1_000_000
        assert call.duration_ns is not None and 100_000_000 < call.duration_ns < 60_000_000_000


@pytest.mark.parametrize("how", ["read", "poll", "futex"])
def test_what_does_not_return_is_told_where_the_process_is_left(how: str) -> None:
    with waiting(how) as process:
        with clew.attach_session(process.pid, mode="coverage") as session:
            log = ApiLog(session, load_built_in())
            assert not log.read()
            session.detach()
            calls = calls_of(log, how, is_last=True)
            assert [(call.result, call.duration_ns) for call in calls] == [(None, None)]
        # It waits on, and ends as it would have.
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.close()
        assert process.wait(60) == 0
