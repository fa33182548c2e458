"""`clew.follow_me` beside what else a process does: its threads, children, signals, its end, other sessions."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import clew
from clew.errors import ControlError
from tests.sessions.event_arrays import address_of, calls_of


def run_script(text: str, *arguments: object, status: int = 0) -> str:
    """Run Python code in a process of its own; what it printed."""
    words = [sys.executable, "-c", "import clew, ctypes, os, sys, threading, time\n" + text, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.mark.long
def test_other_threads_run_and_are_not_told(library: Path) -> None:
    text = """
own = ctypes.CDLL(sys.argv[1])
counts, is_over = [0] * 3, threading.Event()
def turn(index):
    while not is_over.is_set():
        own.run(100)
        counts[index] += 1
threads = [threading.Thread(target=turn, args=(index,)) for index in range(3)]
for thread in threads: thread.start()
for _ in range(3):
    with clew.follow_me(events={"call"}, include="*own_calls*") as events:
        for _ in range(10): own.run(100)
        before = list(counts)
        time.sleep(0.2)
        assert all(now > was for now, was in zip(counts, before))
    assert (events.array["thread"] == threading.get_native_id()).all()
    step = ctypes.cast(own.take_step, ctypes.c_void_p).value
    print((events.array["target"] == step).sum(), events.n_gaps, events.n_damaged)
is_over.set()
for thread in threads: thread.join()
"""
    assert run_script(text, library).splitlines() == ["1000 0 0"] * 3


def test_children_of_the_body_are_well(library: Path) -> None:
    text = """
import subprocess
own = ctypes.CDLL(sys.argv[1])
for _ in range(2):
    with clew.follow_me(events={"call"}) as events:
        own.take_step(1)
        child = os.fork()
        if not child:
            own.take_step(2)
    if not child:
        assert len(events) == 0 and own.run(5) == 11
        with clew.follow_me(events={"call"}) as inner:
            own.take_step(3)
        os._exit(7 if len(inner) else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with clew.follow_me() as other:
        assert subprocess.run(["/bin/echo", "child"]).returncode == 0
    print((events.array["target"] == ctypes.cast(own.take_step, ctypes.c_void_p).value).sum())
"""
    assert run_script(text, library).split() == ["child", "1", "child", "1"]


KILLED = """
import signal, pathlib, warnings
own = ctypes.CDLL(sys.argv[1])
def find():
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and is_helper(pathlib.Path("/proc/" + name))]
def is_helper(process):
    try:
        return (b"\\0clew.sessions.inside.helper\\0" in (process / "cmdline").read_bytes()
                and process.stat().st_uid == os.getuid()
                and os.environ["TMPDIR"].encode() in (process / "environ").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False  # It has ended meanwhile.
"""


@pytest.mark.long
def test_it_goes_on_when_the_helper_is_killed(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    text = (
        KILLED
        + """
try:
    with clew.follow_me(events={"call"}) as events:
        own.run(1000)
        time.sleep(0.3)
        (helper,) = find()
        os.kill(helper, signal.SIGKILL)
        own.run(100000)
except clew.ClewError as error:
    print(error)
print(own.run(10))
with clew.follow_me(events={"call"}) as again:
    own.run(10)
print((again.array["target"] == ctypes.cast(own.take_step, ctypes.c_void_p).value).sum())
try:
    with clew.follow_me(events={"call"}) as events:
        os.kill(find()[0], signal.SIGKILL)
        raise LookupError("mine")
except LookupError as error:
    print(error)
"""
    )
    told = run_script(text, library).splitlines()
    assert re.match("the process that followed this one has ended", told[0])
    assert told[1:] == ["39", "10", "mine"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", "os._exit(3)", "os.execv('/bin/true', ['true'])"])
def test_nothing_is_left_when_the_process_ends(
    how: str, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    text = "own = ctypes.CDLL(sys.argv[1])\nwith clew.follow_me() as events:\n    own.take_step(1)\n    " + how
    words = [sys.executable, "-c", "import clew, ctypes, os, sys\n" + text, str(library)]
    status = subprocess.run(words, timeout=60, check=False).returncode
    assert status == {"os.k": -signal.SIGKILL, "os._": 3, "os.e": 0}[how[:4]]
    deadline = 200
    while list(tmp_path.iterdir()) and deadline:
        deadline -= 1
        threading.Event().wait(0.05)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_an_interrupt_ends_the_body(library: Path) -> None:
    text = """
import signal
own = ctypes.CDLL(sys.argv[1])
# numpy can't be imported again after an interrupt.
clew.follow_me()
for delay in (0.05, 0.3, 0.5, 3.0):
    timer = threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with clew.follow_me() as events:
            time.sleep(20)
    except KeyboardInterrupt:
        print("interrupted")
    timer.join()
with clew.follow_me() as events:
    own.take_step(1)
print((events.array["target"] == ctypes.cast(own.take_step, ctypes.c_void_p).value).sum())
"""
    assert run_script(text, library).split() == ["interrupted"] * 4 + ["1"]


@pytest.mark.long
def test_handlers_of_signals_are_in_their_order(library: Path) -> None:
    text = """
import signal
own, n_handled, signals = ctypes.CDLL(sys.argv[1]), 0, [signal.SIGALRM]
def handle(number, frame):
    global n_handled
    n_handled += 1
    own.take_step(1)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
def follow():
    with clew.follow_me(events={"block"}) as events:
        before = n_handled
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        while n_handled < before + 50: own.run(100)
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        n_own = n_handled - before
    steps = (events.array["address"] == ctypes.cast(own.take_step, ctypes.c_void_p).value).sum()
    print((steps - n_own) % 100, events.n_gaps, events.n_damaged)
follow()
signal.setitimer(signal.ITIMER_REAL, 0)
# Handlers run in the main thread alone; others can be followed as well.
thread = threading.Thread(target=lambda: print(follow_other()))
def follow_other():
    with clew.follow_me(events={"block"}) as events:
        own.run(10)
    return (events.array["address"] == ctypes.cast(own.take_step, ctypes.c_void_p).value).sum()
thread.start()
thread.join()
"""
    assert run_script(text, library).splitlines() == ["0 0 0", "10"]


@pytest.mark.long
def test_signals_may_be_blocked_and_ignored(library: Path) -> None:
    text = """
import resource, signal
own = ctypes.CDLL(sys.argv[1])
clew.follow_me()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for _ in range(2):
    with clew.follow_me(events={"call"}) as events:
        own.run(10)
    print((events.array["target"] == ctypes.cast(own.take_step, ctypes.c_void_p).value).sum())
resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))
try:
    with clew.follow_me():
        pass
except clew.ClewError as error:
    print(error)
"""
    assert run_script(text, library).splitlines() == [
        *("10", "10"),
        "the process that follows this one can't be started: Too many open files",
    ]


def test_what_can_not_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(os.listdir("/proc/self/fd"))
    for executable, message in (("", "does not know"), ("/none", "can't be started"), ("/bin/true", "could not start")):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(ControlError, match=message), clew.follow_me():
            pass
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.long
def test_it_is_told_who_traces_already() -> None:
    text = """
try:
    with clew.follow_me(): pass
except clew.ClewError as error:
    print(type(error).__name__, error)
"""
    script = [sys.executable, "-c", "import clew\n" + text]
    with clew.spawn(script, stdout=subprocess.PIPE, follow=False) as session:
        session.resume()
        assert session.stdout is not None
        told = session.stdout.read().decode()
        session.wait(60)
    assert told.startswith("AttachError"), told


@pytest.mark.long
def test_who_follows_others_can_be_followed(own: ctypes.CDLL, called: Path) -> None:
    with clew.spawn([called, "100000000"], stdout=subprocess.DEVNULL) as session:
        probe = session.on_call("scale", lambda call: None)
        session.resume()
        for _ in range(2):
            with clew.follow_me(events={"call"}) as events:
                own.run(10)
                n_calls = probe.n_calls
                while probe.n_calls == n_calls:
                    threading.Event().wait(0.01)
                session.pause()
                assert session.state == "stopped"
                session.resume()
            assert calls_of(events.array, address_of(own.take_step)) == 10
    with clew.follow_me(events={"call"}) as events, clew.spawn([called, "2"], stdout=subprocess.DEVNULL) as session:
        session.resume()
        session.wait(60)
        own.run(10)
    assert calls_of(events.array, address_of(own.take_step)) == 10
