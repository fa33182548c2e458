"""`clew.follow_me`: native code that a thread of this very process executes."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import clew
from clew.errors import ControlError, FilterError, UsageError
from clew.protocol.codec import FlowKind
from tests.programs.build import SOURCES, build_plain

Array = npt.NDArray[Any]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def library() -> Path:
    """The library of tests/programs/sessions/own_calls.c."""
    return build_plain(
        SOURCES / "sessions/own_calls.c", "-O1", "-g", "-shared", "-fPIC", "-fno-builtin", "-Wl,-Bsymbolic"
    )


@pytest.fixture(scope="session")
def own(library: Path) -> ctypes.CDLL:
    """It, loaded here."""
    return ctypes.CDLL(str(library))


def address_of(function: Any) -> int:
    """Where a function of a library is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def calls_of(events: Array, address: int) -> int:
    """How often a function was called."""
    return int(((events["kind"] == FlowKind.CALL) & (events["target"] == address)).sum())


def rows_in(events: Array, library: Path) -> Array:
    """Those that are in a library's code, by what lies where here, with their distance from its start."""
    lines = [line.split()[0] for line in maps().splitlines() if line.endswith(f"/{library.name}")]
    edges = [int(edge, 16) for line in lines for edge in line.split("-")]
    return between(events, min(edges), max(edges))


def between(events: Array, start: int, end: int) -> Array:
    """Those that are there, with their distance from the start."""
    found: Array = events[(events["address"] >= start) & (events["address"] < end)].copy()
    found["address"] -= np.uint64(start)
    return found


def maps() -> str:
    """What is mapped here."""
    return Path("/proc/self/maps").read_text()


def code_and_shared() -> list[str]:
    """The mappings that may be executed or are shared: all of the runtime's are one or the other, but for its heap."""
    return [line for line in maps().splitlines() if line.split()[1][2] == "x" or line.split()[1][3] == "s"]


def run_script(text: str, *arguments: object, status: int = 0) -> str:
    """Run Python code in a process of its own; what it printed."""
    words = [sys.executable, "-c", "import clew, ctypes, os, sys, threading, time\n" + text, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_calls_are_counted_exactly(own: ctypes.CDLL) -> None:
    with clew.follow_me(events={"call", "ret"}) as events:
        for turn in range(50):
            own.take_step(turn)
        own.run(1000)
    assert calls_of(events.array, address_of(own.take_step)) == 1050
    assert calls_of(events.array, address_of(own.run)) == 1
    assert (events.n_dropped, events.n_gaps, events.n_damaged) == (0, 0, 0)
    assert set(events.array["thread"].tolist()) == {threading.get_native_id()}
    assert (events.array["sequence"] == np.arange(len(events))).all()


def test_nothing_is_left(own: ctypes.CDLL) -> None:
    with clew.follow_me():
        own.run(10)
    descriptors, mapped = set(os.listdir("/proc/self/fd")), code_and_shared()
    for _ in range(3):
        with clew.follow_me() as events:
            own.run(10)
    assert len(events)
    assert set(os.listdir("/proc/self/fd")) == descriptors
    assert code_and_shared() == mapped


@pytest.mark.parametrize("kind", ["call", "block", "exec", "syscall"])
def test_an_empty_body_has_no_events(kind: str) -> None:
    with clew.follow_me(events=kind) as events:
        pass
    assert len(events) == 0 and list(events) == [] == events.batches
    assert events.array.dtype == clew.OwnEvents.dtype


@pytest.mark.long
def test_what_the_interpreter_does_is_left_out_unless_asked_for(own: ctypes.CDLL) -> None:
    def work() -> None:
        os.stat("/")
        text = ",".join(str(number) for number in range(1000))
        assert len(bytearray(1 << 20)) + len(text) > 0
        own.lengths(3)

    with clew.follow_me(events={"block", "syscall"}) as without:
        work()
    with clew.follow_me(events={"block", "syscall"}, interpreter=True) as within:
        work()
    names = {without.name(int(address)).partition("!")[0] for address in np.unique(without.array["address"])}
    assert "own_calls" in names
    assert "libc.so.6" in names, "of what the library calls"
    assert not any("python3" in name and "cpython" not in name for name in names), names
    assert len(within) > 10 * len(without)
    assert FlowKind.SYSCALL not in without.array["kind"]
    assert FlowKind.SYSCALL in within.array["kind"]


@pytest.mark.long
def test_blocks_are_those_that_a_session_tells(own: ctypes.CDLL, library: Path) -> None:
    with clew.follow_me(events={"block"}) as events:
        own.run(200)
        own.lengths(5)
    mine = rows_in(events.array, library)
    script = "import ctypes, sys; own = ctypes.CDLL(sys.argv[1]); own.run(200); own.lengths(5)"
    with clew.spawn([sys.executable, "-S", "-c", script, library], mode="full") as session:
        session.follow(events={"block"})
        session.resume()
        everything = np.concatenate(list(session.events()))
        session.wait(60)
        row = next(row for row in session.trace.images.to_pylist() if row["path"] == str(library))
    theirs = between(everything, row["base"], row["base"] + row["size_bytes"])
    # Loading it and ending execute some of it, too.
    first, n_mine = int(mine["address"][0]), len(mine)
    start = int(np.flatnonzero(theirs["address"] == first)[0])
    for column in ("address", "size", "n_instructions"):
        assert (theirs[column][start : start + n_mine] == mine[column]).all()


def test_calls_back_into_python_go_on(own: ctypes.CDLL) -> None:
    signature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    told: list[int] = []

    def step(number: int) -> int:
        told.append(own.take_step(number))
        return number

    call = signature(step)
    with clew.follow_me(events={"call"}) as events:
        assert own.back(call, 40) == sum(range(40))
    assert len(told) == 40 == calls_of(events.array, address_of(own.take_step))


def test_system_calls_at_the_ends_may_be_the_body_s_own(own: ctypes.CDLL) -> None:
    with clew.follow_me(events={"syscall", "call"}) as events:
        own.parents(100)
        os.getppid()
        own.take_step(1)
    assert (events.array["kind"] == FlowKind.SYSCALL).sum() == 100
    assert calls_of(events.array, address_of(own.take_step)) == 1


@pytest.mark.long
def test_images_are_chosen_as_in_sessions(own: ctypes.CDLL, library: Path) -> None:
    with clew.follow_me(events={"block"}, include=library.name) as events:
        own.lengths(10)
    assert len(events) == len(rows_in(events.array, library)) > 0
    with clew.follow_me(events={"block"}, exclude=[library.name]) as events:
        own.lengths(10)
    assert len(events) > 0 == len(rows_in(events.array, library))


@pytest.mark.long
def test_too_many_events_are_counted(own: ctypes.CDLL) -> None:
    with pytest.warns(UserWarning, match="events were dropped"), clew.follow_me(events={"call"}, limit=100) as events:
        own.run(1000)
    assert len(events) == 100 and events.n_dropped >= 901
    with clew.follow_me(events={"exec"}, time=True) as events:
        own.run(20_000)
    assert len(events) > 65_536 and len(next(iter(events))) == 65_536
    assert sum(map(len, events)) == len(events)
    assert (np.diff(events.array["time"].astype(np.int64)) >= 0).all()


def test_events_are_read_and_named(own: ctypes.CDLL, library: Path) -> None:
    with clew.follow_me() as events:
        with pytest.raises(UsageError, match="no longer followed"):
            _ = events.array
        own.take_step(1)
        events.unfollow()
        assert len(events) > 0
        own.take_step(1)
    assert calls_of(events.array, address_of(own.take_step)) == 1
    assert events.name(address_of(own.take_step) + 1).endswith("!take_step+0x1")
    assert events.find(f"{library.name}!take_step") == address_of(own.take_step)
    assert clew.parse(events.array)[0][0] in ("call", "ret")
    assert "of them" in repr(events)
    with pytest.raises(UsageError, match="once"), events:
        pass


def test_what_the_body_raises_is_raised(own: ctypes.CDLL) -> None:
    with pytest.raises(LookupError), clew.follow_me() as events:
        own.take_step(1)
        raise LookupError
    assert calls_of(events.array, address_of(own.take_step)) == 1


def test_what_means_nothing_is_refused() -> None:
    wrong: list[dict[str, Any]] = [{"events": "nothing"}, {"limit": 0}, {"include": "a!"}]
    for options in wrong:
        with pytest.raises(UsageError):
            clew.follow_me(**options)
    with pytest.raises(FilterError):
        clew.follow_me(exclude="")


def test_one_thread_at_a_time(own: ctypes.CDLL) -> None:
    refused: list[str] = []

    def follow() -> None:
        with pytest.raises(UsageError, match="is followed already") as raised, clew.follow_me():
            pass
        refused.append(str(raised.value))

    with clew.follow_me() as events:
        thread = threading.Thread(target=follow)
        thread.start()
        thread.join()
        own.take_step(1)
    assert str(threading.get_native_id()) in refused[0]
    assert calls_of(events.array, address_of(own.take_step)) == 1


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
