"""Invariants of a trace's flow: what comes into a block goes out of it.

Runs in the controller. All of it by thread, on the counts. A thread that was stopped from outside may have come to one
block that it did not run to its end; a system call that did not come back has no way out. Of a thread whose end is not
known the counters were read while it ran, so nothing of that is asked. A number may belong to several threads, one
after the other, whose counts are one: each of them may have such a block, and it may be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.analysis.arrays import TraceArrays, pack_threads

__all__ = ["FLOW_INVARIANTS"]

Array = npt.NDArray[Any]
Check = Callable[[TraceArrays], list[str]]


def _by_thread(arrays: TraceArrays, thread: Array, row: Array, amount: Array) -> tuple[Array, Array, Array]:
    """Sums of `amount` by thread and row: threads, rows, and the sums that are not 0."""
    key, where = np.unique(thread.astype(np.int64) * (max(arrays.n_blocks, 1)) + row, return_inverse=True)
    total = np.zeros(len(key), np.int64)
    np.add.at(total, where, amount)
    kept = total != 0
    return key[kept] // max(arrays.n_blocks, 1), key[kept] % max(arrays.n_blocks, 1), total[kept]


def _counted(arrays: TraceArrays) -> tuple[Array, Array]:
    """Rows of the counts that are of blocks, and that are of edges with both ends known."""
    blocks = np.flatnonzero(arrays.count_block >= 0)
    edges = np.flatnonzero(arrays.count_edge >= 0)
    if len(edges):
        edges = edges[arrays.edge_target[arrays.count_edge[edges]] >= 0]
    return blocks, edges


def _describe(arrays: TraceArrays, thread: int, row: int, says: str) -> str:
    tid = int(arrays.tids[thread]) & 0xFFFFFFFF
    return f"thread {tid}, block {arrays.block_id[row]} at {int(arrays.app_pc[row]):#x}: {says}"


def _stopped_threads(arrays: TraceArrays) -> dict[int, int]:
    """By thread (see `pack_threads`): how many of that number did not end by themselves."""
    threads = arrays.trace.threads
    key = pack_threads(threads)
    stopped: dict[int, int] = {}
    for thread, end in zip(key.tolist(), threads["end"].to_pylist(), strict=True):
        stopped[thread] = stopped.get(thread, 0) + (end != "exit")
    return stopped


def _is_cut_off(arrays: TraceArrays) -> Array:
    """By thread of the counts: whether its end is not known, so that its counters were read while it ran on."""
    threads = arrays.trace.threads
    lost = [index for index, end in enumerate(threads["end"].to_pylist()) if end == "lost"]
    cut_off: Array = np.isin(arrays.tids, pack_threads(threads)[lost])
    return cut_off


def check_inflow(arrays: TraceArrays) -> list[str]:
    """Edges into a block = its executions + what was interrupted or faulted before its first instruction."""
    blocks, edges = _counted(arrays)
    edge, executions = arrays.count_edge[edges], arrays.count_executions
    before = np.isin(edge, np.flatnonzero(arrays.is_kind("signal", "fault") & (arrays.edge_source >= 0)))
    thread, row, excess = _by_thread(
        arrays,
        np.concatenate([arrays.count_thread[edges], arrays.count_thread[blocks], arrays.count_thread[edges[before]]]),
        np.concatenate([arrays.edge_target[edge], arrays.count_block[blocks], arrays.edge_source[edge[before]]]),
        np.concatenate([executions[edges], -executions[blocks], -executions[edges[before]]]),
    )
    recorded = arrays.is_recorded[row] & ~_is_cut_off(arrays)[thread] if arrays.n_blocks else np.zeros(0, bool)
    if arrays.trace.manifest.include or arrays.trace.manifest.exclude:
        # Where no code is known, a filter may have hidden it, and with it how the thread came there.
        recorded &= arrays.n_instructions[row] > 0
    stopped = _stopped_threads(arrays)
    found = []
    for index in np.flatnonzero(recorded).tolist():
        tid = int(arrays.tids[thread[index]])
        if 0 < excess[index] <= stopped.get(tid, 0):
            stopped[tid] -= int(excess[index])  # The block it was in when it was stopped.
            continue
        says = (
            f"{abs(int(excess[index]))} executions {'came and did not run' if excess[index] > 0 else 'came by no edge'}"
        )
        found.append(_describe(arrays, int(thread[index]), int(row[index]), says))
    return found


def check_outflow(arrays: TraceArrays) -> list[str]:
    """Executions of a block = edges out of its last instruction; returns, and exits that lead nowhere, have fewer."""
    blocks, edges = _counted(arrays)
    edge, executions = arrays.count_edge[edges], arrays.count_executions
    leaves = ~arrays.is_kind("signal", "fault", "return") & (arrays.edge_source >= 0)
    out = leaves[edge] if len(edge) else np.zeros(0, bool)
    thread, row, excess = _by_thread(
        arrays,
        np.concatenate([arrays.count_thread[blocks], arrays.count_thread[edges[out]]]),
        np.concatenate([arrays.count_block[blocks], arrays.edge_source[edge[out]]]),
        np.concatenate([executions[blocks], -executions[edges[out]]]),
    )
    if not len(row):
        return []
    may_keep = arrays.ends_with("return", "none")[row] & (excess > 0)
    is_syscall = arrays.ends_with("syscall")[row]
    last_calls: dict[int, int] = {}
    threads = arrays.trace.threads
    key = pack_threads(threads)
    for tid in key.tolist():
        last_calls[tid] = last_calls.get(tid, 0) + 1
    found = []
    for index in np.flatnonzero(~may_keep & arrays.is_recorded[row] & ~_is_cut_off(arrays)[thread]).tolist():
        tid = int(arrays.tids[thread[index]])
        if is_syscall[index] and 0 < excess[index] <= last_calls.get(tid, 0):
            last_calls[tid] -= int(excess[index])  # The thread's last system call.
            continue
        says = f"{abs(int(excess[index]))} executions {'did not leave' if excess[index] > 0 else 'too many left'}"
        found.append(_describe(arrays, int(thread[index]), int(row[index]), says))
    return found


def check_returns(arrays: TraceArrays) -> list[str]:
    """Returns arrive as often as blocks that return ran, announced or not; not to be told where filters hide code."""
    manifest = arrays.trace.manifest
    if manifest.include or manifest.exclude or not arrays.n_blocks:
        return []
    blocks, edges = _counted(arrays)
    edge = arrays.count_edge[edges]
    returns = arrays.ends_with("return")
    unannounced = arrays.is_kind("indirect_jump") & (arrays.edge_source >= 0)
    unannounced &= returns[arrays.edge_source]
    arrive = (unannounced | arrays.is_kind("return"))[edge] if len(edge) else np.zeros(0, bool)
    run = returns[arrays.count_block[blocks]]
    total = np.zeros(len(arrays.tids), np.int64)
    np.add.at(total, arrays.count_thread[blocks[run]], arrays.count_executions[blocks[run]])
    np.subtract.at(total, arrays.count_thread[edges[arrive]], arrays.count_executions[edges[arrive]])
    stopped = _stopped_threads(arrays)
    return [
        f"thread {tid & 0xFFFFFFFF}: {abs(excess)} returns {'did not arrive' if excess > 0 else 'too many arrived'}"
        for tid, excess, is_cut_off in zip(
            arrays.tids.tolist(), total.tolist(), _is_cut_off(arrays).tolist(), strict=True
        )
        if not is_cut_off and not 0 <= excess <= stopped.get(tid, 0)
    ]


def check_starts(arrays: TraceArrays) -> list[str]:
    """Every thread that counted something started, once."""
    _, edges = _counted(arrays)
    starts = edges[arrays.is_kind("start")[arrays.count_edge[edges]]] if len(edges) else edges
    total = np.zeros(len(arrays.tids), np.int64)
    np.add.at(total, arrays.count_thread[starts], arrays.count_executions[starts])
    threads = arrays.trace.threads
    key = pack_threads(threads)
    manifest = arrays.trace.manifest
    is_whole = not manifest.include and not manifest.exclude
    n_rows = Counter(key.tolist())
    return [
        f"thread {int(tid) & 0xFFFFFFFF}: it started {n} times"
        for tid, n in zip(arrays.tids.tolist(), total.tolist(), strict=True)
        if n > n_rows[tid] or (is_whole and n < n_rows[tid])
    ]


def check_totals(arrays: TraceArrays) -> list[str]:
    """Totals of threads are the sums of their counts."""
    blocks, _ = _counted(arrays)
    executions = np.zeros(len(arrays.tids), np.int64)
    instructions = np.zeros(len(arrays.tids), np.int64)
    np.add.at(executions, arrays.count_thread[blocks], arrays.count_executions[blocks])
    ran = arrays.n_instructions[arrays.count_block[blocks]] * arrays.count_executions[blocks]
    np.add.at(instructions, arrays.count_thread[blocks], ran)
    summed = {tid: totals for tid, *totals in zip(arrays.tids.tolist(), executions.tolist(), instructions.tolist(),
                                                  strict=True)}  # fmt: skip
    told: dict[int, list[int]] = {}
    for row in arrays.trace.threads.to_pylist():
        totals = told.setdefault(row["process_id"] << 32 | (row["tid"] & 0xFFFFFFFF), [0, 0])
        totals[0] += row["block_executions"]
        totals[1] += row["instructions"]
    return [
        f"thread {tid & 0xFFFFFFFF}: its row says {totals}, its counts add up to {summed.get(tid, [0, 0])}"
        for tid, totals in told.items()
        if totals != summed.get(tid, [0, 0]) and arrays.trace.mode != "coverage"
    ]


FLOW_INVARIANTS: Final[list[tuple[str, Check]]] = [
    ("what comes into a block runs it", check_inflow),
    ("what runs a block leaves it by its exits", check_outflow),
    ("returns balance in every thread", check_returns),
    ("every thread started once", check_starts),
    ("totals of threads are the sums of their counts", check_totals),
]
