"""Calls as bars over time, by thread and depth: what is drawn in the lanes of threads, however many there are.

Runs in the controller. Of a thread and a depth no two calls overlap; those that begin in one bin are one bar.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from clew.analysis.calls.call_nesting import CallNesting
from clew.analysis.tables.arrays import Array
from clew.protocol.words import CALL_WORDS

__all__ = ["CallBars", "CallLanes"]

MAX_DEPTH: Final = 4
"""Calls that are deeper are not drawn: their parents are there."""
MAX_ROWS: Final = 8
"""The same where there are events of probes, which are within each other but not within calls: they are below these."""
_PROBE: Final = CALL_WORDS.index("probe")
_LONGEST_NS: Final = 1 << 38
_PLACE_BITS: Final = 24


@dataclass(frozen=True)
class CallBars:
    """Bars: `thread` (an index of `tids`), `depth`, `start_ns` and `end_ns` (i64), `calls`: how many there are in it,
    `failed`: how many of them, `longest`: the index of the one that took the longest."""

    thread: Array
    depth: Array
    start_ns: Array
    end_ns: Array
    calls: Array
    failed: Array
    longest: Array


class CallLanes:
    """The calls of a process by thread, depth and time."""

    def __init__(self, nesting: CallNesting) -> None:
        self._nesting = nesting

    @cached_property
    def _lanes(self) -> dict[tuple[int, int], Array]:
        """By thread and depth their calls (u32), by time."""
        nesting = self._nesting
        depth = self._depth
        shallow = np.flatnonzero((depth < self.n_rows) & (nesting.rows.thread < len(nesting.rows.tids)))
        key = nesting.rows.thread[shallow].astype(np.int64) * self.n_rows + depth[shallow]
        order = np.argsort(key, kind="stable")
        borders = np.flatnonzero(np.diff(key[order], prepend=-1, append=-1))
        return {
            divmod(int(key[order[start]]), self.n_rows): shallow[order[start:end]].astype(np.uint32)
            for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
        }

    @cached_property
    def n_rows(self) -> int:
        """How many depths are drawn at most."""
        return MAX_ROWS if (self._nesting.rows.kind == _PROBE).any() else MAX_DEPTH

    @cached_property
    def _depth(self) -> Array:
        """By call the depth at which it is drawn: `n_rows` or more for none."""
        depth, is_probe = self._nesting.depth, self._nesting.rows.kind == _PROBE
        if not is_probe.any():
            return depth
        others = np.where(depth < MAX_DEPTH, depth, MAX_ROWS)
        above = min(int(depth[~is_probe].max(initial=-1)) + 1, MAX_DEPTH)
        found: Array = np.where(is_probe, depth + above, others)
        return found

    def n_deep(self, threads: set[int] | None) -> int:
        """How many depths the calls of some threads, or of all, have, at most `n_rows`."""
        return max((depth + 1 for thread, depth in self._lanes if threads is None or thread in threads), default=0)

    def bars(self, start_ns: int, end_ns: int, n_bins: int, threads: set[int] | None, chosen: Array | None) -> CallBars:
        """The bars between two times, by threads (indices of `tids`), of the calls `chosen` (bool), or of all."""
        parts = [_NOTHING]
        for (thread, depth), calls in self._lanes.items():
            if threads is None or thread in threads:
                found = self._bars(calls, start_ns, end_ns, n_bins, chosen)
                parts.append(np.concatenate([np.broadcast_to([[thread], [depth]], (2, found.shape[1])), found]))
        return CallBars(*np.concatenate(parts, axis=1))

    def _bars(self, calls: Array, start_ns: int, end_ns: int, n_bins: int, chosen: Array | None) -> Array:
        rows, took = self._nesting.rows, self._nesting.took
        begins = rows.time_ns[calls]
        # Those that began before may reach in: of one depth that is the last of them.
        first = max(int(np.searchsorted(begins, start_ns)) - 1, 0)
        calls = calls[first : int(np.searchsorted(begins, end_ns))]
        ends = rows.time_ns[calls] + took[calls]
        calls = calls[ends >= start_ns]
        if chosen is not None:
            calls = calls[chosen[calls]]
        if not len(calls):
            return np.zeros((5, 0), np.int64)
        begins, spans = rows.time_ns[calls], took[calls]
        bins = ((begins - start_ns).astype(np.float64) * (n_bins / (end_ns - start_ns))).astype(np.int64)
        groups = np.flatnonzero(np.diff(bins, prepend=bins[0] - 1))
        counts = np.diff(groups, append=len(calls))
        failed = np.add.reduceat(rows.failed[calls].astype(np.int64), groups)
        # The longest of each group, the last of as long ones: length and place in one number.
        ranked = (np.minimum(spans, _LONGEST_NS) << _PLACE_BITS) | np.arange(len(calls))
        longest = calls[np.maximum.reduceat(ranked, groups) & ((1 << _PLACE_BITS) - 1)]
        last = np.maximum.reduceat(begins + spans, groups)
        return np.stack([begins[groups], last, counts, failed, longest.astype(np.int64)])


_NOTHING: Final = np.zeros((7, 0), np.int64)
