"""How much was recorded of the code at an address, at a time: filters may change while the program runs.

Runs in the controller, after the target ended. Pure. When filters change all fragments go out of use, so a fragment is
of code in one state, and fragments that were in use at one time are of the same filters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.enumeration import IntEnum
from clew.recording.assembly.records.records import Fragments

__all__ = ["CodeState", "CodeStates"]

Array = npt.NDArray[Any]


class CodeState(IntEnum):
    """What became of code."""

    RECORDED = 0
    COUNTED = 1
    """It was not to be recorded; it was counted all the same, for ordered paths lead through it."""
    EXCLUDED = 2


class CodeStates:
    """The states of `fragments`, whose `ends` are the time stamps at which they went out of use."""

    def __init__(self, fragments: Fragments, ends: Array) -> None:
        self._fragments, self._ends = fragments, ends
        self._state = np.where(fragments.is_excluded, CodeState.EXCLUDED, fragments.is_left_out).astype(np.int8)
        # How often the state changes from one fragment to the next, up to each: where it does not all are of one.
        self._changes = np.concatenate(([0], np.cumsum(self._state[1:] != self._state[:-1])))
        self._order: Array | None = None

    def find_of_ways(
        self, source: Array, source_pc: Array, target_pc: Array, tsc: Array | None = None
    ) -> tuple[Array, Array]:
        """The states, i8, of the code on both sides of ways out of fragments (`source`, indices) to an address.

        Of a way out of no fragment (-1) `tsc` says when it was first taken, and its own side is at address `source_pc`.
        """
        comes_from = np.full(len(source), CodeState.RECORDED, np.int8)
        if not self._state.any():
            return comes_from, comes_from
        start, end = np.zeros((2, len(source)), np.uint64)
        inside = np.flatnonzero(source >= 0)
        start[inside], end[inside] = self._fragments.tsc[source[inside]], self._ends[source[inside]]
        comes_from[inside] = self._state[source[inside]]
        if tsc is not None:
            alone = np.flatnonzero(source < 0)
            start[alone] = end[alone] = tsc[alone]
            comes_from[alone] = self._find(source_pc[alone], tsc[alone], tsc[alone])
        return comes_from, self._find(target_pc, start, end)

    def _find(self, pc: Array, start: Array, end: Array) -> Array:
        """The state, i8, of the code at each address while something was in use from time stamp `start` up to `end`.

        What came there only after that was in the state in which it was found. RECORDED where no code was ever read.
        """
        app_pc = self._fragments.app_pc
        first, last = np.searchsorted(app_pc, pc), np.searchsorted(app_pc, pc, "right")
        found = np.full(len(pc), CodeState.RECORDED, np.int8)
        known = np.flatnonzero(last > first)
        found[known] = self._state[first[known]]
        several = known[self._changes[last[known] - 1] != self._changes[first[known]]]
        found[several] = self._find_in_use(first[several], last[several], start[several], end[several])
        return found

    def _find_in_use(self, first: Array, last: Array, start: Array, end: Array) -> Array:
        """The states of those of the fragments from `first` up to `last`, of one address, that were in use then."""
        if not len(first):
            return np.zeros(0, np.int8)
        tsc, n = self._fragments.tsc, len(self._fragments)
        if self._order is None:
            self._order = np.lexsort((tsc, self._fragments.app_pc))
            self._times = np.sort(tsc)
            group = np.searchsorted(self._fragments.app_pc, self._fragments.app_pc)
            self._keys = group * (n + 1) + np.searchsorted(self._times, tsc[self._order])
        # The last that was made before the end; or, if it had gone by then, the one that was made next.
        at = np.searchsorted(self._keys, first * (n + 1) + np.searchsorted(self._times, end)) - 1
        at = np.maximum(at, first)
        at += (self._ends[self._order[at]] <= start) & (at + 1 < last)
        found: Array = self._state[self._order[at]]
        return found
