"""How often each of several threads did each of many things.

Runs in the controller, after the target ended. Pure. A step on arrays costs the same for the hundred counters of a
short thread as for thousands: so threads go through such steps together, as many as are worth it, and what one of them
did is cut out where somebody asks for it.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.recording.assembly.arrays.rows import add_up

__all__ = ["Batches", "KeptTally", "Tally", "iter_batches", "narrow"]

Array = npt.NDArray[Any]

MAX_ROWS = 1 << 16
"""Of several threads together. More at a time gain nothing, and take memory."""

_NARROW_LIMIT = 1 << 31


@dataclass(frozen=True)
class Tally:
    """What some threads did, by its number, and how often: one element each, by thread and of each by number.

    Counts are i64, threads i32, numbers of 32 bits if they fit.
    """

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
            np.repeat(np.arange(len(parts), dtype=np.int32), sizes),
            narrow(np.concatenate([number for number, _ in parts])),
            np.concatenate([count for _, count in parts]).astype(np.int64, copy=False),
        )

    @classmethod
    def add_up(cls, n_threads: int, *parts: tuple[Array, Array, Array]) -> Tally:
        """Of threads, numbers and counts in any order; what one thread has several times is added up."""
        threads, numbers, counts = zip(*parts, strict=True)
        number, count = np.concatenate(numbers), np.concatenate(counts)
        if n_threads == 1:
            different, total = add_up(number, count)
            return cls(1, np.zeros(len(different), np.int32), narrow(different), total)
        # Numbers that none of them has are left out, so that a table of the others is short.
        lowest = int(number.min()) if len(number) else 0
        is_there = np.zeros(int(number.max()) + 1 - lowest if len(number) else 0, bool)
        is_there[number - lowest] = True
        there = np.flatnonzero(is_there)
        rank = np.cumsum(is_there) - 1
        key, total = add_up(np.concatenate(threads).astype(np.int64) * len(there) + rank[number - lowest], count)
        owner, at = np.divmod(key, max(len(there), 1))
        return cls(n_threads, owner.astype(np.int32), narrow(there[at] + lowest), total)

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: Array) -> Tally:
        """Those of some rows, which rise, or for which `rows` is true."""
        return Tally(self.n_threads, self.thread[rows], self.number[rows], self.count[rows])

    def find(self, thread: Array, number: Array) -> Array:
        """The rows that have these numbers of these threads, all of which are there."""
        highest = int(self.number.max()) + 1 if len(self) else 1
        keys = self.thread.astype(np.int64) * highest + self.number
        return np.searchsorted(keys, thread.astype(np.int64) * highest + number)

    def keep(self) -> KeptTally:
        """As it is kept."""
        bounds = np.searchsorted(self.thread, np.arange(self.n_threads + 1))
        return KeptTally(bounds, narrow(self.number), narrow(self.count))


@dataclass(frozen=True)
class KeptTally:
    """A tally that does not tell the thread of each element but where each thread's elements begin: `bounds`, one more
    than there are threads. Numbers and counts are of 32 bits if they fit."""

    bounds: Array
    number: Array
    count: Array

    @property
    def n_threads(self) -> int:
        return len(self.bounds) - 1

    @property
    def sizes(self) -> Array:
        """How many elements each thread has."""
        return self.bounds[1:] - self.bounds[:-1]

    def of(self, thread: int) -> tuple[Array, Array]:
        """Numbers and counts of one thread, i64."""
        own = slice(int(self.bounds[thread]), int(self.bounds[thread + 1]))
        return self.number[own].astype(np.int64), self.count[own].astype(np.int64)

    def open(self) -> Tally:
        """With the thread of each element."""
        thread = np.repeat(np.arange(self.n_threads, dtype=np.int32), self.sizes)
        return Tally(self.n_threads, thread, self.number, self.count.astype(np.int64))

    def renumber(self, new: Array) -> KeptTally:
        """With `new[number]` for each number: of each thread these rise as well."""
        return KeptTally(self.bounds, narrow(new[self.number]), self.count)


Batch = TypeVar("Batch")
Thread = TypeVar("Thread")


class Batches(Sequence[Thread], Generic[Batch, Thread]):
    """What each of some threads did: `batches` have tallies of so many threads each as `sizes` says.

    `cut` gives what one thread did, of a batch and the thread's number there.
    """

    def __init__(self, batches: list[Batch], sizes: Iterable[int], cut: Callable[[Batch, int], Thread]) -> None:
        self.batches = batches
        self.firsts = [0, *itertools.accumulate(sizes)]
        """Which thread is the first of each batch, and how many there are."""
        self._cut = cut

    def __len__(self) -> int:
        return self.firsts[-1]

    @overload
    def __getitem__(self, index: int) -> Thread: ...
    @overload
    def __getitem__(self, index: slice) -> list[Thread]: ...
    def __getitem__(self, index: int | slice) -> Thread | list[Thread]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = bisect.bisect_right(self.firsts, index) - 1
        return self._cut(self.batches[number], index - self.firsts[number])


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
