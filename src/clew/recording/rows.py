"""Finding a few rows of a large table by a number, and adding up what belongs to the same one.

Runs in the controller, after the target ended. Pure. What a thread or a child did is little beside what its process
has: working it out must take no longer for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.recording.blocks_keys import spans

__all__ = ["Rows", "add_up", "is_in"]

Array = npt.NDArray[Any]


class Rows:
    """Where each number stands in an array."""

    def __init__(self, numbers: Array) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._order]

    def find(self, wanted: Array) -> tuple[Array, Array]:
        """The rows that hold one of `wanted`; and of which of them (an index) each is."""
        first = np.searchsorted(self._sorted, wanted)
        n = np.searchsorted(self._sorted, wanted, "right") - first
        return self._order[spans(first, n)], np.repeat(np.arange(len(wanted)), n)

    def find_first(self, wanted: Array) -> Array:
        """The first row that holds each of `wanted`; -1 where there is none."""
        if not len(self._sorted):
            return np.full(len(wanted), -1)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        return np.where(self._sorted[at] == wanted, self._order[at], -1)


def add_up(number: Array, count: Array) -> tuple[Array, Array]:
    """The different ones of `number`, sorted, and the sum of `count`, i64, for each."""
    order = np.argsort(number, kind="stable")
    together = number[order]
    first = np.flatnonzero(np.append(True, together[1:] != together[:-1])) if len(together) else order
    totals: Array = np.add.reduceat(count[order].astype(np.int64), first) if len(first) else np.zeros(0, np.int64)
    return together[first], totals


def is_in(wanted: Array, numbers: Array) -> Array:
    """Which of `wanted` are among `numbers`, which are sorted."""
    if not len(numbers):
        return np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    found: Array = numbers[at] == wanted
    return found
