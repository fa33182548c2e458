"""The tags of a process (mode region) by thread: where their rows are, when the threads were busy, and what happened.

Runs in the controller. Tags may be more than memory holds: they are looked at once, a row group at a time, and read
again where they are wanted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from clew.analysis.replay.thread_times import GAP, TICK, ThreadTimes, make_times
from clew.analysis.tables.arrays import Array, to_numpy, to_words
from clew.protocol._generated import GapReason, TickKind
from clew.protocol.words import TAG_WORDS
from clew.store.excerpt import Excerpt, excerpt_of_process
from clew.store.parts import RowGroup
from clew.store.trace import Trace

__all__ = ["TAG", "TagThreads"]

TAG: Final = np.dtype([("kind", "<i1"), ("block", "<i8"), ("executions", "<i8")])
"""A tag: an index into TAG_WORDS, the id of its block, how often that was executed; -1 for what it does not tell."""

KEPT_GROUPS: Final = 16
"""Row groups whose tags are kept, some megabytes each."""
KEPT_PRESENT: Final = 1 << 12
"""Row groups of which is kept which blocks their tags tell of."""
_MAX_COUNTED_ID: Final = 1 << 24
EXECUTED, BECAME_BUSY, COUNTS, LEFT_BUSY, SIGNAL, FAULT, SYSCALL = range(len(TAG_WORDS))
_TICKS: Final = {SIGNAL: TickKind.SIGNAL, FAULT: TickKind.FAULT, SYSCALL: TickKind.SYSTEM_CALL}

_IS_TICK: Final = np.isin(np.arange(len(TAG_WORDS) + 1), list(_TICKS))
"""By kind of tag; the last is for -1."""

_BORDER: Final = np.dtype([("position", "<i8"), ("ns", "<i8"), ("executions", "<i8")])


@dataclass
class _Rows:
    """Of one thread: pieces of its rows as (position of the first, its row in the table, how many), what they say.
    `borders`, of dtype _BORDER, are where it became busy and where it left that, in turn."""

    pieces: list[tuple[int, int, int]] = field(default_factory=list)
    length: int = 0
    is_busy: bool = False
    executions: int = 0
    borders: list[Array] = field(default_factory=list)
    ticks: list[Array] = field(default_factory=list)


class TagThreads:
    """The tags of the process `process_id` of a trace. Not for two threads at once. Raises TraceDamagedError."""

    def __init__(self, trace: Trace, process_id: int) -> None:
        self._trace = trace
        self._threads: dict[int, _Rows] = {}
        self._kept: OrderedDict[RowGroup, Array] = OrderedDict()
        self._present: OrderedDict[RowGroup, Array] = OrderedDict()
        excerpt = excerpt_of_process(trace, process_id)
        first = 0
        for piece in excerpt.iter_pieces("tags", ["tid", "kind", "executions", "value", "time_ns"]):
            tid = to_numpy(piece["tid"])
            row = _locate(excerpt, first, len(tid))
            first += len(tid)
            columns = (
                to_words(piece["kind"], TAG_WORDS),
                *(to_numpy(piece[name]) for name in ("executions", "value", "time_ns")),
            )
            borders = np.flatnonzero((np.diff(tid) != 0) | (np.diff(row) != 1)) + 1
            for start, end in zip([0, *borders.tolist()], [*borders.tolist(), len(tid)], strict=True):
                if start < end:
                    rows = self._threads.setdefault(int(tid[start]), _Rows())
                    _look_at(rows, int(row[start]), *(column[start:end] for column in columns))

    def length(self, tid: int) -> int:
        """How many tags a thread has."""
        return self._threads[tid].length if tid in self._threads else 0

    def read(self, tid: int, start: int, count: int) -> Array:
        """Tags of a thread, of dtype TAG, from position `start` on; at most `count`."""
        parts = [np.zeros(0, TAG)]
        rows = self._threads.get(tid, _Rows())
        for position, row, length in rows.pieces:
            low, high = max(start, position), min(start + count, position + length)
            if low < high:
                parts.append(self._read_rows(row + low - position, row + high - position))
        return np.concatenate(parts)

    def may_tell_of(self, tid: int, start: int, count: int, block_id: int) -> bool:
        """Whether a thread's tags from position `start` on, `count` of them, may tell of a block; if not they don't."""
        rows = self._threads.get(tid, _Rows())
        for position, row, length in rows.pieces:
            low, high = max(start, position), min(start + count, position + length)
            if low < high:
                for group in self._groups_of(row + low - position, row + high - position):
                    present = self._blocks_in(group)
                    at = int(np.searchsorted(present, block_id))
                    if at < len(present) and present[at] == block_id:
                        return True
        return False

    def prepare(self, tid: int) -> Iterator[None]:
        """Learn, a little at a time, where a thread's tags tell of which blocks."""
        for _, row, length in self._threads.get(tid, _Rows()).pieces:
            for group in self._groups_of(row, row + length):
                self._blocks_in(group)
                yield

    def _blocks_in(self, group: RowGroup) -> Array:
        """Ids of the blocks that a row group tells of, rising."""
        if group not in self._present:
            piece = self._trace.parts("tags").read_group(group, ["block_id"])
            self._present[group] = _list_different(to_numpy(piece["block_id"]))
            while len(self._present) > KEPT_PRESENT:
                self._present.popitem(last=False)
        return self._present[group]

    def times(self, tid: int, start_ns: int, end_ns: int) -> ThreadTimes:
        """What the tags of a thread tell, which lived between two times."""
        rows = self._threads.get(tid, _Rows())
        ticks = np.concatenate([np.zeros(0, TICK), *rows.ticks])
        borders = np.concatenate([np.zeros(0, _BORDER), *rows.borders])
        entered, left = borders[::2], borders[1::2]
        gaps = np.zeros(len(entered), GAP)
        gaps["start_ns"], gaps["start"], gaps["reason"] = entered["ns"], entered["position"], GapReason.BUSY
        # The last may not have been left.
        gaps["end_ns"], gaps["end"], gaps["executions"] = end_ns, rows.length, rows.executions
        ended = gaps[: len(left)]
        ended["end_ns"] = np.maximum(left["ns"], ended["start_ns"])
        ended["end"], ended["executions"] = left["position"] + 1, left["executions"]
        gaps["executions"] -= entered["executions"]
        marks = np.stack([ticks["ns"], ticks["place"]], axis=1)
        return make_times(rows.length, start_ns, end_ns, marks, gaps, ticks)

    def _read_rows(self, first: int, last: int) -> Array:
        parts = [np.zeros(0, TAG)]
        for group in self._groups_of(first, last):
            low, high = max(first, group.first_row), min(last, group.first_row + group.n_rows)
            parts.append(self._read_group(group)[low - group.first_row : high - group.first_row])
        return np.concatenate(parts)

    def _groups_of(self, first: int, last: int) -> list[RowGroup]:
        """The row groups that hold rows from one up to another."""
        low = max(bisect_right(self._borders, first) - 1, 0)
        found = self._trace.parts("tags").groups[low : bisect_left(self._borders, last)]
        return [group for group in found if max(first, group.first_row) < min(last, group.first_row + group.n_rows)]

    @cached_property
    def _borders(self) -> list[int]:
        return [group.first_row for group in self._trace.parts("tags").groups]

    def _read_group(self, group: RowGroup) -> Array:
        if group not in self._kept:
            piece = self._trace.parts("tags").read_group(group, ["kind", "block_id", "executions"])
            tags = np.zeros(piece.num_rows, TAG)
            tags["kind"] = to_words(piece["kind"], TAG_WORDS)
            tags["block"], tags["executions"] = to_numpy(piece["block_id"]), to_numpy(piece["executions"])
            self._kept[group] = tags
            while len(self._kept) > KEPT_GROUPS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(group)
        return self._kept[group]


def _list_different(ids: Array) -> Array:
    """The different ids among some, rising."""
    highest = int(ids.max(initial=-1))
    if highest > _MAX_COUNTED_ID or int(ids.min(initial=-1)) < -1:
        return np.unique(ids)
    # Ids are counted, as a rule: to mark them takes a fraction of sorting. The last is for -1.
    is_there = np.zeros(highest + 2, bool)
    is_there[ids] = True
    found: Array = np.flatnonzero(is_there[:-1])
    return found


def _locate(excerpt: Excerpt, first: int, n: int) -> Array:
    """Rows in the whole trace of `n` rows of an excerpt."""
    ends = excerpt.whole_rows("tags", np.array([first, first + max(n, 1) - 1]))
    if int(ends[1] - ends[0]) == max(n, 1) - 1:
        # They rise, so that these are all: to look each up takes as long as to read them.
        return int(ends[0]) + np.arange(n)
    return excerpt.whole_rows("tags", first + np.arange(n))


def _look_at(rows: _Rows, first_row: int, kind: Array, executions: Array, value: Array, ns: Array) -> None:
    """Take what follows of a thread's rows, which begin at a row of the table."""
    start = rows.length
    rows.pieces.append((start, first_row, len(kind)))
    rows.length += len(kind)
    counts = np.flatnonzero(kind == COUNTS)
    counted = rows.executions + np.append(0, np.cumsum(np.maximum(executions[counts], 0)))
    rows.executions = int(counted[-1])
    borders = np.flatnonzero((kind == BECAME_BUSY) | (kind == LEFT_BUSY))
    is_left = kind[borders] == LEFT_BUSY
    # Of what became busy only the first, of what left only what was busy.
    was_busy = np.append(rows.is_busy, ~is_left)[: len(is_left)]
    changes = np.flatnonzero(is_left == was_busy)
    if len(is_left):
        rows.is_busy = not bool(is_left[-1])
    at = borders[changes]
    found = np.zeros(len(at), _BORDER)
    found["position"], found["ns"] = start + at, ns[at]
    found["executions"] = counted[np.searchsorted(counts, at)]
    rows.borders.append(found)
    at = np.flatnonzero(_IS_TICK[kind])
    ticks = np.zeros(len(at), TICK)
    ticks["ns"], ticks["value"], ticks["place"] = ns[at], value[at], start + at
    for tag, tick in _TICKS.items():
        ticks["kind"][kind[at] == tag] = tick
    rows.ticks.append(ticks)
