"""Where two sequences of numbers part, and where they meet again.

Pure. The sequences come in chunks and may have any length: what is in memory are the chunks around the place that the
comparison has come to. What the numbers stand for is not known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from clew.analysis.comparison.content import mix
from clew.store.columns import Array

__all__ = ["ALIKE", "WINDOW", "Chunk", "End", "Lookahead", "Parting", "Partings"]

ALIKE: Final = 64
"""So many have to be the same, one after the other, for two sequences to have met."""

WINDOW: Final = 1 << 20
"""So far behind a parting it is looked for where they meet."""

_FIRST_WINDOW: Final = 1 << 10
_END: Final = -1


@dataclass(frozen=True)
class Chunk:
    """A part of a sequence: numbers that are not negative."""

    numbers: Array


class Lookahead:
    """A sequence that is read in order, chunk by chunk, and can be looked at beyond the place that it was read to.

    The chunks from the one that has the number in front of this place on are kept.
    """

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks = chunks
        self._kept: deque[tuple[int, Chunk]] = deque()
        self._next = 0
        self.position = 0
        """How many numbers were read."""
        self.is_cut = False
        """Whether more would follow behind the last number, which nobody knows."""

    def front(self) -> Array:
        """Some of the next numbers: at least one, unless the sequence ends here."""
        while True:
            for start, chunk in self._kept:
                if start + len(chunk.numbers) > self.position:
                    return chunk.numbers[self.position - start :]
            if not self._load():
                return np.zeros(0, np.int64)

    def peek(self, n: int) -> Array:
        """The next numbers, `n` of them, or fewer where the sequence ends."""
        while self._next < self.position + n and self._load():
            pass
        parts = [np.zeros(0, np.int32)]
        for start, chunk in self._kept:
            parts.append(chunk.numbers[max(self.position - start, 0) : max(self.position + n - start, 0)])
        return np.concatenate(parts)

    def skip(self, n: int) -> None:
        """Go on by `n` numbers, which there have to be."""
        self.position += n
        while len(self._kept) > 1 and self._kept[1][0] < self.position:
            self._kept.popleft()

    def find(self, position: int) -> tuple[Chunk, int] | None:
        """The chunk that has number `position` of the sequence, and where; None if that is not kept."""
        for start, chunk in self._kept:
            if start <= position < start + len(chunk.numbers):
                return chunk, position - start
        return None

    def _load(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        if len(chunk.numbers):
            self._kept.append((self._next, chunk))
            self._next += len(chunk.numbers)
        return True


@dataclass(frozen=True)
class Parting:
    """Two sequences part: `a` and `b` are the positions of the first numbers that differ, `met_a` and `met_b` those of
    the first ones that are the same again, None if they meet no more within the window."""

    a: int
    b: int
    met_a: int | None
    met_b: int | None


class End(Enum):
    """How a comparison ended: both sequences did; one did, and the other goes on; they did not meet again; as many
    partings were found as were asked for."""

    TOGETHER = "together"
    A = "a_ends"
    B = "b_ends"
    APART = "not_met"
    LIMIT = "limit"


class Partings:
    """The partings of two sequences, one after the other; at each of them both are at the parting.

    They meet where the fewest numbers of both, added up, are passed over so that `alike` ones behind them are the same,
    or all up to the end of both. `end` is there once the iteration has ended; the sequences are where that was.
    """

    def __init__(self, a: Lookahead, b: Lookahead, limit: int, alike: int = ALIKE, window: int = WINDOW) -> None:
        self.a, self.b = a, b
        self._limit, self._alike, self._window = limit, alike, window
        self.end: End | None = None

    def __iter__(self) -> Iterator[Parting]:
        found = 0
        while (end := self._go_along()) is None:
            if found == self._limit:
                self.end = End.LIMIT
                return
            met = self._find_meeting()
            a, b = self.a.position, self.b.position
            found += 1
            if met is None:
                self.end = End.APART
                yield Parting(a, b, None, None)
                return
            yield Parting(a, b, a + met[0], b + met[1])
            self.a.skip(met[0])
            self.b.skip(met[1])
        self.end = end

    def _go_along(self) -> End | None:
        """Go on while both are the same; how it ended, None if they part."""
        while True:
            a, b = self.a.front(), self.b.front()
            n = min(len(a), len(b))
            if not n:
                return End.TOGETHER if len(a) == len(b) else End.A if len(b) else End.B
            differs = a[:n] != b[:n]
            first = int(differs.argmax())
            is_parting = bool(differs[first])
            self.a.skip(first if is_parting else n)
            self.b.skip(first if is_parting else n)
            if is_parting:
                return None

    def _find_meeting(self) -> tuple[int, int] | None:
        """How many numbers of each to pass over to where they meet."""
        window = min(max(_FIRST_WINDOW, 2 * self._alike), self._window)
        while True:
            met = find_meeting(self._look(self.a, window), self._look(self.b, window), self._alike)
            # What is nearer than the window's length can't lie behind it, on either side.
            if met is not None and sum(met) + self._alike <= window:
                return met
            if window >= self._window:
                return met
            window = min(window * 8, self._window)

    def _look(self, side: Lookahead, window: int) -> Array:
        seen = side.peek(window)
        if len(seen) < window and not side.is_cut:
            seen = np.concatenate([seen, np.full(self._alike - 1, _END, seen.dtype)])
        return seen


def find_meeting(a: Array, b: Array, alike: int) -> tuple[int, int] | None:
    """The places i and j of the smallest sum at which `alike` numbers of `a` and of `b` are the same; of those with
    one sum the ones that lie nearest to each other."""
    first_a, first_b = _find_first(a, alike), _find_first(b, alike)
    _, at_a, at_b = np.intersect1d(first_a[0], first_b[0], assume_unique=True, return_indices=True)
    if not len(at_a):
        return None
    i, j = first_a[1][at_a], first_b[1][at_b]
    best = np.lexsort((i, np.abs(i - j), i + j))[0]
    return int(i[best]), int(j[best])


def _find_first(numbers: Array, length: int) -> tuple[Array, Array]:
    """Of all runs of `length` numbers, as one number each, which there are, and where each is first."""
    if len(numbers) < length:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    found = np.unique(_mix_runs(numbers, length), return_index=True)
    return found[0], found[1]


def _mix_runs(numbers: Array, length: int) -> Array:
    """A number (u64) for the run of `length` numbers from each place on, as far as there are so many."""
    mixed = mix(numbers)
    n = 1
    while n < length:
        step = min(n, length - n)
        # Runs of n + step numbers are told by two of n, which may lie over each other.
        mixed = mix(mixed[:-step].view(np.int64), mixed[step:].view(np.int64))
        n += step
    return mixed
