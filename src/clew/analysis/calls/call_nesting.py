"""Calls within calls: by call the one around it, how deep it is, how much of its time was its own.

Runs in the controller. All is by index of CallRows, which is in the order of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np

from clew.analysis.calls.call_rows import CallRows
from clew.analysis.tables.arrays import Array

__all__ = ["NONE", "CallNesting"]

NONE: Final = -1
_MOST_DOUBLINGS: Final = 32
"""So often the distance of ancestors doubles: calls that are said to be around each other end there."""


class CallNesting:
    """`parent` (i32): by call the index of the innermost around it, NONE for none."""

    def __init__(self, rows: CallRows, parent: Array) -> None:
        self.rows = rows
        self.parent = parent.astype(np.int32, copy=False)

    @cached_property
    def depth(self) -> Array:
        """By call how many (i32) are around it."""
        known = np.append(self.parent, NONE)
        ancestor, depth = known.copy(), (known >= 0).astype(np.int32)
        for _ in range(_MOST_DOUBLINGS):
            if not (ancestor >= 0).any():
                break
            # Behind the last one is none: that has no depth, and leads to itself.
            depth += np.where(ancestor >= 0, depth[ancestor], 0)
            ancestor = np.where(ancestor >= 0, ancestor[ancestor], NONE)
        return depth[:-1]

    @cached_property
    def took(self) -> Array:
        """By call how long it took (i64, ns); 0 where that is not known."""
        if self.rows.duration_ns is None:
            return np.zeros(len(self.rows), np.int64)
        found: Array = np.maximum(self.rows.duration_ns, 0)
        return found

    @cached_property
    def own(self) -> Array:
        """By call how much of that (i64, ns) was not within calls in it."""
        inside = self.parent >= 0
        within = np.bincount(self.parent[inside], weights=self.took[inside], minlength=len(self.rows))
        found: Array = np.maximum(self.took - within.astype(np.int64), 0)
        return found

    @cached_property
    def n_within(self) -> Array:
        """By call how many (i64) it is the innermost around."""
        return np.bincount(self.parent[self.parent >= 0], minlength=len(self.rows))

    @cached_property
    def _by_parent(self) -> tuple[Array, Array]:
        """Calls (u32) by the one around them, each in the order of time, and where those of each parent begin."""
        order = np.argsort(self.parent, kind="stable").astype(np.uint32)
        return order, np.searchsorted(self.parent[order], np.arange(len(self.rows) + 1))

    def within(self, call: int) -> Array:
        """Calls (u32) that one is the innermost around, in the order of time."""
        order, first = self._by_parent
        return order[int(first[call]) : int(first[call + 1])]

    def outermost(self, thread: int) -> Array:
        """Calls (u32) of a thread, an index of `tids`, that are within none."""
        order, first = self._by_parent
        alone = order[: int(first[0])]
        found: Array = alone[self.rows.thread[alone] == thread]
        return found

    def around(self, call: int) -> Iterator[int]:
        """The calls around one, the innermost first."""
        known = {call}
        while (call := int(self.parent[call])) >= 0 and call not in known:
            known.add(call)
            yield call

    def with_those_around(self, chosen: Array) -> Array:
        """Calls (bool) that are chosen, or around one that is."""
        kept = chosen.copy()
        latest: Array = np.flatnonzero(chosen)
        while len(latest):
            above = np.unique(self.parent[latest])
            latest = above[(above >= 0) & ~kept[above]]
            kept[latest] = True
        return kept
