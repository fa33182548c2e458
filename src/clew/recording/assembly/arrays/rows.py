"""Finding a few rows of a large table by a number, and adding up what belongs to the same one.

Runs in the controller, after the target ended. Pure. What a thread or a child did is little beside what its process
has: working it out must take no longer for that. Numbers that lie close together are looked up in a table of all
numbers, instead of sorting and searching them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.recording.assembly.arrays.keys import spans

__all__ = ["NumberSet", "Rows", "add_up", "is_in"]

Array = npt.NDArray[Any]

_MAX_SPREAD = 8
"""So many times as long as what is looked up or looked for may a table of all numbers be."""

_MANY_ROWS = 1 << 31

_LOW_WORD = np.uint64(0xFFFFFFFF)


class Rows:
    """Where each number stands in an array. A number below 0 stands for none, and is not found."""

    def __init__(self, numbers: Array) -> None:
        rows = np.flatnonzero(numbers >= 0)
        chosen = numbers if len(rows) == len(numbers) else numbers[rows]
        self._first: Array | None = None
        dtype = np.int32 if len(numbers) < _MANY_ROWS else np.int64
        if _is_dense(chosen, len(chosen)):
            self._first = np.zeros(int(chosen.max()) + 2, dtype)
            np.cumsum(np.bincount(chosen.astype(np.int64, copy=False)), dtype=dtype, out=self._first[1:])
            if np.any(chosen[1:] < chosen[:-1]):
                # Number and row in one word: sorting these is faster than sorting rows by their numbers.
                words = (chosen.astype(np.uint64) << np.uint64(32)) | rows.astype(np.uint64)
                words.sort()
                rows = (words & _LOW_WORD).astype(np.int64)
            self._order = rows.astype(dtype)
        else:
            order = np.argsort(chosen, kind="stable")
            self._order, self._sorted = rows[order].astype(dtype), chosen[order]

    def _locate(self, wanted: Array) -> tuple[Array, Array]:
        """For each of `wanted` where its rows begin in the order, and how many they are."""
        if self._first is None:
            first = np.searchsorted(self._sorted, wanted)
            return first, np.searchsorted(self._sorted, wanted, "right") - first
        inside = (wanted >= 0) & (wanted < len(self._first) - 1)
        at = wanted if inside.all() else np.where(inside, wanted, 0)
        first = self._first[at]
        return first, np.where(inside, self._first[at + 1] - first, 0)

    def find(self, wanted: Array) -> tuple[Array, Array]:
        """The rows that hold one of `wanted`; and of which of them (an index) each is."""
        first, n = self._locate(wanted)
        if len(n) and int(n.max()) == 1:
            which = np.flatnonzero(n)
            return self._order[first[which]], which
        return self._order[spans(first, n)], np.repeat(np.arange(len(wanted)), n)

    def find_first(self, wanted: Array) -> Array:
        """The first row that holds each of `wanted`; -1 where there is none."""
        first, n = self._locate(wanted)
        found = np.full(len(wanted), -1)
        is_there = n > 0
        found[is_there] = self._order[first[is_there]]
        return found


class NumberSet:
    """The numbers in some arrays; those below 0 stand for none."""

    def __init__(self, *arrays: Array) -> None:
        numbers = np.concatenate(arrays)
        numbers = numbers[numbers >= 0]
        self._is_in: Array | None = None
        if _is_dense(numbers, len(numbers)):
            self._is_in = np.zeros(int(numbers.max()) + 1, bool)
            self._is_in[numbers] = True
        else:
            self._sorted: Array = np.sort(numbers)

    def holds(self, wanted: Array) -> Array:
        """Which of `wanted` are in it; shape (n,), bool."""
        if self._is_in is None:
            return is_in(wanted, self._sorted)
        inside = (wanted >= 0) & (wanted < len(self._is_in))
        found: Array = inside & self._is_in[np.where(inside, wanted, 0)]
        return found


def add_up(number: Array, count: Array) -> tuple[Array, Array]:
    """The different ones of `number` (none below 0), sorted, and the sum of `count`, i64, for each."""
    lowest = int(number.min()) if len(number) else 0
    if _is_dense(number, len(number), lowest):
        n, place = int(number.max()) + 1 - lowest, number - lowest
        all_totals, is_there = np.zeros(n, np.int64), np.zeros(n, bool)
        np.add.at(all_totals, place, count.astype(np.int64))
        is_there[place] = True
        different = np.flatnonzero(is_there)
        return different + lowest, all_totals[different]
    order = np.argsort(number, kind="stable")
    together = number[order]
    first = np.flatnonzero(np.concatenate(([True], together[1:] != together[:-1]))) if len(together) else order
    totals: Array = np.add.reduceat(count[order].astype(np.int64), first) if len(first) else np.zeros(0, np.int64)
    return together[first], totals


def is_in(wanted: Array, numbers: Array) -> Array:
    """Which of a few `wanted` are among `numbers`, which are sorted."""
    if not len(numbers):
        return np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    found: Array = numbers[at] == wanted
    return found


def _is_dense(numbers: Array, n: int, lowest: int = 0) -> bool:
    """Whether a table of all `numbers`, from `lowest` on, is short enough, where `n` are put in or looked up."""
    return len(numbers) > 0 and int(numbers.max()) - lowest < _MAX_SPREAD * n
