"""Backtraces of probes: who called, as the C library has it at the same time, whatever way a thread came by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clew.sessions.probes import backtraces
from clew.sessions.probes.specs import ContextField, ProbeSpec
from tests.e2e.probed_program import PROBES, Program, at_once, build_cxx, instructions_of, points, started
from tests.programs.build import build_plain

BACKTRACE = ContextField("backtrace", backtrace=64)
MOST = 63
"""Frames of a backtrace that are behind the first, at most."""
BUILDS = [
    "-O2 -fomit-frame-pointer",
    *(pytest.param(one, marks=pytest.mark.long) for one in ("-O0", "-O2 -fno-omit-frame-pointer", "-O2 -no-pie")),
]


@pytest.fixture(scope="module", params=BUILDS)
def command(request: pytest.FixtureRequest) -> list[Path]:
    flags = str(request.param).split()
    name = "probed_unwinding" + re.sub(r"\W+", "-", str(request.param))
    libraries = [
        build_plain(
            PROBES / "probed_unwinding_library.c",
            *("-O2", "-shared", "-fPIC", f"-DDEPTH={depth}"),
            name=f"libprobed_unwinding{depth}.so",
        )
        for depth in (1, 7)
    ]
    return [build_cxx("probed_unwinding.cc", *flags, "-g", "-pthread", called=name), *libraries]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many frames threads knew of backtraces whose rest was asked for."""
    found: list[int] = []
    complete = backtraces.complete_backtrace

    def note(data: bytes, *others: Any) -> list[int]:
        found.append(int.from_bytes(data[4:8], "little"))
        return complete(data, *others)

    monkeypatch.setattr(backtraces, "complete_backtrace", note)
    return found


def callers_of(said: str) -> dict[int, list[list[int]]]:
    """By thread: who called, each time, as the program itself says it."""
    found: dict[int, list[list[int]]] = defaultdict(list)
    for note in said.split(";")[:-1]:
        tid, *frames = note.split()
        found[int(tid)].append([int(frame, 16) for frame in frames][:MOST])
    return found


def callers_told(events: Sequence[dict[str, Any]]) -> dict[int, list[list[int]]]:
    """The same, of events."""
    found: dict[int, list[list[int]]] = defaultdict(list)
    for one in events:
        found[one["tid"]].append(one["backtrace"][1:])
    return found


def functions(program: Program, probed: Any) -> tuple[dict[int, list[list[int]]], list[dict[str, Any]]]:
    said, events = probed.ask(program)
    return callers_of(said), events


def test_who_called_is_what_the_program_itself_finds(command: list[Path], asked: list[int]) -> None:
    """And threads find all of it by themselves."""
    probe = ProbeSpec("reached", "reached", is_function=True, fields=(BACKTRACE,), return_fields=(BACKTRACE,))
    with started(*command) as program, at_once(program.pid, [probe]) as probed:
        for _ in range(3):
            wanted, events = functions(program, probed)
            assert len(wanted) > 9 and sum(map(len, wanted.values())) > 600
            for name in ("reached_entry", "reached_exit"):
                assert callers_told([one for one in events if one["event"] == name]) == wanted, name
    assert not asked


def test_any_instruction_has_the_same_callers(command: list[Path]) -> None:
    """In front of each instruction of a function that saves registers, and calls: whatever its frame is there."""
    places = instructions_of(command[0], "reached")
    with started(*command) as program, at_once(program.pid, points(*places, fields=(BACKTRACE,))) as probed:
        wanted, events = functions(program, probed)
        told: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for one in events:
            told[one["event"]].append(one)
        assert set(told) == set(places)
        for place, own in told.items():
            assert callers_told(own) == wanted, place


def test_in_the_middle_of_a_function_it_is_the_function_that_called(command: list[Path]) -> None:
    """At instructions of a function between whose calls there are others: the frames behind it are those that were
    behind it at its entry."""
    places = instructions_of(command[0], "pushes", "large", "growing")
    # gcc's rules for a frame that it aligns are wrong where that has been left, but for the return itself.
    places += instructions_of(command[0], "aligned")[:-2]
    with started(*command) as program, at_once(program.pid, points(*places, fields=(BACKTRACE,))) as probed:
        _, events = functions(program, probed)
        open_calls: dict[tuple[int, str], list[list[int]]] = defaultdict(list)
        n_checked = 0
        for one in events:
            function, _, offset = one["event"].partition("+")
            known = open_calls[one["tid"], function]
            if offset == "0":
                known.append(one["backtrace"][1:])
                continue
            assert one["backtrace"][1:] in known, one["event"]
            n_checked += 1
        assert n_checked > 5000


def test_a_backtrace_has_as_many_frames_as_were_asked_for(command: list[Path]) -> None:
    probes = [
        ProbeSpec(f"of{depth}", "reached", fields=(ContextField("backtrace", backtrace=depth),))
        for depth in (1, 2, 8, 16, 128)
    ]
    with started(*command) as program, at_once(program.pid, probes) as probed:
        wanted, events = functions(program, probed)
        for depth in (1, 2, 8, 16):
            told = callers_told([one for one in events if one["event"] == f"of{depth}"])
            assert told == {tid: [one[: depth - 1] for one in own] for tid, own in wanted.items()}, depth
        told = callers_told([one for one in events if one["event"] == "of128"])
        assert {tid: [one[:MOST] for one in own] for tid, own in told.items()} == wanted


def test_a_filter_and_other_values_are_beside_it(command: list[Path]) -> None:
    """A name, which machine code does not take, and a condition that only some calls meet."""
    fields = (ContextField("name", "comm"), BACKTRACE, ContextField("text", "str($rsp, 8)"))
    probes = [
        ProbeSpec("named", "reached", fields=fields),
        ProbeSpec("chosen", "reached", fields=(BACKTRACE,), condition="$rdi >= 300"),
        ProbeSpec("added", "reached", fields=(BACKTRACE, ContextField("n", "$rdi"))),
    ]
    with started(*command) as program, at_once(program.pid, probes) as probed:
        wanted, events = functions(program, probed)
        told = {name: [one for one in events if one["event"] == name] for name in ("named", "chosen", "added")}
        assert callers_told(told["named"]) == callers_told(told["added"]) == wanted
        chosen = callers_told([one for one in told["added"] if one["n"] >= 300])
        assert callers_told(told["chosen"]) == chosen
        assert {one["name"] for one in told["named"]} == {told["named"][0]["comm"]}
