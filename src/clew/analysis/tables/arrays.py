"""The tables of a trace as numpy arrays, with ids turned into rows.

Runs in the controller. Ids that lead nowhere become rows of -1, so that nothing here can fail on a damaged trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from clew.protocol.words import EDGE_WORDS, EVENT_WORDS, EXIT_WORDS, EdgeWord, EventWord, ExitWord
from clew.store.columns import Array, byte_lengths, to_numpy, to_words
from clew.store.trace import Trace

__all__ = ["Array", "TraceArrays", "byte_lengths", "find_rows", "pack_threads", "spans", "to_numpy", "to_words"]

T = TypeVar("T")


class TraceArrays:
    """Columns of a trace, each read and computed when first used; `load` reads several at once, which is quicker.

    Blocks and edges are named by their rows in the tables. `edge_source` is -1 for a start, `callee` where there is
    none; `count_thread` is a row of `tids`, the sorted pairs of (process_id, tid) that the counts speak of.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.n_blocks, self.n_edges = trace.n_rows("blocks"), trace.n_rows("edges")
        self._columns: dict[tuple[str, str], pa.ChunkedArray] = {}
        self._found: dict[Callable[[TraceArrays], Any], Any] = {}

    def load(self, table: str, *names: str) -> None:
        """Read columns of a table, unless they are there."""
        missing = [name for name in names if (table, name) not in self._columns]
        if missing:
            found = self.trace.read(table, missing)
            self._columns |= {(table, name): found[name] for name in missing}

    def column(self, table: str, name: str) -> pa.ChunkedArray:
        """A column as Arrow has it."""
        self.load(table, name)
        return self._columns[table, name]

    def once(self, find: Callable[[TraceArrays], T]) -> T:
        """What `find` finds in these; it is asked once."""
        if find not in self._found:
            self._found[find] = find(self)
        found: T = self._found[find]
        return found

    def numbers(self, table: str, name: str) -> Array:
        """A column of integers or booleans; null is -1, or the highest number of an unsigned type."""
        return to_numpy(self.column(table, name))

    @cached_property
    def block_id(self) -> Array:
        return self.numbers("blocks", "block_id")

    @cached_property
    def edge_id(self) -> Array:
        return self.numbers("edges", "edge_id")

    @cached_property
    def block_pid(self) -> Array:
        return self.numbers("blocks", "pid")

    @cached_property
    def block_process(self) -> Array:
        """The process_id of each block."""
        return self.numbers("blocks", "process_id")

    @cached_property
    def block_image(self) -> Array:
        """The row of the image that each block lies in; -1 outside of images."""
        return find_rows(self.numbers("images", "image_id"), self.numbers("blocks", "image_id"))

    @cached_property
    def app_pc(self) -> Array:
        return self.numbers("blocks", "app_pc")

    @cached_property
    def size_bytes(self) -> Array:
        return self.numbers("blocks", "size_bytes")

    @cached_property
    def n_instructions(self) -> Array:
        return self.numbers("blocks", "n_instructions").astype(np.int64)

    @cached_property
    def exit_kind(self) -> Array:
        return to_words(self.column("blocks", "exit_kind"), EXIT_WORDS)

    @cached_property
    def is_recorded(self) -> Array:
        return self.numbers("blocks", "is_recorded")

    @cached_property
    def edge_source(self) -> Array:
        return find_rows(self.block_id, self.numbers("edges", "source_block_id"))

    @cached_property
    def edge_target(self) -> Array:
        return find_rows(self.block_id, self.numbers("edges", "target_block_id"))

    @cached_property
    def callee(self) -> Array:
        return find_rows(self.block_id, self.numbers("edges", "callee_block_id"))

    @cached_property
    def edge_kind(self) -> Array:
        return to_words(self.column("edges", "kind"), EDGE_WORDS)

    def is_kind(self, *kinds: EdgeWord) -> Array:
        """Which edges are of one of `kinds`."""
        return _is_one_of(self.edge_kind, EDGE_WORDS, kinds)

    def is_event(self, *kinds: EventWord) -> Array:
        """Which events are of one of `kinds`."""
        return _is_one_of(to_words(self.column("events", "kind"), EVENT_WORDS), EVENT_WORDS, kinds)

    def ends_with(self, *exits: ExitWord) -> Array:
        """Which blocks end in one of the ways `exits`."""
        return _is_one_of(self.exit_kind, EXIT_WORDS, exits)

    @cached_property
    def count_executions(self) -> Array:
        return self.numbers("counts", "executions")

    @cached_property
    def count_block(self) -> Array:
        return find_rows(self.block_id, self.numbers("counts", "block_id"))

    @cached_property
    def count_edge(self) -> Array:
        return find_rows(self.edge_id, self.numbers("counts", "edge_id"))

    @cached_property
    def _count_tids(self) -> tuple[Array, Array]:
        self.load("counts", "process_id", "tid")
        process, tid = self.numbers("counts", "process_id"), self.numbers("counts", "tid")
        # Rows of one thread are together, as a rule: of each such run only one is to be sorted.
        begins = np.ones(len(tid), bool)
        begins[1:] = (process[1:] != process[:-1]) | (tid[1:] != tid[:-1])
        starts = np.flatnonzero(begins)
        tids, run = np.unique(pack_threads(process[starts], tid[starts]), return_inverse=True)
        return tids, np.repeat(run, np.diff(np.append(starts, len(tid))))

    @property
    def tids(self) -> Array:
        """Threads of the counts, as `pack_threads` has them, sorted."""
        return self._count_tids[0]

    @property
    def count_thread(self) -> Array:
        return self._count_tids[1]

    @cached_property
    def thread_key(self) -> Array:
        """Of each row of the threads which it is, as `pack_threads` has it."""
        self.load("threads", "process_id", "tid")
        return pack_threads(self.numbers("threads", "process_id"), self.numbers("threads", "tid"))

    @cached_property
    def block_executions(self) -> Array:
        """Executions of each block, over all threads; in mode coverage 1 for each that ran."""
        if self.trace.mode == "coverage":
            return (self.is_recorded & (self.n_instructions > 0)).astype(np.int64)
        return self._add_up("block_id", self.block_id)

    @cached_property
    def edge_executions(self) -> Array:
        """Executions of each edge, over all threads; in mode coverage 1 for each."""
        if self.trace.mode == "coverage":
            return np.ones(self.n_edges, np.int64)
        return self._add_up("edge_id", self.edge_id)

    def _add_up(self, column: str, ids: Array) -> Array:
        """The sum of the counts of each of `ids`. Counts are many: they are looked at and let go."""
        total = np.zeros(len(ids), np.int64)
        rows = _Rows(ids)
        for piece in self.trace.iter_pieces("counts", [column, "executions"]):
            row = rows.find(to_numpy(piece[column]))
            known = row >= 0
            np.add.at(total, row[known], to_numpy(piece["executions"])[known])
        return total


def _is_one_of(column: Array, words: Sequence[str], wanted: Sequence[str]) -> Array:
    """Where a column of indices into `words`, or -1, has one of `wanted`."""
    # The last is for -1.
    is_wanted = np.array([*(word in wanted for word in words), False])
    found: Array = is_wanted[column]
    return found


def pack_threads(process_id: Array, tid: Array) -> Array:
    """Of each row, which thread it is about: process_id << 32 | tid."""
    packed: Array = process_id.astype(np.int64) << 32 | (tid.astype(np.int64) & 0xFFFFFFFF)
    return packed


def spans(start: Array, length: Array) -> Array:
    """Indices (i64): `length[i]` of them from each `start[i]` on."""
    before = np.cumsum(length) - length
    found: Array = np.arange(int(length.sum())) + np.repeat(start - before, length)
    return found


def find_rows(ids: Array, wanted: Array) -> Array:
    """Rows at which `ids` has the numbers `wanted`; -1 where it does not."""
    return _Rows(ids).find(wanted)


class _Rows:
    """At which row each of some ids is; the first of several."""

    _NO_ORDER: Final = np.zeros(0, np.int64)

    def __init__(self, ids: Array) -> None:
        self._ids = ids
        is_range = len(ids) > 0 and int(ids[-1]) - int(ids[0]) == len(ids) - 1
        self._is_counted = is_range and bool((ids[1:] > ids[:-1]).all())
        self._order = self._NO_ORDER if self._is_counted else np.argsort(ids, kind="stable")

    def find(self, wanted: Array) -> Array:
        ids = self._ids
        if not len(ids):
            return np.full(len(wanted), -1)
        if self._is_counted:
            rows = wanted.astype(np.int64) - int(ids[0])
            return np.where((rows >= 0) & (rows < len(ids)), rows, -1)
        at = np.minimum(np.searchsorted(ids, wanted, sorter=self._order), len(ids) - 1)
        return np.where(ids[self._order[at]] == wanted, self._order[at], -1)
