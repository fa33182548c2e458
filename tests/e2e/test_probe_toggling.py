"""A thousand probes come and go while eight threads execute what they are in: results are right, and counts exact."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from clew.address import Pid
from clew.process.identity import read_signals
from clew.sessions.aggregate_table import AggregateWish
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ProbeSpec
from tests.e2e import runs
from tests.e2e.probed_program import PROBES, Program, points, started
from tests.e2e.process_code import dirty_code, read_code
from tests.programs.build import build_plain

N_KINDS = 32
KEPT = (0, 5, 10, 15, 16, 21, 26, 31)
"""Kinds whose probes stay: of each shape of functions two."""
N_THREADS = 8


def counted(kind: int, *, is_function: bool) -> ProbeSpec:
    """How often functions of a kind begin, or how often they return."""
    return ProbeSpec(f"f_{kind}", f"f_{kind}_*", is_function, wish=AggregateWish([], None, None, 1, False))


def sums_of(session: ProbeSession) -> tuple[list[int], list[int]]:
    """By kind: how often functions have begun, and how often they have returned."""
    counts = {(spec.name, spec.is_function): sum(found.read()["count"].to_pylist()) for spec, found in session.sums()}
    begun, returned = ([counts[f"f_{kind}", one] for kind in range(N_KINDS)] for one in (False, True))
    return begun, returned


def halt(running: Program) -> list[int]:
    """How often the threads have called functions of each kind; no result was wrong."""
    wrong, *calls = map(int, running.ask().split())
    assert wrong == 0
    return calls


@pytest.mark.parametrize("n_cycles", [6, pytest.param(150, marks=[pytest.mark.stress, pytest.mark.timeout(3600)])])
def test_counts_are_exact_while_probes_come_and_go(n_cycles: int) -> None:
    program = build_plain(PROBES / "probed_counted.c", "-O2", "-rdynamic", "-pthread")
    chosen = random.Random(n_cycles)
    session = ProbeSession([counted(kind, is_function=one) for one in (False, True) for kind in range(N_KINDS)])
    with started(program, str(N_THREADS)) as running:
        code = read_code(running.pid)
        # A thread that has only just been made blocks all signals.
        tasks = list(Path(f"/proc/{running.pid}/task").iterdir())
        runs.wait_until(lambda: not any(read_signals(f"{running.pid}/task/{task.name}", "SigBlk") for task in tasks))
        try:
            session.attach(Pid(running.pid))
            [target] = session.owned
            assert not target.remarks
            assert len(target.armed) > 1000
            # What hears of libraries is in the dynamic linker.
            n_held = target.n_held
            assert n_held <= 1
            others = [index for index, one in target.probes.items() if int(one.spec.name[2:]) not in KEPT]
            running.tell()
            absent: set[int] = set()
            for _ in range(n_cycles):
                now = set(chosen.sample(others, chosen.randrange(1, len(others))))
                session.remove(now - absent)
                session.enable(sorted(absent - now))
                absent = now
                assert not session.read().losses
            session.enable(sorted(absent))
            calls = halt(running)
            begun, returned = sums_of(session)
            assert [begun[kind] for kind in KEPT] == [calls[kind] for kind in KEPT]
            assert [returned[kind] for kind in KEPT] == [calls[kind] for kind in KEPT]
            for kind in range(N_KINDS):
                assert returned[kind] <= calls[kind]
                assert begun[kind] <= calls[kind]
            # All are there again.
            running.tell()
            session.wait(0.2)
            again = halt(running)
            since = [now - before for now, before in zip(again, calls, strict=True)]
            for sums, earlier in zip(sums_of(session), (begun, returned), strict=True):
                assert [one - other for one, other in zip(sums, earlier, strict=True)] == since
            assert target.n_held == n_held
        finally:
            session.close()
        assert not session.left
        assert read_code(running.pid) == code
        assert not dirty_code(running.pid)
        assert running.end() == 0


@pytest.mark.parametrize(
    ("how", "places"),
    [
        ("", ["libc.so.6!__ctype_init", "libc.so.6!madvise", "libc.so.6!munmap"]),
        ("masks", ["count"]),
        ("handler", ["count"]),
    ],
)
def test_threads_block_traps_for_a_moment(how: str, places: list[str]) -> None:
    """Whoever traps then ends its process: so nothing traps while the code is written."""
    with started(build_plain(PROBES / "probed_makers.c", "-O1", "-pthread"), how) as running:
        kept = ProbeSpec("kept", "count", wish=AggregateWish([], None, None, 1, False))
        session = ProbeSession([kept, *points(*places)])
        try:
            session.attach(Pid(running.pid))
            [target] = session.owned
            others = list(range(1, 1 + len(places)))
            for _ in range(60):
                session.remove(others)
                session.enable(others)
                session.read()
            assert target.n_held and not target.remarks
            [(_, found)] = session.sums()
            n_before = sum(found.read()["count"].to_pylist())
            assert (n_before > 0) == bool(how)
        finally:
            session.close()
        assert int(running.ask()) >= n_before
        assert running.end() == 0
