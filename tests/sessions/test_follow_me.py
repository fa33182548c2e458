"""`clew.follow_me`: native code that a thread of this very process executes."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clew
from clew.errors import FilterError, UsageError
from clew.protocol.codec import FlowKind
from tests.sessions.event_arrays import Array, address_of, calls_of


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


@pytest.mark.parametrize(
    "kind", ["block", *(pytest.param(one, marks=pytest.mark.long) for one in ("call", "exec", "syscall"))]
)
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
