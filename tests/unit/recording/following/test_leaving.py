"""Leaving several processes: who is tried when, and what is said of those that stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from clew.address import Pid
from clew.errors import AttachError
from clew.recording.following import leaving
from clew.recording.following.leaving import leave_all
from clew.recording.following.processes import Processes


@dataclass(eq=False)
class Process:
    """`n_refusals`: how often it can't be left. `children` are born while it is left."""

    pid: int
    n_refusals: int = 0
    children: list[Process] = field(default_factory=list)


class FakeProcesses:
    """What `leave_all` knows of `Processes`."""

    def __init__(self, *live: Process, n_unsettled: int = 0) -> None:
        self.live = list(live)
        self.n_unsettled = n_unsettled
        self.is_leaving = False
        self.tried: list[tuple[int, float]] = []
        self.traced: Process | None = None
        """Who another one waits to trace: it goes when that is tended, and only then the other one can be left."""

    def begin_leaving(self) -> None:
        self.is_leaving = True

    def advance(self) -> None:
        if self.traced is not None:
            self.live.remove(self.traced)
            self.traced = None

    def poll(self, _delay_seconds: float) -> None:
        self.n_unsettled = max(self.n_unsettled - 1, 0)

    def detach(self, process: Process, patience_seconds: float, _is_given_up: Callable[[], bool]) -> float:
        assert self.is_leaving
        assert self.traced is None
        self.tried.append((process.pid, patience_seconds))
        if process.n_refusals:
            process.n_refusals -= 1
            raise AttachError(process.pid, f"process {process.pid}: not now")
        self.live.remove(process)
        self.live += process.children
        return 0.25


def leave(processes: FakeProcesses, is_given_up: Callable[[], bool] = lambda: False) -> Any:
    return leave_all(cast(Processes, processes), is_given_up)


def test_all_are_left_and_those_that_are_born_meanwhile() -> None:
    processes = FakeProcesses(Process(1, children=[Process(3)]), Process(2), n_unsettled=2)
    left = leave(processes)
    assert left.seconds == {Pid(1): 0.25, Pid(2): 0.25, Pid(3): 0.25}
    assert (left.failures, processes.n_unsettled) == ([], 0)


def test_who_can_not_be_left_is_tried_again_when_the_others_are_gone() -> None:
    processes = FakeProcesses(Process(1, n_refusals=1), Process(2))
    assert leave(processes).failures == []
    first, second, _ = leaving.PATIENCE_SECONDS
    assert processes.tried == [(1, first), (2, first), (1, second)]


def test_who_stays_is_named() -> None:
    processes = FakeProcesses(Process(1, n_refusals=99), Process(2))
    assert leave(processes).failures == ["process 1: not now; the process goes on with clew's runtime in it"]
    assert [pid for pid, _ in processes.tried] == [1, 2, 1, 1]


def test_told_to_give_up_nobody_is_waited_for() -> None:
    processes = FakeProcesses(Process(1, n_refusals=99), Process(2))
    left = leave(processes, lambda: len(processes.tried) == 1)
    assert [pid for pid, _ in processes.tried] == [1]
    assert len(left.failures) == 2


def test_children_that_never_come_are_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "PATIENCE_SECONDS", (0.01, 0.01))
    processes = FakeProcesses(n_unsettled=1 << 30)
    assert "a process that was just being made" in leave(processes).failures[0]


def test_processes_that_multiply_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Multiplying(FakeProcesses):
        def detach(self, process: Process, patience_seconds: float, is_given_up: Callable[[], bool]) -> float:
            self.live += [Process(process.pid + 1)]
            return super().detach(process, patience_seconds, is_given_up)

    monkeypatch.setattr(leaving, "MAX_SECONDS", 0.05)
    left = leave(Multiplying(Process(1)))
    assert "there was no time for it" in left.failures[0]


def test_who_is_to_be_traced_goes_before_its_tracer_is_waited_for() -> None:
    processes = FakeProcesses(tracer := Process(1), Process(2))
    processes.traced = processes.live[1]
    left = leave(processes)
    assert (processes.tried, left.failures) == ([(tracer.pid, leaving.PATIENCE_SECONDS[0])], [])
