"""Where recorded calls were made: which block made each of them, and where that is in the order of its thread.

Runs in the controller. What is known of a system call is the address of its instruction: in a trace of mode full the
k-th call of a thread out of a block is the k-th execution of that block, if all of them were recorded. What is known of
a function's is where the function begins: its k-th call led to the k-th execution of its first block.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.analysis.tables.arrays import find_rows, to_words
from clew.analysis.trace import Trace
from clew.errors import UsageError
from clew.protocol.words import CALL_WORDS, EXIT_WORDS
from clew.store.columns import to_numpy

__all__ = ["find_places"]

Array = npt.NDArray[Any]

_BLOCK_COLUMNS: Final = ("process_id", "block_id", "app_pc", "size_bytes")
_CALLS: Final = (EXIT_WORDS.index("call"), EXIT_WORDS.index("indirect_call"))
_ONWARDS: Final = tuple(
    EXIT_WORDS.index(word) for word in ("fall_through", "jump", "conditional", "indirect_jump", "none")
)
"""How blocks end that lead on without a call or a return."""
_MOST_BETWEEN: Final = 8
"""So many blocks may lie between a call and the function that it leads to: a linker's stub is one."""


def find_places(trace: Trace, calls: pa.Table) -> tuple[Array, Array]:
    """By call its block and its position (i64, -1 where nobody knows).

    `calls` has `process_id`, `tid`, `kind` and `pc` (u64: of a system call its instruction, of a function where it
    begins), those of a thread in the order in which they were made. A place that several blocks hold, as of code that
    changed, is none. The block of a function's call is known where the position is.
    """
    process, tid, pc = (to_numpy(calls[name]) for name in ("process_id", "tid", "pc"))
    is_function = to_words(calls["kind"], CALL_WORDS) == CALL_WORDS.index("library")
    block_id, position = np.full(len(pc), -1, np.int64), np.full(len(pc), -1, np.int64)
    table = trace.read("blocks", [*_BLOCK_COLUMNS, "exit_kind"])
    exit_kind = to_words(table["exit_kind"], EXIT_WORDS)
    owner, ids, app_pc, size_bytes = (to_numpy(table[name]) for name in _BLOCK_COLUMNS)
    for process_id in np.unique(process).tolist():
        own = np.flatnonzero(owner == process_id)
        blocks = _Blocks(ids[own], app_pc[own], size_bytes[own], exit_kind[own])
        of_process = process == process_id
        rows = np.flatnonzero(of_process & ~is_function)
        block_id[rows] = blocks.find_holding(pc[rows])
        if trace.mode != "full":
            continue
        # Of functions their first blocks, until it is known who came there.
        rows = np.flatnonzero(of_process & is_function)
        first = np.full(len(pc), -1, np.int64)
        first[rows] = blocks.find_beginning(pc[rows])
        for thread in np.unique(tid[of_process]).tolist():
            of_thread = of_process & (tid == thread)
            made, came_to = np.flatnonzero(of_thread & (block_id >= 0)), np.flatnonzero(of_thread & (first >= 0))
            walk = _Walk(trace, process_id, thread, blocks)
            walk.find(block_id[made], first[came_to])
            position[made] = walk.executions_of(block_id[made])
            block_id[came_to], position[came_to] = walk.callers_of(first[came_to])
    return block_id, position


class _Blocks:
    """The blocks of a process."""

    def __init__(self, block_id: Array, app_pc: Array, size_bytes: Array, exit_kind: Array) -> None:
        order = np.argsort(app_pc.astype(np.uint64), kind="stable")
        self._start = app_pc[order].astype(np.uint64)
        self._end = self._start + size_bytes[order].astype(np.uint64)
        # Blocks of one address are versions of it. And behind the last one none.
        same = np.append(self._start[1:] == self._start[:-1], [False, False])[: len(order) + 1]
        self._is_alone = ~(same | np.append(False, same[:-1]))
        self._is_alone[-1] = False
        self._block_id = np.append(block_id[order], -1)
        self.block_id = block_id
        self._exit_kind = np.append(exit_kind, EXIT_WORDS.index("return"))

    def find_holding(self, pc: Array) -> Array:
        """The ids of the blocks that have addresses in them; -1 for none, and for more than one."""
        at = np.searchsorted(self._start, pc.astype(np.uint64), "right") - 1
        is_in = (at >= 0) & (pc.astype(np.uint64) < np.append(self._end, 0)[at])
        return np.where(is_in & self._is_alone[at], self._block_id[at], -1)

    def find_beginning(self, pc: Array) -> Array:
        """The ids of the blocks that begin at addresses; -1 for none, and for more than one."""
        at = np.searchsorted(self._start, pc.astype(np.uint64))
        is_there = np.append(self._start, 0)[at] == pc.astype(np.uint64)
        return np.where(is_there & self._is_alone[at], self._block_id[at], -1)

    def find_callers(self, block_ids: Array, at: Array) -> Array:
        """Of blocks in the order of execution, where those are that called what came to be executed at `at`.

        They are the last in front that call, if only jumps lie between, as a linker's stub does; else what is in front.
        """
        kinds = self._exit_kind[find_rows(self.block_id, block_ids)]
        is_call, is_onwards = np.isin(kinds, _CALLS), np.isin(kinds, _ONWARDS)
        found = np.maximum(at - 1, 0)
        for _ in range(_MOST_BETWEEN):
            found = np.where(is_onwards[found] & (found > 0), found - 1, found)
        return np.where(is_call[found], found, at - 1)


class _Walk:
    """Where the blocks that are wanted are in the order of a thread; nothing where some of that is lost."""

    def __init__(self, trace: Trace, process_id: int, tid: int, blocks: _Blocks) -> None:
        self._trace, self._process_id, self._tid, self._blocks = trace, process_id, tid, blocks
        self._ids, self._places = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._callers = np.zeros((3, 0), np.int64)

    def find(self, made: Array, came_to: Array) -> None:
        """Walk along the thread, and note the executions of both: of the latter who called them."""
        made, came_to = np.unique(made), np.unique(came_to)
        if not len(made) and not len(came_to):
            return
        try:
            path = self._trace.path(self._tid, process_id=self._process_id)
        except UsageError:
            return
        ids, places, callers = [], [], []
        before = np.zeros(0, np.int64)
        for piece in path.iter_pieces():
            if piece.is_after_loss:
                # What is missing may be one of them.
                return
            hits = np.flatnonzero(np.isin(piece.block_ids, made))
            ids.append(piece.block_ids[hits])
            places.append(hits + piece.place.execution)
            hits = np.flatnonzero(np.isin(piece.block_ids, came_to))
            if len(hits):
                near = np.concatenate([before, piece.block_ids])
                at = self._blocks.find_callers(near, hits + len(before))
                first = piece.place.execution - len(before)
                callers.append(np.stack([piece.block_ids[hits], near[at], np.where(at >= 0, first + at, -1)]))
            before = np.concatenate([before, piece.block_ids])[-_MOST_BETWEEN - 1 :]
        self._ids = np.concatenate([self._ids, *ids])
        self._places = np.concatenate([self._places, *places])
        self._callers = np.concatenate([self._callers, *callers], axis=1)

    def executions_of(self, block_id: Array) -> Array:
        """Where the calls out of blocks, in the order in which they were made, are."""
        order, found = self._match(block_id, self._ids)
        return np.where(found >= 0, np.append(self._places[order], -1)[found], -1)

    def callers_of(self, first: Array) -> tuple[Array, Array]:
        """By call that led to a block, in the order in which they were made, the block that made it and where."""
        order, found = self._match(first, self._callers[0])
        block_id, place = (np.append(column[order], -1)[found] for column in self._callers[1:])
        is_known = (found >= 0) & (place >= 0)
        return np.where(is_known, block_id, -1), np.where(is_known, place, -1)

    @staticmethod
    def _match(wanted: Array, ids: Array) -> tuple[Array, Array]:
        """The order of `ids` by number, and by `wanted` a place in that: the k-th of a number has the k-th; -1 for all
        of a number of which there are more here, or there."""
        order, rows = np.argsort(ids, kind="stable"), np.argsort(wanted, kind="stable")
        known, n_wanted = np.unique(wanted, return_counts=True)
        first = np.searchsorted(ids[order], known)
        is_same = np.searchsorted(ids[order], known, "right") - first == n_wanted
        place = np.arange(len(rows)) - np.repeat(np.cumsum(n_wanted) - n_wanted, n_wanted)
        found = np.full(len(wanted), -1, np.int64)
        found[rows] = np.where(np.repeat(is_same, n_wanted), np.repeat(first, n_wanted) + place, -1)
        return order, found
