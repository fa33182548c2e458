"""How often each of several threads did each of many things.

Runs in the controller, after the target ended. Pure. A step on arrays costs the same for the hundred counters of a
short thread as for thousands: so threads go through such steps together, as many as are worth it, and what each of them
did is cut out at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.recording.assembly.rows import add_up

__all__ = ["Tally", "iter_batches", "narrow"]

Array = npt.NDArray[Any]

MAX_ROWS = 1 << 16
"""Of several threads together. More at a time gain nothing, and take memory."""

_NARROW_LIMIT = 1 << 31


@dataclass(frozen=True)
class Tally:
    """What some threads did, by its number, and how often: i64, one element each, by thread and of each by number."""

    n_threads: int
    thread: Array
    number: Array
    count: Array

    @classmethod
    def join(cls, parts: Sequence[tuple[Array, Array]]) -> Tally:
        """Of one thread after the other, numbers that rise and counts."""
        sizes = [len(number) for number, _ in parts]
        return cls(
            len(parts),
            np.repeat(np.arange(len(parts)), sizes),
            np.concatenate([number for number, _ in parts]).astype(np.int64, copy=False),
            np.concatenate([count for _, count in parts]).astype(np.int64, copy=False),
        )

    @classmethod
    def add_up(cls, n_threads: int, *parts: tuple[Array, Array, Array]) -> Tally:
        """Of threads, numbers and counts in any order; what one thread has several times is added up."""
        thread, number, count = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        if n_threads == 1:
            different, total = add_up(number, count)
            return cls(1, np.zeros(len(different), np.int64), different, total)
        # Numbers that none of them has are left out, so that a table of the others is short.
        lowest = int(number.min()) if len(number) else 0
        is_there = np.zeros(int(number.max()) + 1 - lowest if len(number) else 0, bool)
        is_there[number - lowest] = True
        there = np.flatnonzero(is_there)
        rank = np.cumsum(is_there) - 1
        key, total = add_up(thread * len(there) + rank[number - lowest], count)
        owner, at = np.divmod(key, max(len(there), 1))
        return cls(n_threads, owner, there[at] + lowest, total)

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: Array) -> Tally:
        """Those of some rows, which rise, or for which `rows` is true."""
        return Tally(self.n_threads, self.thread[rows], self.number[rows], self.count[rows])

    def find(self, thread: Array, number: Array) -> Array:
        """The rows that have these numbers of these threads, all of which are there."""
        highest = int(self.number.max()) + 1 if len(self) else 1
        return np.searchsorted(self.thread * highest + self.number, thread * highest + number)

    def split(self) -> list[tuple[Array, Array]]:
        """Numbers and counts of each thread."""
        if self.n_threads == 1:
            return [(self.number, self.count)]
        bounds = np.searchsorted(self.thread, np.arange(self.n_threads + 1)).tolist()
        return [(self.number[first:end], self.count[first:end]) for first, end in itertools.pairwise(bounds)]


def narrow(numbers: Array) -> Array:
    """A copy of integers for keeping: what each of many threads did is most of what is in memory at a time.

    Of 32 bits if they fit. To be widened before more is done than to add them up or to index by them.
    """
    fits = not len(numbers) or -_NARROW_LIMIT <= int(numbers.min()) <= int(numbers.max()) < _NARROW_LIMIT
    return numbers.astype(np.int32 if fits else np.int64)


def iter_batches(sizes: Sequence[int]) -> Iterator[slice]:
    """Threads that have so many rows each, one after another, in parts that are worked on together."""
    first = n_rows = 0
    for index, size in enumerate(sizes):
        if index > first and n_rows + size > MAX_ROWS:
            yield slice(first, index)
            first, n_rows = index, 0
        n_rows += size
    if sizes:
        yield slice(first, len(sizes))
