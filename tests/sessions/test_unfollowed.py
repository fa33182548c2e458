"""Threads that are not followed run natively, beside those that are, and clew has them in its hands all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE

import numpy as np
import pytest

import clew
from clew.protocol.codec import FlowKind
from clew.recording.sinks.sink import ThreadRow
from clew.sessions.choice import FollowedThread
from clew.sessions.events import decoder
from clew.sessions.events.event_sink import _Process
from tests.e2e.attaching import wait_for
from tests.programs.build import SOURCES, build_plain, find

pytestmark = pytest.mark.usefixtures("programs")

FOREVER = str(10**12)
BUSY = str(10**10)
"""Turns without a rest in between; they take half a minute."""
TURNS = 3 * 10**8
"""They take a second."""
MANY = 10**6
"""They take a moment, while a reading begins."""
GATHERED_SECONDS = 0.4


@pytest.fixture(scope="module")
def workers() -> Path:
    return build_plain(SOURCES / "sessions" / "workers.c", "-O1", "-pthread")


def thread_named(session: clew.Session, name: str) -> clew.SessionThread:
    """The thread that is called so, once there is one."""
    for _ in range(100):
        for thread in session.threads:
            if thread.name == name:
                return thread
        time.sleep(0.05)
    raise AssertionError(f"no thread {name}")


def test_only_who_is_followed_is_told_and_recorded(workers: Path) -> None:
    refused = threading.Event()

    def choose(thread: FollowedThread) -> bool:
        if thread.name == "other":
            refused.set()
        return thread.name == "chosen"

    with clew.spawn([workers, "2000", str(TURNS), "wait"], stdin=PIPE, stdout=PIPE) as session:
        session.follow(choose, events={"call"})
        work = session.find("work")
        session.resume()
        assert refused.wait(60) and session.stdin is not None
        # How long it is followed until it is known that it is not to be says nothing.
        session.stdin.write(b"!")
        session.stdin.flush()
        events = np.concatenate(list(session.events()))
        assert session.wait(60) == 0
        assert session.stdout is not None
        tids = {name: int(tid) for name, tid in (line.split() for line in session.stdout.read().decode().splitlines())}
        trace = session.trace
        assert not trace.verify()
        totals = {row["tid"]: row["instructions"] for row in trace.threads.to_pylist()}
    calls = events[events["target"] == work]
    assert set(calls["thread"].tolist()) == {tids["chosen"]}
    # None of them is missing, although the thread gave itself its name.
    assert len(calls) == 2000
    # Of so many turns, each of several instructions.
    assert totals[tids["other"]] < TURNS


def test_the_name_of_who_is_gone_is_waited_for(workers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path is taken while it runs, read when it is gone, and its name comes last of all."""
    tell = _Process.tell_thread

    def tell_late(self: _Process, stream: int, slot: int, row: ThreadRow) -> None:
        time.sleep(3 * GATHERED_SECONDS)
        tell(self, stream, slot, row)

    monkeypatch.setattr(_Process, "tell_thread", tell_late)
    monkeypatch.setattr(decoder, "ROUND_SECONDS", GATHERED_SECONDS)
    monkeypatch.setattr(decoder, "ROUND_BYTES", 1 << 40)
    with clew.spawn([workers, str(MANY), "1"], stdout=DEVNULL) as session:
        session.follow(lambda thread: thread.name == "chosen", events={"call"})
        work = session.find("work")
        session.resume()
        n_calls = sum(int((batch["target"] == work).sum()) for batch in session.events())
    assert n_calls == MANY


def test_who_runs_natively_is_stopped_shown_called_and_goes_on(workers: Path) -> None:
    with clew.spawn([workers, "1", BUSY], stdout=PIPE) as session:
        session.follow(set(), events={"call"})
        session.resume()
        assert session.stdout is not None
        # Both have told who they are: the one has ended, or is about to, the other is in its loop.
        tids = dict(session.stdout.readline().split() for _ in range(2))
        other = int(tids[b"other"])
        for turn in range(20):
            session.pause()
            thread = next(one for one in session.threads if one.tid == other)
            assert thread.state == "stopped"
            assert any("work" in str(frame) or "run" in str(frame) for frame in thread.backtrace())
            assert session.call("work", turn, tid=other) == 3 * turn + 1
            session.resume()
        # The last time it is on its way there.
        wait_for(lambda: session.statistics["native_runs"] >= 20)


def test_threads_are_followed_and_left_in_turn(workers: Path) -> None:
    with clew.spawn([workers, FOREVER], stdout=DEVNULL) as session:
        session.follow(set(), events={"call"})
        session.resume()
        tids = [thread_named(session, name).tid for name in ("chosen", "other")]
        work = session.find("work")
        for turn in range(6):
            tid = tids[turn % 2]
            session.follow(tid, events={"call"})
            for batch in session.events():
                told = batch[(batch["kind"] == FlowKind.CALL) & (batch["target"] == work)]
                # What was told of the other one before may still wait to be taken.
                if tid in told["thread"]:
                    break
            session.unfollow(tid)


def test_unfollow_leaves_some_and_keeps_the_others(workers: Path) -> None:
    with clew.spawn([workers, FOREVER], stdout=DEVNULL) as session:
        session.follow(events={"call"})
        session.on_receive(lambda batch: None)
        session.resume()
        other = thread_named(session, "other").tid
        session.unfollow(other)
        before = session.statistics
        assert before["native_runs"] == 1
        session.pause()
        stopped = {thread.tid: thread.state for thread in session.threads}
        assert stopped[other] == "stopped"


@pytest.mark.parametrize("turns", [1, pytest.param(5, marks=pytest.mark.long)])
def test_who_was_just_followed_again_is_left_in_the_midst_of_a_block(workers: Path, tmp_path: Path, turns: int) -> None:
    for turn in range(turns):
        output = tmp_path / f"{turn}.clew"
        with clew.spawn([workers, BUSY], stdout=DEVNULL, output=output) as session:
            session.follow(set(), events={"block"}, on_full="drop")
            session.on_receive(lambda batch: None)
            session.resume()
            thread_named(session, "other")
            session.follow(events={"block"}, on_full="drop")
            session.detach()
        os.kill(session.pid, signal.SIGKILL)
        os.waitpid(session.pid, 0)
        assert not clew.Trace(output).verify()


def test_who_comes_back_in_the_handler_of_its_own_trap_has_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_RELAYOUT", "4")
    with clew.spawn([find("single_step_itself").path], mode="full", stdout=DEVNULL) as session:
        session.unfollow(lambda _: True)
        session.resume()
        assert session.wait(30) == 0
        assert session.statistics["native_runs"] >= 1
        assert not session.trace.verify()


@pytest.mark.parametrize("how", ["detach", "kill"])
def test_who_runs_natively_is_left_and_ended(workers: Path, how: str) -> None:
    with clew.spawn([workers, FOREVER], stdout=DEVNULL) as session:
        pid = session.pid
        session.follow(set(), events={"call"})
        session.resume()
        thread_named(session, "other")
        if how == "kill":
            session.kill()
            assert session.wait(30) == -signal.SIGKILL
            return
        session.detach()
    maps = Path(f"/proc/{pid}/maps").read_text()
    try:
        assert "clew" not in maps
        before = count_rests(pid)
        time.sleep(0.2)
        assert count_rests(pid) > before
        status = Path(f"/proc/{pid}/status").read_text()
        assert "TracerPid:\t0" in status
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def count_rests(pid: int) -> int:
    """How often the threads of a process have waited."""
    statuses = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(text.partition("voluntary_ctxt_switches:")[2].split()[0]) for text in statuses)


def test_an_attached_process_runs_natively_but_for_one_thread(workers: Path) -> None:
    with subprocess.Popen([workers, FOREVER], stdout=DEVNULL) as process:
        time.sleep(0.2)
        with clew.attach_session(process.pid) as session:
            chosen = thread_named(session, "chosen").tid
            session.follow(chosen, events={"call"})
            batch = next(iter(session.events()))
            assert set(batch["thread"].tolist()) == {chosen}
        assert process.poll() is None
        process.kill()


def test_programs_that_are_executed_run_natively_too(workers: Path) -> None:
    with clew.spawn(["/bin/sh", "-c", f"exec {workers} 1 {FOREVER}"], stdout=DEVNULL) as session:
        session.follow(session.pid + 1, events={"call"})
        session.resume()
        thread_named(session, "other")
        deadline = time.monotonic() + 20
        while session.statistics["native_runs"] < 1:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_who_runs_natively_goes_on_without_its_controller_and_is_attached_to(workers: Path, tmp_path: Path) -> None:
    script = "import sys, time, clew; session = clew.spawn(sys.argv[1:]); session.unfollow(lambda _: True); "
    script += "session.resume(); print(session.pid, flush=True); time.sleep(60)"
    command = [sys.executable, "-c", script, str(workers), FOREVER]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=PIPE, env=environment) as controller:
        assert controller.stdout is not None
        pid = int(next(line for line in controller.stdout if line.strip().isdigit()))
        time.sleep(0.5)
        controller.kill()
    try:
        before = count_rests(pid)
        time.sleep(0.3)
        assert count_rests(pid) > before
        with clew.attach_session(pid) as session:
            thread_named(session, "chosen")
            session.pause()
            assert any(thread.state == "stopped" for thread in session.threads)
        assert "clew" not in Path(f"/proc/{pid}/maps").read_text()
    finally:
        os.kill(pid, signal.SIGKILL)
