"""Events that are not taken in time: they are dropped, or the program waits, and it can be stopped all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from subprocess import DEVNULL

import pytest

import clew
from clew.sessions.events import event_sink
from tests.programs.build import SOURCES, build_plain
from tests.sessions.event_arrays import ALL, FOREVER, Array, calls_of


def test_too_much_is_dropped_and_counted(called: Path) -> None:
    with clew.spawn([called, "3000"], mode="full", stdout=DEVNULL) as session:
        stream = session.follow(events={"exec"}, queue_batches=2, on_full="drop")
        session.resume()
        assert session.wait(60) >= 0
        time.sleep(0.5)
        received = sum(len(batch) for batch in stream)
        assert received == stream.n_received
        assert stream.n_dropped > 0
        assert received + stream.n_dropped == sum(session.trace.paths["instructions"].to_pylist())


def test_a_program_waits_for_who_takes_its_events(called: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sink, "MOST_WAITING_BYTES", 1 << 16)
    turns = 2_000_000
    with clew.spawn([called, str(turns)], stdout=DEVNULL) as session:
        stream = session.follow(events={"call"}, queue_batches=1)
        add = session.find("add")
        session.resume()
        with pytest.raises(TimeoutError):
            session.wait(1)
        assert sum(calls_of(batch, add) for batch in stream) == 3 * turns
        assert session.wait(60) >= 0 and stream.n_dropped == 0


def test_a_program_that_waits_is_stopped_all_the_same(called: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sink, "MOST_WAITING_BYTES", 1 << 16)
    with clew.spawn([called, FOREVER, "2"], stdout=DEVNULL) as session:
        stream = session.follow(events={"call"}, queue_batches=1)
        session.resume()
        for _ in range(5):
            while not stream.is_full:
                time.sleep(0.01)
            # Both threads find no room soon.
            time.sleep(0.2)
            session.pause()
            assert {thread.state for thread in session.threads} == {"stopped"}
            session.resume()
        session.follow(session.pid, events={"ret"})
        session.unfollow()


def test_what_a_callback_raises_stops_no_program(called: Path) -> None:
    def fail(batch: Array) -> None:
        raise LookupError(f"{len(batch)} events")

    with pytest.raises(LookupError), clew.spawn([called, "20000"], stdout=DEVNULL) as session:
        session.follow(events=ALL, queue_batches=1)
        session.on_receive(fail)
        session.resume()
        while session.state == "running":
            time.sleep(0.01)
        assert session.exit_code is not None
        session.wait(60)


def test_a_session_ends_though_nobody_takes_its_events(called: Path) -> None:
    with clew.spawn([called, FOREVER], stdout=DEVNULL) as session:
        session.follow(events=ALL, queue_batches=1)
        session.resume()
        time.sleep(0.5)
    program = subprocess.Popen([called, FOREVER], stdout=DEVNULL)
    try:
        with clew.attach_session(program.pid) as session:
            session.follow(events=ALL, queue_batches=1)
            time.sleep(0.5)
            session.pause()
            assert session.state == "stopped"
            session.resume()
        os.kill(program.pid, 0)
        assert program.poll() is None
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("clew-")]


@pytest.mark.parametrize("seconds", [1, pytest.param(6, marks=pytest.mark.long)])
def test_a_thread_may_be_stopped_in_the_midst_of_a_decision(seconds: int) -> None:
    program = build_plain(SOURCES / "sessions/decisions.c", "-O1")
    with clew.spawn([program], mode="full", stdout=DEVNULL) as session:
        stream = session.follow(events={"block"}, on_full="drop")
        session.resume()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not stream.n_damaged:
            os.kill(session.pid, signal.SIGSTOP)
            # It is looked at every tenth of a second.
            time.sleep(0.12)
            os.kill(session.pid, signal.SIGCONT)
            time.sleep(0.001)
        assert stream.n_damaged == 0
        session.kill()
