"""Invariants of a trace's flow: what comes into a block goes out of it.

Runs in the controller. All of it by thread, on the counts. A thread that was stopped from outside may have come to one
block that it did not run to its end; a system call that did not come back has no way out. Of a thread whose end is not
known the counters were read while it ran, so nothing of that is asked. A number may belong to several threads, one
after the other, whose counts are one: each of them may have such a block, and it may be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from clew.analysis.tables.arrays import Array, TraceArrays
from clew.analysis.tables.broken_places import Key, Places
from clew.analysis.tables.thread_sums import ThreadSums

__all__ = ["FLOW_INVARIANTS", "find_inexact"]

Check = Callable[[TraceArrays], Iterator[Places]]


def _counted(arrays: TraceArrays) -> tuple[Array, Array]:
    """Rows of the counts that are of blocks, and that are of edges with both ends known."""
    blocks = np.flatnonzero(arrays.count_block >= 0)
    edges = np.flatnonzero(arrays.count_edge >= 0)
    if len(edges):
        edges = edges[arrays.edge_target[arrays.count_edge[edges]] >= 0]
    return blocks, edges


def _describe(arrays: TraceArrays, thread: int, row: int, says: str) -> tuple[Key, str]:
    packed = int(arrays.tids[thread])
    in_whole = int(arrays.trace.whole_rows("blocks", np.array([row]))[0])
    place = f"thread {packed & 0xFFFFFFFF}, block {arrays.block_id[row]} at {int(arrays.app_pc[row]):#x}"
    return (packed, in_whole), f"{place}: {says}"


def _stopped_threads(arrays: TraceArrays) -> Counter[int]:
    """By thread (see `pack_threads`): how many of that number did not end by themselves."""
    ends = arrays.column("threads", "end").to_pylist()
    return Counter(thread for thread, end in zip(arrays.thread_key.tolist(), ends, strict=True) if end != "exit")


def _is_cut_off(arrays: TraceArrays) -> Array:
    """By thread of the counts: whether its end is not known, so that its counters were read while it ran on."""
    lost = [index for index, end in enumerate(arrays.column("threads", "end").to_pylist()) if end == "lost"]
    cut_off: Array = np.isin(arrays.tids, arrays.thread_key[lost])
    return cut_off


def _is_changed(arrays: TraceArrays) -> Array:
    """By thread of the counts: whether what is recorded of its process changed while that ran.

    Then some ways are known into code that did not count, and the other way round.
    """
    rows = np.flatnonzero(arrays.is_event("recording_changed"))
    changed: Array = np.isin(arrays.tids >> 32, np.unique(arrays.numbers("events", "process_id")[rows]))
    return changed


def find_inexact(arrays: TraceArrays) -> Array:
    """By thread of the counts: whether nothing is asked of what comes and goes."""
    inexact: Array = _is_cut_off(arrays) | _is_changed(arrays)
    return inexact


def check_inflow(arrays: TraceArrays) -> Iterator[Places]:
    """Edges into a block = its executions + what was interrupted or faulted before its first instruction."""
    blocks, edges = _counted(arrays)
    thread, executions = arrays.count_thread, arrays.count_executions
    edge = arrays.count_edge[edges]
    before = (arrays.is_kind("signal", "fault") & (arrays.edge_source >= 0))[edge]
    sums = ThreadSums(arrays)
    sums.add(thread[edges], arrays.edge_target[edge], executions[edges])
    sums.add(thread[blocks], arrays.count_block[blocks], -executions[blocks])
    sums.add(thread[edges[before]], arrays.edge_source[edge[before]], -executions[edges[before]])
    thread, row, excess = sums.find()
    recorded = arrays.is_recorded[row] & ~find_inexact(arrays)[thread]
    if arrays.trace.manifest.include or arrays.trace.manifest.exclude:
        # Where no code is known, a filter may have hidden it, and with it how the thread came there.
        recorded &= arrays.n_instructions[row] > 0
    stopped = _stopped_threads(arrays)
    found = []
    for index in np.flatnonzero(recorded).tolist():
        tid = int(arrays.tids[thread[index]])
        if 0 < excess[index] <= stopped[tid]:
            stopped[tid] -= int(excess[index])  # The block it was in when it was stopped.
            continue
        says = (
            f"{abs(int(excess[index]))} executions {'came and did not run' if excess[index] > 0 else 'came by no edge'}"
        )
        found.append(_describe(arrays, int(thread[index]), int(row[index]), says))
    yield Places.of(found)


def check_outflow(arrays: TraceArrays) -> Iterator[Places]:
    """Executions of a block = edges out of its last instruction; returns, and exits that lead nowhere, have fewer."""
    blocks, edges = _counted(arrays)
    thread, executions = arrays.count_thread, arrays.count_executions
    edge = arrays.count_edge[edges]
    out = (~arrays.is_kind("signal", "fault", "return") & (arrays.edge_source >= 0))[edge]
    sums = ThreadSums(arrays)
    sums.add(thread[blocks], arrays.count_block[blocks], executions[blocks])
    sums.add(thread[edges[out]], arrays.edge_source[edge[out]], -executions[edges[out]])
    thread, row, excess = sums.find()
    may_keep = arrays.ends_with("return", "none")[row] & (excess > 0)
    is_syscall = arrays.ends_with("syscall")[row]
    last_calls = Counter(arrays.thread_key.tolist())
    found = []
    is_exact = ~find_inexact(arrays)[thread]
    for index in np.flatnonzero(~may_keep & arrays.is_recorded[row] & is_exact).tolist():
        tid = int(arrays.tids[thread[index]])
        if is_syscall[index] and 0 < excess[index] <= last_calls[tid]:
            last_calls[tid] -= int(excess[index])  # The thread's last system call.
            continue
        says = f"{abs(int(excess[index]))} executions {'did not leave' if excess[index] > 0 else 'too many left'}"
        found.append(_describe(arrays, int(thread[index]), int(row[index]), says))
    yield Places.of(found)


def check_returns(arrays: TraceArrays) -> Iterator[Places]:
    """Returns arrive as often as blocks that return ran, announced or not; not to be told where filters hide code."""
    manifest = arrays.trace.manifest
    if manifest.include or manifest.exclude or not arrays.n_blocks:
        return
    blocks, edges = _counted(arrays)
    edge = arrays.count_edge[edges]
    returns = arrays.ends_with("return")
    unannounced = arrays.is_kind("indirect_jump") & (arrays.edge_source >= 0)
    unannounced &= returns[arrays.edge_source]
    arrive = (unannounced | arrays.is_kind("return"))[edge]
    run = returns[arrays.count_block[blocks]]
    total = np.zeros(len(arrays.tids), np.int64)
    np.add.at(total, arrays.count_thread[blocks[run]], arrays.count_executions[blocks[run]])
    np.subtract.at(total, arrays.count_thread[edges[arrive]], arrays.count_executions[edges[arrive]])
    stopped, inexact = _stopped_threads(arrays), find_inexact(arrays)
    yield Places.of(
        [
            (
                (tid,),
                f"thread {tid & 0xFFFFFFFF}: {abs(excess)} returns "
                f"{'did not arrive' if excess > 0 else 'too many arrived'}",
            )
            for tid, excess, is_inexact in zip(arrays.tids.tolist(), total.tolist(), inexact.tolist(), strict=True)
            if not is_inexact and not 0 <= excess <= stopped[tid]
        ]
    )


def check_starts(arrays: TraceArrays) -> Iterator[Places]:
    """Every thread that counted something started, once."""
    _, edges = _counted(arrays)
    starts = edges[arrays.is_kind("start")[arrays.count_edge[edges]]]
    total = np.zeros(len(arrays.tids), np.int64)
    np.add.at(total, arrays.count_thread[starts], arrays.count_executions[starts])
    manifest = arrays.trace.manifest
    is_whole = not manifest.include and not manifest.exclude
    n_rows = Counter(arrays.thread_key.tolist())
    yield Places.of(
        [
            ((tid,), f"thread {tid & 0xFFFFFFFF}: it started {n} times")
            for tid, n in zip(arrays.tids.tolist(), total.tolist(), strict=True)
            if n > n_rows[tid] or (is_whole and n < n_rows[tid])
        ]
    )


def check_totals(arrays: TraceArrays) -> Iterator[Places]:
    """Totals of threads are the sums of their counts."""
    if arrays.trace.mode == "coverage":
        return
    blocks, _ = _counted(arrays)
    summed = np.zeros((2, len(arrays.tids) + 1), np.int64)
    executions = arrays.count_executions[blocks]
    np.add.at(summed[0], arrays.count_thread[blocks], executions)
    np.add.at(summed[1], arrays.count_thread[blocks], arrays.n_instructions[arrays.count_block[blocks]] * executions)
    # Threads in the order of their first rows, for several may have one number.
    tids, first, which = np.unique(arrays.thread_key, return_index=True, return_inverse=True)
    told = np.zeros((2, len(tids)), np.int64)
    np.add.at(told[0], which, arrays.numbers("threads", "block_executions"))
    np.add.at(told[1], which, arrays.numbers("threads", "instructions"))
    at = np.searchsorted(arrays.tids, tids)
    # The last sums are those of threads that the counts do not speak of.
    at[np.append(arrays.tids, -1)[at] != tids] = len(arrays.tids)
    rows = arrays.trace.whole_rows("threads", first)
    yield Places.of(
        sorted(
            (
                (int(rows[index]),),
                f"thread {int(tids[index]) & 0xFFFFFFFF}: its row says {told[:, index].tolist()}, "
                f"its counts add up to {summed[:, at[index]].tolist()}",
            )
            for index in np.flatnonzero((told != summed[:, at]).any(axis=0)).tolist()
        )
    )


FLOW_INVARIANTS: Final[list[tuple[str, Check]]] = [
    ("what comes into a block runs it", check_inflow),
    ("what runs a block leaves it by its exits", check_outflow),
    ("returns balance in every thread", check_returns),
    ("every thread started once", check_starts),
    ("totals of threads are the sums of their counts", check_totals),
]
