"""Invariants of tags (mode region): each row says what its kind says, and all together tell of every execution once.

Runs in the controller. Tags are looked at once, some rows at a time. A thread that was stopped from outside may have
one execution more than was counted, and may be busy to its end. Of a thread whose end is not known counters and tags
are of different times, so their sums are not asked for; nor are they where something was lost. An execution that a
fault or a signal cut off may have no tag and no count, so where such came blocks may differ by as many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from clew.analysis.tables.arrays import Array, TraceArrays
from clew.analysis.tables.broken_places import Key, Places
from clew.analysis.tags.tag_rows import UNKNOWN, TagRows, is_kind, iter_tag_rows
from clew.analysis.tags.tag_sums import TagSums

__all__ = ["TAG_INVARIANTS"]

_MOST_TOLD: Final = 64
"""Of wrong rows so many are kept to be told; there may be millions."""


@dataclass
class _Wrong:
    """Rows that are wrong: how many, and what is said of the first."""

    n: int = 0
    told: list[tuple[Key, str]] = field(default_factory=list)

    def add(self, rows: Array, says: str) -> None:
        """Take note of some rows of the whole trace."""
        self.n += len(rows)
        if len(rows):
            more = [((row,), f"tags, row {row}: {says}") for row in rows[:_MOST_TOLD].tolist()]
            self.told = sorted([*self.told, *more])[:_MOST_TOLD]

    def places(self) -> Places:
        """As they are told."""
        return Places(self.n, self.told)


@dataclass
class _Found:
    """What does not hold of tags, by invariant."""

    rows: _Wrong = field(default_factory=_Wrong)
    turns: _Wrong = field(default_factory=_Wrong)
    order: _Wrong = field(default_factory=_Wrong)
    sums: Places = field(default_factory=Places)


def _look_through(arrays: TraceArrays) -> _Found:
    """Everything that is asked of the tags."""
    found = _Found()
    if arrays.trace.mode != "region":
        return found
    checkers: dict[int, _ThreadChecker] = {}
    sums = TagSums(arrays)
    ends = _Ends(arrays)
    for rows in iter_tag_rows(arrays):
        checker = checkers.get(rows.thread)
        if checker is None:
            checker = checkers[rows.thread] = _ThreadChecker(arrays, ends, rows.thread, found, sums)
        checker.take(rows)
        sums.add(rows)
    for checker in checkers.values():
        checker.finish()
    found.sums = Places.of(sorted(sums.check(ends.n_stopped, ends.unsummed)))
    return found


class _Ends:
    """How threads ended, and of which something is missing."""

    def __init__(self, arrays: TraceArrays) -> None:
        thread, ends = arrays.thread_key.tolist(), arrays.column("threads", "end").to_pylist()
        self.n_threads = Counter(thread)
        self.n_stopped = Counter(one for one, end in zip(thread, ends, strict=True) if end != "exit")
        n_lost = arrays.numbers("threads", "lost_records").tolist()
        is_whole = not any(arrays.trace.manifest.losses.values())
        cut = (one for one, n in zip(thread, n_lost, strict=True) if n or not is_whole)
        self.incomplete = frozenset(cut)
        """Threads of which there may be executions without tags, and tags without executions."""
        lost = (one for one, end in zip(thread, ends, strict=True) if end == "lost")
        self.unsummed = self.incomplete.union(lost)
        """Those, and threads whose counters were read while they ran on."""


class _ThreadChecker:
    """Checks the tags of one thread, or of several that had its number one after another."""

    def __init__(self, arrays: TraceArrays, ends: _Ends, thread: int, found: _Found, sums: TagSums) -> None:
        self._found, self._sums = found, sums
        self._process = np.append(arrays.block_process, -1)
        self._is_recorded = np.append(arrays.is_recorded, True)
        self._thread = thread
        self._is_there = ends.n_threads[thread] > 0
        self._is_stopped = ends.n_stopped[thread] > 0
        self._is_whole = thread not in ends.incomplete
        # One that was stopped in the middle leaves a number to others that begin anew.
        self._has_turns = not self._is_stopped or ends.n_threads[thread] == 1
        self._last: TagRows | None = None
        self._open: TagRows | None = None
        self._leading: TagRows | None = None

    def take(self, rows: TagRows) -> None:
        """Check some more rows."""
        self._check_rows(rows)
        self._check_turns(rows)
        self._check_order(rows)

    def finish(self) -> None:
        """There are no more."""
        if self._open is not None and not self._is_stopped and self._is_whole:
            self._found.turns.add(self._open.row[-1:], "its thread was busy to the end, and ended by itself")

    def _check_rows(self, rows: TagRows) -> None:
        """Each row for itself, and with the one before."""

        def wrong(where: Array, says: str) -> None:
            self._found.rows.add(rows.row[where], says)

        kind = rows.kind
        of_block, counts = is_kind(kind, "executed", "became_busy", "counts"), is_kind(kind, "counts")
        wrong(np.full(len(rows), not self._is_there), "no such thread")
        wrong(kind < 0, "an unknown kind")
        wrong((rows.block == UNKNOWN) | (rows.target == UNKNOWN), "no such block")
        for block in (rows.block, rows.target):
            wrong((block >= 0) & (self._process[block] != self._thread >> 32), "another process' block")
        # Counted executions may lead out of what is recorded.
        wrong(~self._is_recorded[np.maximum(rows.block, -1)], "a block that is not recorded")
        wrong((rows.block != -1) & ~of_block, "a block, which its kind does not have")
        wrong((rows.target != -1) & ~is_kind(kind, "executed", "counts"), "a target, which its kind does not have")
        wrong((rows.executions >= 0) != counts, "executions are of counts, and of nothing else")
        has_value = is_kind(kind, "signal", "fault", "syscall")
        wrong((rows.value >= 0) != has_value, "a value is of signals, faults and calls, and of nothing else")
        wrong((rows.time_ns >= 0) != (has_value | is_kind(kind, "became_busy", "left_busy")), "a time that is amiss")
        is_first = np.zeros(len(rows), bool)
        last = self._last
        is_first[0] = last is None
        before = rows.take(np.maximum(np.arange(len(rows)) - 1, 0)) if last is None else rows.follow(last)
        step = rows.tag - before.tag[: len(rows)]
        again = counts & is_kind(before.kind[: len(rows)], "counts") & (rows.block == before.block[: len(rows)])
        wrong(np.where(is_first, rows.tag != 0, (step != 1) & ~((step == 0) & again)), "not the next number")
        apart = rows.row != before.row[: len(rows)] + 1
        wrong(apart & ~is_first, "rows of its thread do not follow one another")
        self._last = rows.take(np.array([len(rows) - 1]))

    def _check_turns(self, rows: TagRows) -> None:
        """Busy with some blocks; counts of all of these; busy no more."""
        rows = rows.take(np.flatnonzero(is_kind(rows.kind, "executed", "became_busy", "counts", "left_busy")))
        if not len(rows) or not self._has_turns:
            return
        n_before = 0 if self._open is None else len(self._open)
        rows = rows.follow(self._open)
        n = len(rows)

        def wrong(at: Array, says: str) -> None:
            # What came before was told then.
            self._found.turns.add(rows.row[at[at >= n_before]], says)

        is_left, became = is_kind(rows.kind, "left_busy"), np.flatnonzero(is_kind(rows.kind, "became_busy"))
        stretch = np.cumsum(is_left) - is_left
        n_stretches = int(stretch[-1]) + 1
        is_counts = is_kind(rows.kind, "counts")
        is_counts[1:] &= ~(is_counts[:-1] & (rows.tag[1:] == rows.tag[:-1]))
        counts = np.flatnonzero(is_counts)
        executed, left = np.flatnonzero(is_kind(rows.kind, "executed")), np.flatnonzero(is_left)
        first_became, first_counts = (_find_first(stretch, at, n_stretches, n) for at in (became, counts))
        wrong(executed[executed > first_became[stretch[executed]]], "a tagged execution of a busy thread")
        wrong(became[became > first_counts[stretch[became]]], "busy with one more when counts are written")
        # What has no block is told apart by nothing.
        place = stretch * (int(rows.block.max()) + 2) + rows.block
        known_became, known_counts = became[rows.block[became] >= 0], counts[rows.block[counts] >= 0]
        # A block may be there several times: as it was cut otherwise, or replaced by the same.
        places, n_of_place = np.unique(place[known_became], return_counts=True)
        at = np.searchsorted(places, place[known_counts])
        is_busy = np.append(places, -1)[at] == place[known_counts]
        wrong(known_counts[~is_busy], "counts of a block that is not busy")
        is_more = _rank(place[known_counts]) >= np.append(n_of_place, 0)[at]
        wrong(known_counts[is_busy & is_more], "counts of a block whose counts were written")
        n_became, n_counts = (np.bincount(stretch[at], minlength=n_stretches) for at in (became, counts))
        wrong(left[n_became[stretch[left]] == 0], "busy no more, but it was not")
        wrong(left[n_counts[stretch[left]] < n_became[stretch[left]]], "busy no more, but counts are missing")
        stays = np.flatnonzero((stretch == n_stretches - 1) & ~is_left & ~is_kind(rows.kind, "executed"))
        is_open = not is_left[-1] and bool(n_became[-1] or n_counts[-1])
        self._open = rows.take(stays) if is_open else None

    def _check_order(self, rows: TagRows) -> None:
        """A tag leads to where the next one begins, unless something came in between."""
        rows = rows.take(np.flatnonzero(is_kind(rows.kind, "executed", "became_busy", "signal", "fault")))
        if not len(rows):
            return
        rows = rows.follow(self._leading)
        target, following = rows.target[:-1], rows.block[1:]
        begins = is_kind(rows.kind[1:], "executed", "became_busy")
        leads = is_kind(rows.kind[:-1], "executed") & begins & (following >= 0)
        self._found.order.add(
            rows.row[:-1][leads & (target >= 0) & (target != following)], "the next tag begins elsewhere"
        )
        stops = leads & (target == -1) & (rows.block[:-1] >= 0)
        self._sums.note_resumed(self._thread, rows.block[:-1][stops], following[stops])
        self._leading = rows.take(np.array([len(rows) - 1]))


def _find_first(group: Array, at: Array, n_groups: int, missing: int) -> Array:
    """By group the first of the positions `at`, which rise, in it; `missing` where none is."""
    first = np.full(n_groups, missing)
    # Of several that are assigned to one place the last one stays.
    first[group[at[::-1]]] = at[::-1]
    return first


def _rank(values: Array) -> Array:
    """How many of the same came before each of some numbers."""
    order = np.argsort(values, kind="stable")
    inverse = np.unique(values, return_inverse=True)[1][order]
    rank = np.zeros(len(values), np.int64)
    rank[order] = np.arange(len(values)) - np.searchsorted(inverse, inverse)
    return rank


def check_rows(arrays: TraceArrays) -> Iterator[Places]:
    """Each row says what its kind says, and numbers rise by one."""
    yield arrays.once(_look_through).rows.places()


def check_turns(arrays: TraceArrays) -> Iterator[Places]:
    """Threads become busy with blocks, count them, and leave off, by turns."""
    yield arrays.once(_look_through).turns.places()


def check_order(arrays: TraceArrays) -> Iterator[Places]:
    """Tags follow one another as executions do."""
    yield arrays.once(_look_through).order.places()


def check_sums(arrays: TraceArrays) -> Iterator[Places]:
    """By thread and block: tags of executions and counts are together what was counted."""
    yield arrays.once(_look_through).sums


TAG_INVARIANTS: Final[list[tuple[str, Callable[[TraceArrays], Iterator[Places]]]]] = [
    ("tags are numbered by thread, and say what their kinds say", check_rows),
    ("threads count while they are busy, and write that when they are busy no more", check_turns),
    ("tags lead to where the next ones begin", check_order),
    ("tags tell of each execution once", check_sums),
]
