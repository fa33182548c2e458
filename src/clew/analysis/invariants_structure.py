"""Invariants of a trace's structure: ids, places, shapes.

Runs in the controller. Each function gives the places where its sentence does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.analysis.arrays import TraceArrays, byte_lengths, find_rows, pack_threads, to_numpy
from clew.binary.disassembly import instruction_starts

__all__ = ["STRUCTURE_INVARIANTS"]

Array = npt.NDArray[Any]
Check = Callable[[TraceArrays], list[str]]
_MAX_OVERLAPS: Final = 100_000
"""Blocks that overlap others, of which so many at most are disassembled."""


def _blocks(arrays: TraceArrays, wrong: Array, says: str) -> list[str]:
    return [
        f"block {arrays.block_id[row]} at {int(arrays.app_pc[row]):#x} (process {arrays.block_pid[row]}): {says}"
        for row in np.flatnonzero(wrong).tolist()
    ]


def _edges(arrays: TraceArrays, wrong: Array, says: str) -> list[str]:
    return [f"edge {arrays.edge_id[row]}: {says}" for row in np.flatnonzero(wrong).tolist()]


def _duplicates(*columns: Array) -> Array:
    """Which rows have the same values as a row before."""
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), bool)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    again = np.zeros(len(order), bool)
    again[order[1:][same]] = True
    return again


def check_ids(arrays: TraceArrays) -> list[str]:
    found = []
    for table, column in (
        ("blocks", "block_id"),
        ("edges", "edge_id"),
        ("images", "image_id"),
        ("processes", "process_id"),
    ):
        ids = to_numpy(arrays.trace.read(table, [column])[column])
        found += [f"{table}: {column} {ids[row]} again" for row in np.flatnonzero(_duplicates(ids)).tolist()]
    return found


def check_processes(arrays: TraceArrays) -> list[str]:
    trace = arrays.trace
    known = to_numpy(trace.processes["process_id"])
    found = []
    for table in ("threads", "images", "blocks", "edges", "counts", "events"):
        used = np.unique(to_numpy(trace.read(table, ["process_id"])["process_id"]))
        found += [f"{table}: no process {number}" for number in used[~np.isin(used, known)].tolist()]
    told = [row["pid"] for row in trace.manifest.processes]
    if sorted(told) != sorted(to_numpy(trace.processes["pid"]).tolist()):
        found.append("the manifest names other processes than the table")
    return found


def check_blocks(arrays: TraceArrays) -> list[str]:
    size = arrays.size_bytes.astype(np.int64)
    stored = byte_lengths(arrays.blocks["bytes"])
    version = to_numpy(arrays.blocks["code_version"])
    found = _blocks(arrays, (size < 0) | (stored != size), "its size is not that of its bytes")
    n = arrays.n_instructions
    found += _blocks(arrays, (n < 0) | (n > size) | ((n == 0) != (size == 0)), "an impossible number of instructions")
    found += _blocks(arrays, arrays.exit_kind < 0, "an unknown kind of exit")
    found += _blocks(arrays, _duplicates(arrays.block_process, arrays.app_pc, version), "its address and version again")
    return found


def check_images(arrays: TraceArrays) -> list[str]:
    trace = arrays.trace
    image = to_numpy(arrays.blocks["image_id"])
    row = find_rows(to_numpy(trace.images["image_id"]), image)
    inside = image >= 0
    found = _blocks(arrays, inside & (row < 0), "no such image")
    inside &= row >= 0
    offset = to_numpy(arrays.blocks["offset"])
    base, size = to_numpy(trace.images["base"]), to_numpy(trace.images["size_bytes"])
    if len(base):
        found += _blocks(arrays, inside & (base[row] + offset != arrays.app_pc), "its offset is not its address")
        found += _blocks(arrays, inside & (offset >= size[row]), "it lies outside of its image")
        found += _blocks(
            arrays, inside & (to_numpy(trace.images["process_id"])[row] != arrays.block_process), "another's image"
        )
    return found


def check_edges(arrays: TraceArrays) -> list[str]:
    edges = arrays.edges
    source_id, callee_id = to_numpy(edges["source_block_id"]), to_numpy(edges["callee_block_id"])
    found = _edges(arrays, arrays.edge_target < 0, "it ends where no block begins")
    found += _edges(arrays, (source_id >= 0) & (arrays.edge_source < 0), "it starts at no block")
    found += _edges(arrays, (callee_id >= 0) & (arrays.callee < 0), "its callee is no block")
    found += _edges(arrays, arrays.edge_kind < 0, "an unknown kind")
    found += _edges(arrays, (source_id < 0) != arrays.is_kind("start"), "a start has no source, and nothing else")
    found += _edges(arrays, (callee_id >= 0) & ~arrays.is_kind("return"), "only a return has a callee")
    target_id = to_numpy(edges["target_block_id"])
    found += _edges(arrays, _duplicates(source_id, target_id, arrays.edge_kind, callee_id), "the same edge again")
    process = to_numpy(edges["process_id"])
    both = (arrays.edge_source >= 0) & (arrays.edge_target >= 0)
    if arrays.n_blocks:
        apart = (arrays.block_process[arrays.edge_source] != process) | (
            arrays.block_process[arrays.edge_target] != process
        )
        found += _edges(arrays, both & apart, "it joins blocks of other processes")
    return found


_EXITS_OF_EDGE: Final = {
    "jump": ("jump",),
    "taken": ("conditional",),
    "not_taken": ("conditional",),
    "fall_through": ("fall_through",),
    "call": ("call",),
    "indirect_call": ("indirect_call",),
    "indirect_jump": ("indirect_jump", "return"),
    "return": ("call", "indirect_call"),
    "syscall": ("syscall",),
    "sigreturn": ("syscall",),
}


def check_edge_places(arrays: TraceArrays) -> list[str]:
    """An edge leaves a block whose last instruction makes such edges; the straight line leads on where it ends."""
    if not arrays.n_blocks or not arrays.n_edges:
        return []
    known = (arrays.edge_source >= 0) & (arrays.edge_target >= 0)
    source, target = arrays.edge_source, arrays.edge_target
    found = []
    for kind, exits in _EXITS_OF_EDGE.items():
        wrong = known & arrays.is_kind(kind) & ~arrays.ends_with(*exits)[source]
        found += _edges(arrays, wrong, f"a block that does not end so has an edge of kind {kind}")
    end = arrays.app_pc + arrays.size_bytes.astype(np.uint64)
    straight = known & arrays.is_kind("not_taken", "fall_through", "syscall", "return")
    found += _edges(
        arrays, straight & (arrays.app_pc[target] != end[source]), "it does not lead to where its block ends"
    )
    called = known & arrays.is_kind("call", "indirect_call")
    calls = source[called].astype(np.int64) << 32 | target[called]
    returns = known & (arrays.callee >= 0)
    unknown = np.zeros(arrays.n_edges, bool)
    unknown[returns] = ~np.isin(source[returns].astype(np.int64) << 32 | arrays.callee[returns], calls)
    found += _edges(arrays, unknown, "a return from a callee that was never called from there")
    return found


def check_counts(arrays: TraceArrays) -> list[str]:
    counts = arrays.trace.counts
    block_id, edge_id = to_numpy(counts["block_id"]), to_numpy(counts["edge_id"])
    found: list[str] = []

    def note(wrong: Array, says: str) -> None:
        found.extend(f"counts, row {row}: {says}" for row in np.flatnonzero(wrong).tolist())

    note((block_id >= 0) == (edge_id >= 0), "one of block and edge, not both")
    note((block_id >= 0) & (arrays.count_block < 0), "no such block")
    note((edge_id >= 0) & (arrays.count_edge < 0), "no such edge")
    note(arrays.count_executions <= 0, "executions are above 0")
    note(_duplicates(arrays.count_thread, block_id, edge_id), "the same thread and place again")
    if arrays.n_blocks:
        ran = arrays.count_block >= 0
        note(ran & ~arrays.is_recorded[arrays.count_block], "a block that is not recorded is counted")
    threads = arrays.trace.threads
    known = pack_threads(threads)
    note(~np.isin(arrays.tids, known)[arrays.count_thread] if len(arrays.tids) else np.zeros(0, bool), "no such thread")
    if arrays.trace.mode == "coverage" and counts.num_rows:
        found.append("mode coverage counts nothing, but there are counts")
    return found


def check_instructions(arrays: TraceArrays) -> list[str]:
    """Blocks that overlap are other decodings of the same bytes: no instruction of one is one of another."""
    ran = np.flatnonzero((arrays.block_executions > 0) & (arrays.size_bytes > 0))
    version = to_numpy(arrays.blocks["code_version"])
    order = ran[np.lexsort((arrays.app_pc[ran], version[ran], arrays.block_process[ran]))]
    same = (arrays.block_process[order][1:] == arrays.block_process[order][:-1]) & (
        version[order][1:] == version[order][:-1]
    )
    end = (arrays.app_pc + arrays.size_bytes.astype(np.uint64))[order]
    # The furthest end so far: addresses fall at the start of the next process or version, so they need no reset there.
    group = np.concatenate([[0], np.cumsum(~same)])
    furthest = np.maximum.accumulate(end + (group.astype(np.uint64) << np.uint64(57))) if len(order) else end
    start = arrays.app_pc[order] + (group.astype(np.uint64) << np.uint64(57)) if len(order) else end
    overlaps = np.zeros(len(order), bool)
    overlaps[1:] = start[1:] < furthest[:-1]
    overlaps[:-1] |= overlaps[1:]
    found = []
    seen: dict[tuple[int, int, int], int] = {}
    for row in order[overlaps][:_MAX_OVERLAPS].tolist():
        code = arrays.blocks["bytes"][row].as_py()
        starts = instruction_starts(code, int(arrays.app_pc[row]))
        for address in starts:
            key = (int(arrays.block_process[row]), int(version[row]), address)
            if key in seen:
                first = arrays.block_id[seen[key]]
                found.append(f"blocks {first} and {arrays.block_id[row]}: the instruction at {address:#x} is in both")
            seen[key] = row
    return found


def check_times(arrays: TraceArrays) -> list[str]:
    trace = arrays.trace
    processes = trace.processes
    found = [
        f"process {row['pid']}: it ends before it starts"
        for row in processes.to_pylist()
        if row["start_ns"] > row["end_ns"]
    ]
    process = find_rows(to_numpy(processes["process_id"]), arrays.block_process)
    if (process >= 0).any():
        first, start, end = (
            to_numpy(column) for column in (arrays.blocks["first_ns"], processes["start_ns"], processes["end_ns"])
        )
        late = (process >= 0) & ((first < start[process]) | (first > end[process]))
        found += _blocks(arrays, late, "first seen outside of its process's life")
    found += [f"thread {row['tid']}: it ends before it starts" for row in trace.threads.to_pylist()
              if row["start_ns"] > row["end_ns"]]  # fmt: skip
    return found


STRUCTURE_INVARIANTS: Final[list[tuple[str, Check]]] = [
    ("ids are unique", check_ids),
    ("every row belongs to a process of the trace", check_processes),
    ("blocks have the bytes and instructions they say, each address and version once", check_blocks),
    ("blocks lie in their images", check_images),
    ("every edge starts at a block and ends where a block begins", check_edges),
    ("every edge leaves its block the way the block ends", check_edge_places),
    ("counts are of blocks, edges and threads of the trace, each once", check_counts),
    ("an instruction lies in one block", check_instructions),
    ("times are in order", check_times),
]
