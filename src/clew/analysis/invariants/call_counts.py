"""Invariants of recorded calls and of what was counted: a block makes a call each time it runs, and no other.

Runs in the controller. By thread, as the counts are. Nothing is asked of threads whose counters were read while they
ran on or of which something was lost, of processes whose recording was changed on the way, or of code that is not
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from clew.analysis.invariants.flow import find_inexact
from clew.analysis.tables.arrays import Array, TraceArrays, find_rows, pack_threads, to_words
from clew.analysis.tables.broken_places import Key, Places
from clew.analysis.tables.thread_sums import ThreadSums
from clew.protocol.words import CALL_WORDS, EXIT_WORDS
from clew.store.columns import to_numpy

__all__ = ["CALL_COUNT_INVARIANTS"]


class _Made:
    """The calls whose thread and block are counted, by index: `thread` (a row of the counts' threads), `block` (a row
    of the blocks), `is_system`, `is_apart` (an operation of a ring, which no block makes), `is_left` (it has not
    returned), and `position`."""

    def __init__(self, arrays: TraceArrays) -> None:
        def numbers(name: str) -> Array:
            return arrays.numbers("calls", name)

        key = pack_threads(numbers("process_id"), numbers("tid"))
        thread, block = find_rows(arrays.tids, key), find_rows(arrays.block_id, numbers("block_id"))
        row = find_rows(arrays.thread_key, key)
        # What a thread waited in when the recording came was made before: that is the first of its calls.
        came = np.append(arrays.numbers("threads", "start_ns"), -1)[row]
        is_first = np.append(True, key[1:] != key[:-1])[: len(key)]
        is_before = is_first & (numbers("time_ns") == came)
        kept = np.flatnonzero((thread >= 0) & (block >= 0) & ~is_before)
        kept = kept[_is_exact(arrays)[thread[kept]] & arrays.is_recorded[block[kept]]]
        kind = to_words(arrays.column("calls", "kind"), CALL_WORDS)[kept]
        library = arrays.column("calls", "library").combine_chunks()
        has_library = to_numpy(library.is_valid())[kept] if len(library) else np.zeros(0, bool)
        self.thread, self.block = thread[kept], block[kept]
        self.is_system = kind == CALL_WORDS.index("system_call")
        self.is_apart = self.is_system & has_library
        self.position = numbers("position")[kept]
        self.is_left = ~to_numpy(arrays.column("calls", "result").combine_chunks().is_valid())[kept]


def _is_exact(arrays: TraceArrays) -> Array:
    """By thread of the counts whether its executions are all that there were."""
    lost = arrays.thread_key[arrays.numbers("threads", "lost_records") > 0]
    exact: Array = ~find_inexact(arrays) & ~np.isin(arrays.tids, lost)
    return exact


def check_counts(arrays: TraceArrays) -> Iterator[Places]:
    if arrays.trace.mode == "coverage":
        return
    made = _Made(arrays)
    yield _tell(arrays, *_find_too_many(arrays, made), "{} calls more than it ran")
    yield _tell(arrays, *_find_missing(arrays, made), "{} of its executions made no call, where each has its own")


def _find_too_many(arrays: TraceArrays, made: _Made) -> tuple[Array, Array, Array]:
    """Threads, blocks, and how many calls are more than executions."""
    # A call that a handler has left by a jump is one, and would have been made again: its block has not run.
    by_block = np.flatnonzero(~made.is_apart & ~(made.is_system & made.is_left))
    # A function that jumps to another one is two calls by one execution of what called.
    placed = by_block[~made.is_system[by_block] & (made.position[by_block] >= 0)]
    others = np.setdiff1d(by_block, placed, assume_unique=True)
    places = np.unique(np.stack([made.thread[placed], made.block[placed], made.position[placed]]), axis=1)
    sums = ThreadSums(arrays)
    _add_executions(arrays, sums)
    for thread, block in ((made.thread[others], made.block[others]), (places[0], places[1])):
        sums.add(thread, block, np.full(len(thread), -1))
    thread, block, left = sums.find()
    # Of a block that makes no calls here what it ran is left.
    wrong = left < 0
    return thread[wrong], block[wrong], -left[wrong]


def _find_missing(arrays: TraceArrays, made: _Made) -> tuple[Array, Array, Array]:
    """Threads, blocks, and how many executions made no call, where calls have positions: those are known where all
    calls out of the block were recorded. A thread that was ended from outside may have come to one that it did not
    make."""
    ends = arrays.column("threads", "end").to_pylist()
    ended = arrays.thread_key[[index for index, end in enumerate(ends) if end == "exit"]]
    stopped = arrays.thread_key[[index for index, end in enumerate(ends) if end != "exit"]]
    is_over = np.isin(arrays.tids, ended) & ~np.isin(arrays.tids, stopped)
    syscall = EXIT_WORDS.index("syscall")
    own = np.flatnonzero(made.is_system & (arrays.exit_kind[made.block] == syscall) & is_over[made.thread])
    key = made.thread * arrays.n_blocks + made.block
    whole = np.unique(key[own[made.position[own] >= 0]])
    sums = ThreadSums(arrays)
    _add_executions(arrays, sums)
    of_whole = own[np.isin(key[own], whole)]
    sums.add(made.thread[of_whole], made.block[of_whole], np.full(len(of_whole), -1))
    thread, block, left = sums.find()
    wrong = (left > 0) & np.isin(thread * arrays.n_blocks + block, whole)
    return thread[wrong], block[wrong], left[wrong]


def _add_executions(arrays: TraceArrays, sums: ThreadSums) -> None:
    rows = np.flatnonzero(arrays.count_block >= 0)
    sums.add(arrays.count_thread[rows], arrays.count_block[rows], arrays.count_executions[rows])


def _tell(arrays: TraceArrays, thread: Array, block: Array, n: Array, says: str) -> Places:
    in_whole = arrays.trace.whole_rows("blocks", block).tolist()
    found: list[tuple[Key, str]] = []
    for one, row, place, number in zip(thread.tolist(), block.tolist(), in_whole, n.tolist(), strict=True):
        packed = int(arrays.tids[one])
        where = f"thread {packed & 0xFFFFFFFF}, block {arrays.block_id[row]} at {int(arrays.app_pc[row]):#x}"
        found.append(((packed, place), f"{where}: {says.format(number)}"))
    return Places.of(found)


CALL_COUNT_INVARIANTS: Final[list[tuple[str, Callable[[TraceArrays], Iterator[Places]]]]] = [
    ("a block makes as many calls as it ran, by thread", check_counts),
]
