"""Whether tags tell of as many executions as were counted, by thread and block (mode region).

Runs in the controller. A block of tags begins with one basic block and goes on through others: what runs one of these
came to it by a tag of its own, or out of the one in front of it. Where code was replaced, and later by the same again,
tags do not tell one from the other: the versions of a block are taken together.

What stops in the middle of a block may go on there, with a tag of its own: behind an instruction that ran natively, and
where it writes code that is protected. Of the former, tags tell. The latter they do not while the thread is busy, so
where a program writes code nothing is asked of blocks that go on in others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from clew.analysis.tables.arrays import Array, TraceArrays
from clew.analysis.tables.broken_places import Key
from clew.analysis.tables.thread_sums import ThreadSums
from clew.analysis.tags.tag_rows import TagRows, is_kind
from clew.store.columns import distinct

__all__ = ["TagSums"]


class TagSums:
    """Executions that tags tell of, beside those that were counted."""

    def __init__(self, arrays: TraceArrays) -> None:
        self._arrays = arrays
        self._sums = ThreadSums(arrays)
        self._one_of = _fold_versions(arrays)
        self._is_tagged = np.zeros(arrays.n_blocks, bool)
        self._uncounted: Counter[int] = Counter()
        self._n_resumed: Counter[tuple[int, int, int]] = Counter()
        # Those of the thread that came last; sums of all threads and blocks are not held while tags are read.
        self._thread = -1
        self._of_thread = np.zeros(arrays.n_blocks, np.int64)

    def add(self, rows: TagRows) -> None:
        """Take in some tags."""
        if rows.thread != self._thread:
            self._flush()
            self._thread = rows.thread
        counts = is_kind(rows.kind, "counts")
        told = (rows.block >= 0) & (counts | is_kind(rows.kind, "executed"))
        times = np.where(counts, rows.executions, 1)[told]
        np.add.at(self._of_thread, rows.block[told], times)

    def note_resumed(self, thread: int, block: Array, following: Array) -> None:
        """Executions of `thread` that were cut off, perhaps in front of those that follow, and went on there."""
        pairs = zip(self._one_of[block].tolist(), self._one_of[following].tolist(), strict=True)
        self._n_resumed.update((thread, before, behind) for before, behind in pairs if before != behind)

    def _flush(self) -> None:
        block = np.flatnonzero(self._of_thread)
        if len(block):
            self._is_tagged[self._one_of[block]] = True
            times = self._of_thread[block]
            tids = self._arrays.tids
            at = int(np.searchsorted(tids, self._thread))
            if at < len(tids) and tids[at] == self._thread:
                self._sums.add(np.full(len(block), at), self._one_of[block], -times)
            else:
                self._uncounted[self._thread] += int(times.sum())
            self._of_thread[block] = 0

    def check(self, n_stopped: Counter[int], unsummed: frozenset[int]) -> Iterator[tuple[Key, str]]:
        """Where they differ, but for threads `unsummed`. Of one number so many may have been stopped."""
        self._flush()
        arrays, left = self._arrays, n_stopped.copy()
        blocks, edges = np.flatnonzero(arrays.count_block >= 0), np.flatnonzero(arrays.count_edge >= 0)
        edge = arrays.count_edge[edges]
        source, target = arrays.edge_source[edge], arrays.edge_target[edge]
        falls = arrays.is_kind("fall_through")[edge] & (source >= 0) & (target >= 0)
        falls &= np.append(arrays.is_recorded & self._find_tagged()[self._one_of], False)[source]
        ran, fell = self._one_of[arrays.count_block[blocks]], self._one_of[target[falls]]
        self._sums.add(arrays.count_thread[blocks], ran, arrays.count_executions[blocks])
        self._sums.add(arrays.count_thread[edges[falls]], fell, -arrays.count_executions[edges[falls]])
        thread, row, excess = self._sums.find()
        is_asked = arrays.is_recorded[row] & (arrays.n_instructions[row] > 0)
        # Restartable sequences run without tags, and so does what nothing but these leads to.
        is_asked &= self._is_tagged[row]
        is_asked &= ~np.isin(arrays.tids[thread], np.array(sorted(unsummed), np.int64))
        last = self._find_last()
        is_asked &= ~(self._goes_on(last) & self._writes_code())[row]
        cuts = self._find_cuts(edges, edge, source, last)
        for index in np.flatnonzero(is_asked).tolist():
            tid, missing = int(arrays.tids[thread[index]]), int(excess[index])
            if abs(missing) <= left[tid]:
                left[tid] -= abs(missing)  # The block that it was in: it may be counted in part, or not at all.
                continue
            # What was cut off may have come from the block in front, and have begun anew besides.
            if abs(missing) <= 2 * cuts[tid, int(last[row[index]])]:
                continue
            says = f"{abs(missing)} executions {'have no tag' if missing > 0 else 'too many'}"
            in_whole = int(arrays.trace.whole_rows("blocks", row[index : index + 1])[0])
            place = f"thread {tid & 0xFFFFFFFF}, block {arrays.block_id[row[index]]}"
            yield (tid, in_whole), f"{place} at {int(arrays.app_pc[row[index]]):#x}: {says}"
        for tid, n in self._uncounted.items():
            if n > left[tid] and tid not in unsummed:
                yield (tid, -1), f"thread {tid & 0xFFFFFFFF}: {n} executions, and nothing was counted"

    def _find_tagged(self) -> Array:
        """Which blocks tags begin with, or lead through: restartable sequences run without, and fall into code with."""
        arrays = self._arrays
        falls = arrays.is_kind("fall_through") & (arrays.edge_source >= 0) & (arrays.edge_target >= 0)
        source, target = self._one_of[arrays.edge_source[falls]], self._one_of[arrays.edge_target[falls]]
        tagged, before = self._is_tagged.copy(), np.arange(arrays.n_blocks)
        before[target] = source
        for _ in range(arrays.n_blocks.bit_length()):
            tagged |= tagged[before]
            before = before[before]
        return tagged

    def _find_last(self) -> Array:
        """For each block the one that execution comes to when it falls from block to block as far as it does."""
        arrays = self._arrays
        falls = arrays.is_kind("fall_through") & (arrays.edge_source >= 0) & (arrays.edge_target >= 0)
        last = np.arange(arrays.n_blocks)
        last[self._one_of[arrays.edge_source[falls]]] = self._one_of[arrays.edge_target[falls]]
        for _ in range(arrays.n_blocks.bit_length()):
            last = last[last]
        return last

    def _goes_on(self, last: Array) -> Array:
        """Which blocks go on in others, or are what others go on in."""
        n_that_end_so = np.bincount(last[self._one_of], minlength=len(last))
        several: Array = n_that_end_so[last] > np.bincount(self._one_of, minlength=len(last))[last]
        return several

    def _writes_code(self) -> Array:
        """Which blocks are of processes that write code: some of it may be written, or was replaced."""
        arrays = self._arrays
        at = np.flatnonzero(arrays.is_event("writable_code"))
        replaced = arrays.block_process[arrays.numbers("blocks", "code_version") > 0]
        processes = distinct(np.concatenate([arrays.numbers("events", "process_id")[at], replaced]))
        writes: Array = np.isin(arrays.block_process, processes)
        return writes

    def _find_cuts(self, edges: Array, edge: Array, source: Array, last: Array) -> Counter[tuple[int, int]]:
        """How often executions were cut off, by thread and the block with which they would have ended."""
        arrays = self._arrays
        cut = arrays.is_kind("signal", "fault")[edge] & (source >= 0)
        sums = ThreadSums(arrays)
        sums.add(arrays.count_thread[edges[cut]], last[self._one_of[source[cut]]], arrays.count_executions[edges[cut]])
        found: Counter[tuple[int, int]] = Counter()
        for thread, row, n in zip(*(part.tolist() for part in sums.find()), strict=True):
            found[int(arrays.tids[thread]), row] += n
        for (tid, before, behind), n in self._n_resumed.items():
            if last[before] == last[behind]:
                found[tid, int(last[behind])] += n
        return found


def _fold_versions(arrays: TraceArrays) -> Array:
    """For each block the first that begins where it begins, in the same process."""
    order = np.lexsort((arrays.app_pc, arrays.block_process))
    process, app_pc = arrays.block_process[order], arrays.app_pc[order]
    is_other = np.ones(len(order), bool)
    is_other[1:] = (process[1:] != process[:-1]) | (app_pc[1:] != app_pc[:-1])
    folded = np.zeros(len(order), np.int64)
    folded[order] = order[np.flatnonzero(is_other)[np.cumsum(is_other) - 1]]
    return folded
