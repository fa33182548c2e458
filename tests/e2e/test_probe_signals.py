"""Signals that come while a program is where it is probed: timers, traps of the program's own, faults."""

from __future__ import annotations

import functools
import signal
from pathlib import Path

import pytest

from clew.address import Pid
from clew.probing.native import Technique
from clew.probing.planning import Planning
from clew.sessions.aggregate_table import AggregateWish
from clew.sessions.probes import probed_target
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ProbeSpec
from tests.e2e.probed_program import PROBES, at_once, calls_of, points, started
from tests.e2e.process_code import read_code
from tests.programs.build import build_plain

N_ALARMS = 300
N_TRAPS = 50


@pytest.fixture
def program() -> Path:
    return build_plain(PROBES / "probed_signals.c", "-O2")


@pytest.fixture
def only_traps(monkeypatch: pytest.MonkeyPatch) -> None:
    """No probe is a jump."""
    monkeypatch.setattr(probed_target, "Planning", functools.partial(Planning, [Technique.TRAP]))


def counts_of(*names: str) -> list[ProbeSpec]:
    """How often places are come to, added up in the program."""
    return [ProbeSpec(name, name, wish=AggregateWish([], None, None, 1, False)) for name in names]


def be_interrupted(program: Path, places: list[str], how: str = "timer") -> tuple[list[int], dict[str, int], int]:
    """What the program says of alarms, how often it came to places, and how often that was not taken."""
    session = ProbeSession(counts_of(*places))
    with started(program) as running:
        try:
            session.attach(Pid(running.pid))
            assert not session.take_remarks()
            said = [int(word) for word in running.ask(f"{how} {N_ALARMS}").split()]
            n_lost = sum(one.count for one in session.read().losses)
            counts = {spec.where: sum(found.read()["count"].to_pylist()) for spec, found in session.sums()}
        finally:
            session.close()
        assert not session.left
        assert running.ask("own") == "1 1"
    return said, counts, n_lost


def test_a_timer_of_a_kilohertz_comes_into_a_leaf(program: Path) -> None:
    """Each call is counted, or counted as not taken, where the alarm came in the midst of taking another one."""
    (n_wrong, n_calls, n_alarms), counts, n_lost = be_interrupted(program, ["leaf", "in_handler"])
    assert n_wrong == 0
    assert n_alarms >= N_ALARMS
    assert counts["leaf"] == n_calls
    assert counts["in_handler"] + n_lost == n_alarms


def test_it_comes_into_each_instruction_of_a_leaf(program: Path) -> None:
    places = [f"leaf+{offset}" for offset in (0, 5, 10, 15, 18, 21, 26, 29, 32)]
    (n_wrong, n_calls, _), counts, n_lost = be_interrupted(program, places)
    assert n_wrong == 0
    assert n_lost == 0
    assert counts == dict.fromkeys(places, n_calls)


@pytest.mark.usefixtures("only_traps")
def test_it_comes_where_a_probe_traps(program: Path) -> None:
    (n_wrong, n_calls, n_alarms), counts, n_lost = be_interrupted(program, ["leaf", "in_handler"])
    assert n_wrong == 0
    assert counts["leaf"] == n_calls
    assert counts["in_handler"] + n_lost == n_alarms


@pytest.mark.parametrize("places", [("leaf",), ("leaf", "leaf+15", "leaf+32")], ids=len)
def test_the_timer_s_handler_leaves_by_a_jump(program: Path, places: tuple[str, ...]) -> None:
    """Out of the leaf, out of copies, out of the midst of what takes an event: what was begun there is given up."""
    (n_wrong, n_calls, n_alarms), counts, n_lost = be_interrupted(program, [*places], "jumps")
    assert n_wrong == 0
    assert n_alarms == N_ALARMS
    # It may come between the program's own count and the leaf.
    assert len(places) * (n_calls - n_alarms) <= sum(counts.values()) + n_lost <= len(places) * n_calls


@pytest.mark.usefixtures("only_traps")
def test_the_program_traps_by_itself_where_probes_trap(program: Path) -> None:
    """It has handlers for that, which are called for its own traps alone, as the kernel would; in the end they are its
    actions again."""
    with started(program) as running:
        native = running.ask(f"traps {N_TRAPS}")
        assert native.split()[1:] == [str(N_TRAPS), str(N_TRAPS), "0"]
        with at_once(running.pid, calls_of("trapped")) as one:
            assert {armed.technique for armed in one.target.armed} == {Technique.TRAP}
            assert running.ask(f"traps {N_TRAPS}") == native
            assert one.count() == {"trapped_entry": N_TRAPS, "trapped_exit": N_TRAPS}
        assert running.ask("own") == "1 1"
        assert running.ask(f"traps {N_TRAPS}") == native


@pytest.mark.usefixtures("only_traps")
@pytest.mark.parametrize("is_left", [False, True])
def test_handlers_that_are_for_one_signal(program: Path, is_left: bool) -> None:
    """The next one ends the program (SA_RESETHAND), while it is probed, and behind that."""
    with started(program, "once") as running:
        with at_once(running.pid, calls_of("trapped")) as one:
            assert running.ask("traps 1").split()[1:] == ["1", "1", "0"]
            assert one.count() == {"trapped_entry": 1, "trapped_exit": 1}
            if not is_left:
                running.tell("traps 1")
                assert running.process.wait(60) == -signal.SIGTRAP
        if is_left:
            assert running.ask("own") == "0 0"
            running.tell("traps 1")
            assert running.process.wait(60) == -signal.SIGTRAP


def test_an_instruction_that_was_displaced_faults(program: Path) -> None:
    """The handler waits while the probes are taken out: it will return to the copy, which stays for it, and is told."""
    with started(program) as running:
        code = read_code(running.pid)
        session = ProbeSession(points("load"))
        try:
            session.attach(Pid(running.pid))
            assert running.ask("fault") == "waits"
            [(_, events)] = session.read().tables
            assert len(events) == 1
        finally:
            session.close()
        assert read_code(running.pid) == code
        assert ["stays mapped" in text for text in session.left] == [True]
        assert running.ask() == "42 0"
        # Natively, and probed anew.
        assert running.ask("fault") == "waits"
        assert running.ask() == "42 0"
        with at_once(running.pid, points("load")) as one:
            assert running.ask("fault") == "waits"
            assert running.ask() == "42 0"
            assert one.count() == {"load": 1}
        assert read_code(running.pid) == code
