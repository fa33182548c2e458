"""Events of sessions are what single-stepping saw: instructions, blocks, calls and returns, in their order."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from subprocess import DEVNULL, PIPE
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import clew
from clew.protocol.codec import FlowKind
from tests.e2e import runs
from tests.oracle.steps import SteppedOnce
from tests.oracle.test_exact import cases, programs_with
from tests.oracle.truth import Truth
from tests.programs.build import Program, build_one

Array = npt.NDArray[Any]
Told = tuple[str, int, int, int]
"""Kind, address, size, and where the thread went."""

WALKED = {"call", "ret", "block", "exec"}
BESIDE = {"syscall", "signal", "exception", "thread"}
"""What the kernel did, in between."""

QUICK = {
    *("recursion.static", "virtual_calls.static", "loop_instructions", "changed_return"),
    *("long_jumps", "signal_return", "fatal_segv", "code_rewritten", "code_returned_to", "returns_elsewhere"),
    *("exceptions_deep", "context_make"),
}
NO_RANDOM_LAYOUT = 0x0040000
INTERRUPT_RETURN = b"\xcf"
"""The last byte of `iret`, which is a jump to clew."""
WHERE_AM_I = 0xFFFFFFFF


def expect(truth: Truth) -> Iterator[tuple[Told, bool]]:
    """What a thread did, as events tell it: of a block its instructions, it, the call or return at its end.

    And whether it went on to what came next: neither a signal nor what the kernel did is in between.
    """
    came = list(truth.path)
    start, begun = 0, False
    for (one, has_run, how), following in zip(came, [*came[1:], None], strict=True):
        if not has_run:
            continue
        # What only waited for a handler, or faulted, was gone to.
        target = 0 if following is None else following[0].pc
        leads_there = one.flow != "syscall" and how == "flow" and following is not None
        if not begun:
            start, begun = one.pc, True
        yield ("exec", one.pc, len(one.code), target), leads_there
        has_fault = following is not None and not following[1]
        if one.flow == "none" and target == one.end and not has_fault:
            continue
        yield ("block", start, one.end - start, target), leads_there
        begun = False
        if one.flow in ("call", "indirect_call"):
            yield ("call", one.pc, len(one.code), target), leads_there
        elif one.flow == "return" and one.code[-1:] != INTERRUPT_RETURN:
            yield ("ret", one.pc, len(one.code), target), leads_there


def tell(events: Array) -> Iterator[Told]:
    """The same of events."""
    names = {int(kind): kind.name.lower() for kind in FlowKind}
    for kind, *numbers in zip(*(events[name].tolist() for name in ("kind", "address", "size", "target")), strict=True):
        yield names[kind], *numbers


@contextmanager
def fixed_layout() -> Iterator[None]:
    """What is launched meanwhile has no address randomisation (personality(2))."""
    libc = ctypes.CDLL(None)
    before = libc.personality(WHERE_AM_I)
    libc.personality(before | NO_RANDOM_LAYOUT)
    try:
        yield
    finally:
        libc.personality(before)


def read_events(command: runs.Command, **how: Any) -> tuple[Array, runs.Run]:
    """All events of a command's first thread, and how it ended. What it writes is not much."""
    words = [os.fspath(word) for word in command]
    with fixed_layout():
        session = clew.spawn(
            words, mode="full", environment=runs.environment(), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
    with session:
        stream = session.follow(events=WALKED | BESIDE, **how)
        session.resume()
        batches = list(stream)
        assert session.stdout is not None and session.stderr is not None
        ran = runs.Run.of(session.wait(60), session.stdout.read(), session.stderr.read())
        assert (stream.n_dropped, stream.n_gaps, stream.n_damaged) == (0, 0, 0)
    events = np.concatenate(batches)
    first = events[events["thread"] == session.pid]
    assert (first["sequence"] == np.arange(len(first))).all()
    return first, ran


def check_beside(events: Array) -> None:
    """Each instruction that calls the kernel is told as a call, right behind it; the thread begins once, and ends
    once."""
    kinds, addresses = events["kind"], events["address"]
    assert kinds[0] == FlowKind.THREAD and events["target"][kinds == FlowKind.THREAD].tolist() in ([1, 0], [1])
    executed = np.flatnonzero(kinds == FlowKind.EXEC)
    calls = np.flatnonzero(kinds == FlowKind.SYSCALL)
    before = executed[np.searchsorted(executed, calls) - 1]
    assert (addresses[before] == addresses[calls]).all(), "a call is told where it is made"
    assert len(np.unique(before)) == len(calls), "and once"
    for kind in (FlowKind.SIGNAL, FlowKind.EXCEPTION):
        assert (events["target"][kinds == kind] < 65).all()


PROGRAMS = [
    case
    for trait in ("oracle", "oracle-instructions", "oracle-long")
    for program in programs_with(trait)
    for case in cases(program, is_stress=program.name not in QUICK)
]


@pytest.mark.usefixtures("programs")
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: Program, step_once: SteppedOnce) -> None:
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    build_one(program)
    stepped, steps = step_once([program.path])
    events, ran = read_events([program.path])
    assert ran == stepped
    check_beside(events)
    walked = events[np.isin(events["kind"], [FlowKind[name.upper()] for name in WALKED])]
    pairs = zip_longest(expect(Truth(steps)), tell(walked), fillvalue=((), False))
    for number, ((expected, leads_there), found) in enumerate(pairs):
        compared = slice(None) if leads_there else slice(3)
        assert found[compared] == expected[compared], f"event {number}"
