"""Rows of the table `counts`: how often each thread executed each block and edge.

Runs in the controller, after the target ended. Threads that had one number, one after another, are one thread here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.recording.assembly.arrays.keys import spans
from clew.recording.assembly.arrays.tallies import KeptTally, Tally
from clew.recording.assembly.edges.edges import Edges, ThreadsCounts
from clew.recording.assembly.tables.members import Members, make_table
from clew.store.columns import numbers

__all__ = ["clean_tid", "counts_tables"]

Array = npt.NDArray[Any]

_COUNTS_ROWS = 1 << 18


def clean_tid(tid: int) -> int:
    """A thread's number as the target gave it, made to fit."""
    return tid & 0x7FFFFFFF


def counts_tables(members: Members, edges: Edges, block_id: Array, first_edge: int) -> Iterator[pa.Table]:
    """Counts by process and by number of a thread; of each first the blocks, then the edges.

    `block_id` are ids by index of a block, those of edges count from `first_edge` on.
    """
    counts = edges.threads
    if not len(counts):
        return
    owner = members.bundle.thread_owner[: len(counts)]
    tid = np.array([clean_tid(one.tid) for process in members.processes for one in process.threads], np.int64)
    tid = tid[: len(counts)]
    order = np.lexsort((tid, owner))
    begins = np.ones(len(order), bool)
    begins[1:] = (tid[order[1:]] != tid[order[:-1]]) | (owner[order[1:]] != owner[order[:-1]])
    sizes = np.concatenate([batch.blocks.sizes + batch.edges.sizes for batch in counts.batches])
    for first, last in _cut(np.flatnonzero(begins), np.cumsum(sizes[order]), len(order)):
        # Each of the threads, and which of those with different numbers it is.
        chosen, group = order[first:last], np.cumsum(begins[first:last]) - 1
        heads = chosen[begins[first:last]]
        block, edge = _gather(counts, chosen, group)
        yield _table(members, owner[heads], tid[heads], block, edge, block_id, first_edge)


def _cut(begins: Array, n_rows: Array, n_threads: int) -> Iterator[tuple[int, int]]:
    """Threads whose rows, added up in `n_rows`, go together: those of one number, which `begins` tells, always do."""
    first = 0
    while first < n_threads:
        before = int(n_rows[first - 1]) if first else 0
        enough = int(np.searchsorted(n_rows, before + _COUNTS_ROWS)) + 1
        at = int(np.searchsorted(begins, enough))
        last = int(begins[at]) if at < len(begins) else n_threads
        yield first, last
        first = last


def _gather(counts: ThreadsCounts, threads: Array, group: Array) -> tuple[KeptTally, KeptTally]:
    """What some threads did, as tallies of blocks and of edges by group, which rise; a group is added up."""
    batch_of = np.searchsorted(counts.firsts, threads, "right") - 1
    parts = []
    for number in dict.fromkeys(batch_of.tolist()):
        there = np.flatnonzero(batch_of == number)
        parts.append((there, threads[there] - counts.firsts[number], counts.batches[number]))
    blocks = _join([(there, own, batch.blocks) for there, own, batch in parts], group)
    return blocks, _join([(there, own, batch.edges) for there, own, batch in parts], group)


def _join(parts: list[tuple[Array, Array, KeptTally]], group: Array) -> KeptTally:
    """Of each part its places among all threads, the threads' numbers in its tally, and this."""
    sizes = np.zeros(len(group), np.int64)
    for there, own, tally in parts:
        sizes[there] = tally.sizes[own]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    number, count = np.empty(int(bounds[-1]), np.int64), np.empty(int(bounds[-1]), np.int64)
    for there, own, tally in parts:
        rows, places = spans(tally.bounds[own], sizes[there]), spans(bounds[there], sizes[there])
        number[places], count[places] = tally.number[rows], tally.count[rows]
    n_groups = int(group[-1]) + 1
    if n_groups == len(group):
        # Most threads had their numbers to themselves.
        return KeptTally(bounds, number, count)
    return Tally.add_up(n_groups, (np.repeat(group, sizes), number, count)).keep()


def _table(
    members: Members, owner: Array, tid: Array, blocks: KeptTally, edges: KeptTally, block_id: Array, first_edge: int
) -> pa.Table:
    n_blocks, n_edges = blocks.sizes, edges.sizes
    n_rows = n_blocks + n_edges
    begin = np.cumsum(n_rows) - n_rows
    block_rows, edge_rows = spans(begin, n_blocks), spans(begin + n_blocks, n_edges)
    ids, executions = np.empty(int(n_rows.sum()), np.int64), np.empty(int(n_rows.sum()), np.int64)
    is_edge = np.zeros(len(ids), bool)
    ids[block_rows], ids[edge_rows] = block_id[blocks.number], first_edge + edges.number.astype(np.int64)
    executions[block_rows], executions[edge_rows] = blocks.count, edges.count
    is_edge[edge_rows] = True
    return make_table(
        "counts",
        **members.columns(np.repeat(owner, n_rows)),
        tid=numbers(np.repeat(tid, n_rows), pa.int32()),
        block_id=numbers(ids, pa.int64(), is_edge),
        edge_id=numbers(ids, pa.int64(), ~is_edge),
        executions=numbers(executions, pa.int64()),
    )
