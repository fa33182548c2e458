"""Counters of fragments whose executions follow from what leads to them.

Runs in the controller, after the target ended. Pure. A fragment that has a *leader* is entered by one way out of that
past what counts it: how often the leader took the way, less its *misses* there, is what the fragment's counter lacks.
Leaders can have leaders, and a fragment several; what begins such a chain counts for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import EdgeKind
from clew.recording.assembly.arrays.keys import sorted_unique
from clew.recording.assembly.arrays.rows import NumberSet, Rows, is_in
from clew.recording.assembly.arrays.tallies import Tally
from clew.recording.assembly.records.records import Fragments, count_ways

__all__ = ["Leaders"]

Array = npt.NDArray[Any]

_MAX_DEPTH = 128
"""No chain of leaders is longer: what goes on, or round in a circle, is not followed."""

_ENDS = ("source_fragment_id", "target_fragment_id")

_MAX_CELLS = 1 << 20
"""Of a table with the counters of some threads, that many at a time."""


@dataclass(frozen=True)
class _Link:
    """Ways of leaders, one element each: i64 counters, the follower's first. `other` is taken from `way`; -1: none."""

    counter: Array
    way: Array
    other: Array
    misses: Array

    def take(self, rows: Array) -> _Link:
        return _Link(self.counter[rows], self.way[rows], self.other[rows], self.misses[rows])

    @property
    def terms(self) -> list[tuple[Array, int]]:
        """What is added up for each: counters, and what each of them is taken times."""
        return [(self.way, 1), (self.other, -1), (self.misses, -1)]


class Leaders:
    """Adds to the counters of fragments what their leaders counted, and removes the counters of misses."""

    def __init__(self, fragments: Fragments, links: Array) -> None:
        n_ways = count_ways(fragments.exit_kind)
        has_misses = np.flatnonzero((fragments.counter_index >= 0) & (fragments.n_misses > 0))
        first = fragments.counter_index[has_misses] + n_ways[has_misses]
        second = np.where(fragments.n_misses[has_misses] > 1, first + 1, -1)
        self._has_misses, self._misses = bool(len(first)), NumberSet(first, second)
        # In an order in which each leader's counters are complete before they are used.
        self._steps = list(_find_steps(fragments, n_ways, links))
        linked = [np.concatenate([step.counter, step.way, step.other, step.misses]) for step in self._steps]
        used = sorted_unique(np.zeros(0, np.int64), *linked)
        self._used = used[used >= 0]

    def apply(self, counters: Tally) -> Tally:
        """The counters of some threads, with what follows from others."""
        if not self._has_misses:
            return counters
        is_used = np.zeros(len(counters), bool)
        if len(self._used):
            is_used = NumberSet(self._used).holds(counters.number)
        rest = counters.take(~is_used & ~self._misses.holds(counters.number))
        if not is_used.any():
            return rest
        used = counters.take(is_used)
        parts = [(rest.thread, rest.number, rest.count), *self._complete(used)]
        thread, number, count = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((number, thread))
        return Tally(counters.n_threads, thread[order], number[order], count[order])

    def weigh(self, weights: Array) -> None:
        """Change `weights`, i64 by index of a counter: from what one count of a complete counter means to what one has
        of a counter as the runtime keeps it.
        """
        for step in reversed(self._steps):
            weight = weights[step.counter]
            for counter, times in step.terms:
                there = counter >= 0
                np.add.at(weights, counter[there], times * weight[there])

    def list_causes(self, counter: Array, item: Array, times: Array) -> tuple[Array, Array, Array]:
        """Rows of counters, what one count of each stands for, and how often: as `weigh` does to weights."""
        for step in reversed(self._steps):
            link, rows = Rows(step.counter).find(counter)
            parts = [(counter, item, times)]
            for cause, sign in step.terms:
                there = cause[link] >= 0
                parts.append((cause[link][there], item[rows][there], sign * times[rows][there]))
            counter, item, times = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return counter, item, times

    def find_causes(self, counter: Array) -> Array:
        """Counters (i64, rising) and those that they follow from."""
        found = sorted_unique(counter)
        for step in reversed(self._steps):
            link = step.take(np.flatnonzero(is_in(step.counter, found)))
            causes = np.concatenate([cause for cause, _ in link.terms])
            found = sorted_unique(found, causes[causes >= 0])
        return found

    def _complete(self, used: Tally) -> Iterator[tuple[Array, Array, Array]]:
        """Threads, numbers and counts of the counters that have to do with leaders; those of misses left out."""
        column = np.searchsorted(self._used, used.number)
        n_columns = len(self._used) + 1
        is_kept = ~self._misses.holds(self._used)
        links = [
            _Link(*(self._find(counter) for counter in (one.counter, one.way, one.other, one.misses)))
            for one in self._steps
        ]
        bounds = np.searchsorted(used.thread, np.arange(used.n_threads + 1))
        at_once = max(_MAX_CELLS // n_columns, 1)
        for first in range(0, used.n_threads, at_once):
            last = min(first + at_once, used.n_threads)
            rows = slice(int(bounds[first]), int(bounds[last]))
            table = np.zeros((last - first, n_columns), np.int64)
            table[used.thread[rows] - first, column[rows]] = used.count[rows]
            for link in links:
                came = table[:, link.way] - table[:, link.other] - table[:, link.misses]
                np.add.at(table.T, link.counter, came.T)
                # While a thread runs its counters are not read at one time.
                table[:, link.counter] = np.maximum(table[:, link.counter], 0)
            thread, number = np.nonzero(table[:, :-1] * is_kept)
            yield thread + first, self._used[number], table[thread, number]

    def _find(self, counter: Array) -> Array:
        """Columns of counters: the last one, which is empty, for none."""
        return np.where(counter < 0, len(self._used), np.searchsorted(self._used, counter))


def _find_steps(fragments: Fragments, n_ways: Array, links: Array) -> Iterator[_Link]:
    """What leaders say, in steps: those of a step depend on earlier ones alone."""
    by_number = Rows(fragments.fragment_id)
    ahead, follower = (by_number.find_first(links[name].astype(np.int64)) for name in _ENDS)
    is_second = links["edge_kind"] == EdgeKind.NOT_TAKEN
    is_known = (ahead >= 0) & (follower >= 0)
    ahead, follower, is_second = ahead[is_known], follower[is_known], is_second[is_known]
    is_sound = (fragments.counter_index[ahead] >= 0) & (fragments.counter_index[follower] >= 0)
    is_sound &= (fragments.n_misses[ahead] == n_ways[ahead]) & (~is_second | (n_ways[ahead] == 2))
    follower, ahead, is_second = follower[is_sound], ahead[is_sound], is_second[is_sound]
    first = fragments.counter_index[ahead]
    is_first_both, is_second_both = fragments.first_is_both[ahead], fragments.second_is_both[ahead]
    other = np.where(is_second & is_second_both, first, np.where(~is_second & is_first_both, first + 1, -1))
    link = _Link(
        counter=fragments.counter_index[follower] + fragments.second_is_both[follower],
        way=first + is_second,
        other=other,
        misses=first + n_ways[ahead] + is_second,
    )
    # How many leaders stand one behind the other in front of each fragment.
    depth = np.zeros(len(fragments), np.int64)
    for _ in range(_MAX_DEPTH + 1):
        before = depth.copy()
        np.maximum.at(depth, follower, depth[ahead] + 1)
        if np.array_equal(before, depth):
            break
    depth_of_link = depth[follower]
    for step in range(1, min(int(depth_of_link.max(initial=0)), _MAX_DEPTH) + 1):
        yield link.take(np.flatnonzero(depth_of_link == step))
