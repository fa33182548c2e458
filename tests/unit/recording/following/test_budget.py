"""Processes share what may be recorded of the order in a second."""

from __future__ import annotations

from typing import Any, cast

from clew.protocol._constants import PATH_UNLIMITED
from clew.recording.following.budget import Budget
from clew.recording.following.followed import FollowedProcess


class Process:
    """What a budget knows of a process: its number, and what it is told."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.shared = self
        self.part = -1

    def set_budget(self, part: int) -> None:
        self.part = part


def share(budget: Budget, *processes: Process) -> list[int]:
    budget.share(cast("list[FollowedProcess]", cast("Any", list(processes))))
    return [process.part for process in processes]


def test_each_has_its_part() -> None:
    budget = Budget(900)
    first, second, third = map(Process, range(3))
    assert share(budget, first) == [900]
    assert share(budget, first, second) == [450, 450]
    assert share(budget, first, second, third) == [300, 300, 300]
    assert share(budget, second, third) == [450, 450]


def test_who_takes_the_place_of_another_has_a_part() -> None:
    """As a program does that a process executes."""
    budget = Budget(900)
    first, second, executed = map(Process, range(3))
    share(budget, first, second)
    assert share(budget, first, executed) == [450, 450]


def test_without_a_limit_there_are_no_parts() -> None:
    budget = Budget(PATH_UNLIMITED)
    assert budget.bytes is None
    assert share(budget, Process(0), Process(1)) == [PATH_UNLIMITED, PATH_UNLIMITED]
