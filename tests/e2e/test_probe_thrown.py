"""Functions that are left by an exception or by longjmp while they are probed: both come to where they would."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from clew.sessions.probes.specs import ContextField
from tests.e2e.probed_program import (
    at_once,
    build_cxx,
    calls_of,
    hears,
    instructions_of,
    points,
    started,
)
from tests.e2e.process_code import dirty_code, read_code

LINES = 3
THROWN, JUMPED = 20, 20
"""So often the functions are called for a line: see the program."""


BUILDS = ["-O2", *(pytest.param(one, marks=pytest.mark.long) for one in ("-O0", "-O2 -fcf-protection=none -no-pie"))]


@pytest.fixture(scope="module", params=BUILDS)
def program(request: pytest.FixtureRequest) -> Path:
    flags = str(request.param).split()
    return build_cxx("probed_throwing.cc", *flags, called="probed_throwing" + "".join(flags))


@pytest.fixture(scope="module")
def native(program: Path) -> str:
    """What it says natively."""
    with started(program) as running:
        return running.ask()


def called(n: int) -> dict[str, tuple[int, int]]:
    """How often functions begin, and how often they return, for one line: worked out as the program does."""
    begun: Counter[str] = Counter()
    returned: Counter[str] = Counter()

    def passed(one: int) -> bool:
        begun.update(("passed", "thrower"))
        if one % 3:
            return False
        returned.update(("passed", "thrower"))
        return True

    for one in range(n):
        begun.update(("catcher", "between", "jumped_to", "left_behind", "jumper"))
        returned.update(("catcher", "jumped_to"))
        # An error is caught where it is below 11, the number never.
        if (passed(one) and passed(one + 3)) or (one % 3 == 1 and one <= 10):
            returned["between"] += 1
        if one % 2 == 0:
            returned.update(("left_behind", "jumper"))
    return {name: (begun[name], returned[name]) for name in begun}


def test_functions_are_thrown_through_and_jumped_out_of(program: Path, native: str) -> None:
    expected = called(THROWN)
    names = sorted(expected)
    n = ContextField("n", "arg1")
    with started(program) as running:
        with at_once(
            running.pid, calls_of(*names, fields=(n,), return_fields=(ContextField("result", "retval"),))
        ) as one:
            said, events = hears(running, LINES, one)
        assert said == [native] * LINES
        counts = Counter(event["event"] for event in events)
        for name in names:
            begun, returned = expected[name]
            assert (counts[f"{name}_entry"], counts[f"{name}_exit"]) == (LINES * begun, LINES * returned), name
        # A call that was left is not taken for a later one: each return is of the call with its own argument.
        entered: list[int] = []
        for event in events:
            if event["event"] == "jumped_to_entry":
                entered.append(event["n"])
            elif event["event"] == "jumped_to_exit":
                begun = entered.pop()
                assert event["result"] == (-begun if begun % 2 else begun + 1)
                assert event["duration"] >= 0
            elif event["event"] == "thrower_entry":
                entered.append(event["n"])
            elif event["event"] == "thrower_exit":
                assert event["result"] == 2 * entered.pop()
            elif event["event"] == "catcher_exit":
                entered.clear()
        assert running.ask() == native
        assert running.end() == 0


def test_what_throws_is_probed_itself(program: Path, native: str) -> None:
    """The unwinder and what longjmp is made of: all of their functions begin and return by probes."""
    specs = calls_of(
        "libgcc_s.so.1!*", "libstdc++.so.6!__cxa_*", "libstdc++.so.6!__gxx_personality_v0", "libc.so.6!*longjmp*"
    )
    with started(program) as running:
        with at_once(running.pid, specs) as one:
            said = []
            counts: Counter[str] = Counter()
            for _ in range(LINES):
                said.append(running.ask())
                counts += one.count()
        assert said == [native] * LINES
        n_thrown = sum(begun - returned for begun, returned in [called(THROWN)["thrower"]])
        assert counts["__cxa_throw_entry"] == LINES * n_thrown
        assert counts["__cxa_throw_exit"] == 0
        assert running.ask() == native


def test_each_instruction_on_the_way(program: Path, native: str) -> None:
    """Where exceptions are caught is told by tables alone: nothing is known to branch there."""
    names = ("thrower", "passed", "between", "catcher", "jumper", "left_behind", "jumped_to")
    places = instructions_of(program, *names)
    assert any(".cold" in place for place in places) == ("-O2" in program.name)
    with started(program) as running:
        with at_once(running.pid, points(*places)) as one:
            assert len(one.target.armed) == len(places)
            said, events = hears(running, LINES, one)
        assert said == [native] * LINES
        assert running.ask() == native
        assert Counter(event["event"] for event in events)["catcher+0"] == LINES * THROWN


@pytest.mark.parametrize("is_thrown", [False, True])
def test_left_by_a_thread_that_is_blocked(program: Path, native: str, is_thrown: bool) -> None:
    """It waits within functions that were probed, before or after they were thrown through; then it goes on."""
    with started(program) as running:
        code = read_code(running.pid)
        with at_once(running.pid, calls_of("[a-z]*", "libc.so.6!fgets", "libc.so.6!read", "libc.so.6!_IO_*")) as one:
            if is_thrown:
                assert running.ask() == native
            one.read()
        assert read_code(running.pid) == code
        assert not dirty_code(running.pid)
        assert [running.ask() for _ in range(LINES)] == [native] * LINES
        assert running.end() == 0
