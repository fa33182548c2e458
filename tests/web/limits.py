"""Limits of time on a machine that may have something else to do."""

from __future__ import annotations

from collections.abc import Callable


def assert_within(most: float, take: Callable[[], float], tries: int = 6) -> None:
    """One of some tries stays below `most`: whatever else the machine does can only add to what `take` measures."""
    taken: list[float] = []
    while not taken or (taken[-1] >= most and len(taken) < tries):
        taken.append(take())
    assert taken[-1] < most, taken
