"""Memory events are the accesses that single-stepping saw: where, what, how many bytes, which values, in their
order."""

from __future__ import annotations

import os
from itertools import zip_longest
from subprocess import DEVNULL
from typing import Any

import numpy as np
import pytest

import clew
from clew.protocol.codec import AccessKind, FlowKind
from tests.oracle.access_steps import Access, step_accesses
from tests.oracle.test_events import fixed_layout
from tests.oracle.test_exact import programs_with
from tests.programs.build import Program, build_one


def read_accesses(program: Program, **how: Any) -> tuple[list[Access], np.ndarray[Any, Any]]:
    """Those that a session tells of a program's first thread; and all its events."""
    with fixed_layout():
        session = clew.spawn([os.fspath(program.path)], environment={}, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    with session:
        stream = session.follow(events={"memory", "exec", "call"}, **how)
        session.resume()
        batches = list(stream)
        session.wait(60)
        assert (stream.n_dropped, stream.n_gaps, stream.n_damaged, stream.n_unmatched) == (0, 0, 0, 0)
    events = np.concatenate(batches)
    events = events[events["thread"] == session.pid]
    assert (events["sequence"] == np.arange(len(events))).all()
    names = {int(kind): kind.name.lower() for kind in AccessKind}
    columns = [
        events[events["kind"] == FlowKind.MEMORY][name].tolist()
        for name in ("address", "target", "size", "access", "value")
    ]
    told = [Access(pc, at, size, names[kind], value) for pc, at, size, kind, value in zip(*columns, strict=True)]
    return told, events


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", programs_with("memory"), ids=lambda program: program.name)
def test_program(program: Program) -> None:
    build_one(program)
    expected = step_accesses(program.path)
    told, events = read_accesses(program)
    for number, (one, other) in enumerate(zip_longest(expected, told)):
        assert one == other, f"access {number}"
        assert one.value is None or one.value == other.value, f"value of access {number}: {one}"
    # Each comes behind the instruction that made it.
    executed = np.maximum.accumulate(np.where(events["kind"] == FlowKind.EXEC, np.arange(len(events)), 0))
    is_memory = events["kind"] == FlowKind.MEMORY
    assert (events["address"][executed[is_memory]] == events["address"][is_memory]).all()
