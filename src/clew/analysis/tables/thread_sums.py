"""Sums by thread and block, over all counts of a piece of a trace.

Runs in the controller.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clew.analysis.tables.arrays import Array, TraceArrays

__all__ = ["ThreadSums"]

_SPARSE: Final = 4
"""With more places than so many for each count, most stay empty: only those that are used are kept then."""


class ThreadSums:
    """Sums of numbers, each of a thread and a block, both told by their rows in `arrays`."""

    def __init__(self, arrays: TraceArrays) -> None:
        self._n_blocks = max(arrays.n_blocks, 1)
        # A block has as many places as its process has threads: most have one.
        processes, self._first_thread, n_threads = np.unique(arrays.tids >> 32, return_index=True, return_counts=True)
        self._process_of_thread = np.repeat(np.arange(len(processes)), n_threads)
        process = np.minimum(np.searchsorted(processes, arrays.block_process), max(len(processes) - 1, 0))
        is_known = processes[process] == arrays.block_process if len(processes) else np.zeros(len(process), bool)
        self._process_of_block = np.where(is_known, process, -1)
        n_places = np.append(n_threads, 0)[self._process_of_block]
        self._first_place = np.cumsum(n_places) - n_places
        size = int(n_places.sum())
        self._is_dense = size <= _SPARSE * len(arrays.count_executions) + (1 << 16)
        self._sums = np.zeros(size if self._is_dense else 0, np.int64)
        self._others: list[tuple[Array, Array]] = []

    def add(self, thread: Array, block: Array, amount: Array) -> None:
        """Add `amount`, number by number."""
        process = self._process_of_thread[thread]
        if self._is_dense:
            is_own = process == self._process_of_block[block]
            place = self._first_place[block] + thread - self._first_thread[process]
            if is_own.all():
                np.add.at(self._sums, place, amount)
                return
            np.add.at(self._sums, place[is_own], amount[is_own])
            thread, block, amount = thread[~is_own], block[~is_own], amount[~is_own]
        self._others.append((thread * self._n_blocks + block, amount))

    def find(self) -> tuple[Array, Array, Array]:
        """Threads, blocks, and the sums that are not 0; sorted by thread and block."""
        place = np.flatnonzero(self._sums)
        block = np.searchsorted(self._first_place, place, "right") - 1
        thread = self._first_thread[self._process_of_block[block]] + place - self._first_place[block]
        key, which = np.unique(
            np.concatenate([np.zeros(0, np.int64), *(keys for keys, _ in self._others)]), return_inverse=True
        )
        sums = np.zeros(len(key), np.int64)
        np.add.at(sums, which, np.concatenate([np.zeros(0, np.int64), *(amount for _, amount in self._others)]))
        kept = sums != 0
        thread = np.concatenate([thread, key[kept] // self._n_blocks])
        block = np.concatenate([block, key[kept] % self._n_blocks])
        total = np.concatenate([self._sums[place], sums[kept]])
        order = np.lexsort((block, thread))
        return thread[order], block[order], total[order]
