"""Invariants of a trace's structure: ids, places, shapes.

Runs in the controller. Each check gives, question by question, the places where its sentence does not hold; always as
many questions, in the same order, or none where there is nothing to ask of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from clew.analysis.tables.arrays import Array, TraceArrays, byte_lengths, find_rows, to_numpy
from clew.analysis.tables.broken_places import Places, places_of_blocks, places_of_edges, places_of_rows
from clew.binary.disassembly import instruction_starts
from clew.protocol.words import EDGE_WORDS, EXIT_WORDS, EdgeWord, ExitWord
from clew.store.columns import distinct
from clew.store.trace import Trace

__all__ = ["STRUCTURE_INVARIANTS", "check_coverage", "check_manifest"]

Check = Callable[[TraceArrays], Iterator[Places]]
_MAX_OVERLAPS: Final = 100_000
"""Blocks of a piece that overlap others, of which so many at most are disassembled."""


def find_duplicates(*columns: Array) -> Array:
    """Which rows have the same values in all columns as a row before."""
    again = np.zeros(len(columns[0]), bool)
    if _is_rising(columns):
        return again
    # What differs in a mixture of its columns differs; numbers are sorted far quicker than rows.
    mixed = np.zeros(len(again), np.uint64)
    for column in columns:
        mixed = (mixed ^ (mixed >> np.uint64(29)) ^ column.astype(np.int64).view(np.uint64)) * np.uint64(
            0x9E3779B97F4A7C15
        )
    mixed.sort()
    if not (mixed[1:] == mixed[:-1]).any():
        return again
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), bool)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    again[order[1:][same]] = True
    return again


def _is_rising(columns: Sequence[Array]) -> bool:
    """Whether each row is above the one before."""
    rises = np.zeros(max(len(columns[0]) - 1, 0), bool)
    for column in reversed(columns):
        rises &= column[1:] == column[:-1]
        rises |= column[1:] > column[:-1]
    return bool(rises.all())


def check_ids(arrays: TraceArrays) -> Iterator[Places]:
    for table, column in (
        ("blocks", "block_id"),
        ("edges", "edge_id"),
        ("images", "image_id"),
        ("processes", "process_id"),
    ):
        yield _find_ids(arrays, table, column, arrays.numbers(table, column))


def _find_ids(arrays: TraceArrays, table: str, column: str, ids: Array) -> Places:
    return places_of_rows(arrays, table, find_duplicates(ids), lambda row, _: f"{table}: {column} {ids[row]} again")


def check_processes(arrays: TraceArrays) -> Iterator[Places]:
    known = arrays.numbers("processes", "process_id")
    for table in ("threads", "images", "blocks", "edges", "counts", "events", "calls", "references"):
        process = arrays.numbers(table, "process_id")
        used = distinct(process[np.append([True], process[1:] != process[:-1])[: len(process)]])
        unknown = used[~np.isin(used, known)].tolist()
        yield Places.of([((number,), f"{table}: no process {number}") for number in unknown])


def check_manifest(trace: Trace) -> list[str]:
    """Of the whole trace: the manifest names the processes of the table."""
    told = sorted(row["pid"] for row in trace.manifest.processes)
    if told != sorted(to_numpy(trace.read("processes", ["pid"])["pid"]).tolist()):
        return ["the manifest names other processes than the table"]
    return []


def check_blocks(arrays: TraceArrays) -> Iterator[Places]:
    size = arrays.size_bytes.astype(np.int64)
    stored = byte_lengths(arrays.column("blocks", "bytes"))
    version = arrays.numbers("blocks", "code_version")
    yield places_of_blocks(arrays, (size < 0) | (stored != size), "its size is not that of its bytes")
    n = arrays.n_instructions
    wrong = (n < 0) | (n > size) | ((n == 0) != (size == 0))
    yield places_of_blocks(arrays, wrong, "an impossible number of instructions")
    yield places_of_blocks(arrays, arrays.exit_kind < 0, "an unknown kind of exit")
    again = find_duplicates(arrays.block_process, arrays.app_pc, version)
    yield places_of_blocks(arrays, again, "its address and version again")


def check_images(arrays: TraceArrays) -> Iterator[Places]:
    named = arrays.numbers("blocks", "image_id") >= 0
    row = arrays.block_image
    yield places_of_blocks(arrays, named & (row < 0), "no such image")
    inside = named & (row >= 0)
    offset = arrays.numbers("blocks", "offset")
    # One more for a row of -1, of which nothing is asked.
    base, size = (np.append(arrays.numbers("images", name), np.uint64(0)) for name in ("base", "size_bytes"))
    process = np.append(arrays.numbers("images", "process_id"), -1)
    yield places_of_blocks(arrays, inside & (base[row] + offset != arrays.app_pc), "its offset is not its address")
    yield places_of_blocks(arrays, inside & (offset >= size[row]), "it lies outside of its image")
    yield places_of_blocks(arrays, inside & (process[row] != arrays.block_process), "another's image")


def check_edges(arrays: TraceArrays) -> Iterator[Places]:
    source_id, target_id, callee_id = (
        arrays.numbers("edges", name) for name in ("source_block_id", "target_block_id", "callee_block_id")
    )
    yield places_of_edges(arrays, arrays.edge_target < 0, "it ends where no block begins")
    yield places_of_edges(arrays, (source_id >= 0) & (arrays.edge_source < 0), "it starts at no block")
    yield places_of_edges(arrays, (callee_id >= 0) & (arrays.callee < 0), "its callee is no block")
    yield places_of_edges(arrays, arrays.edge_kind < 0, "an unknown kind")
    wrong = (source_id < 0) != arrays.is_kind("start")
    yield places_of_edges(arrays, wrong, "a start has no source, and nothing else")
    yield places_of_edges(arrays, (callee_id >= 0) & ~arrays.is_kind("return"), "only a return has a callee")
    again = find_duplicates(source_id, target_id, arrays.edge_kind, callee_id)
    yield places_of_edges(arrays, again, "the same edge again")
    process = arrays.numbers("edges", "process_id")
    both = (arrays.edge_source >= 0) & (arrays.edge_target >= 0)
    of_block = np.append(arrays.block_process, -1)
    apart = (of_block[arrays.edge_source] != process) | (of_block[arrays.edge_target] != process)
    yield places_of_edges(arrays, both & apart, "it joins blocks of other processes")


_EXITS_OF_EDGE: Final[dict[EdgeWord, tuple[ExitWord, ...]]] = {
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


def _make_allowed() -> Array:
    """Whether a block of an exit (column) may have an edge of a kind (row); the last of each is for unknown ones."""
    allowed = np.ones((len(EDGE_WORDS) + 1, len(EXIT_WORDS) + 1), bool)
    for kind, of_kind in _EXITS_OF_EDGE.items():
        allowed[EDGE_WORDS.index(kind)] = [word in of_kind for word in (*EXIT_WORDS, None)]
    return allowed


_ALLOWED: Final = _make_allowed()


def check_edge_places(arrays: TraceArrays) -> Iterator[Places]:
    """An edge leaves a block whose last instruction makes such edges; the straight line leads on where it ends."""
    if not arrays.n_blocks or not arrays.n_edges:
        return
    known = (arrays.edge_source >= 0) & (arrays.edge_target >= 0)
    source, target = arrays.edge_source, arrays.edge_target
    wrong = known & ~_ALLOWED[arrays.edge_kind, arrays.exit_kind[source]]
    for kind in _EXITS_OF_EDGE:
        of_kind = wrong & arrays.is_kind(kind) if wrong.any() else wrong
        yield places_of_edges(arrays, of_kind, f"a block that does not end so has an edge of kind {kind}")
    end = arrays.app_pc + arrays.size_bytes.astype(np.uint64)
    straight = known & arrays.is_kind("not_taken", "fall_through", "syscall", "return")
    straight &= arrays.app_pc[target] != end[source]
    yield places_of_edges(arrays, straight, "it does not lead to where its block ends")
    called = known & arrays.is_kind("call", "indirect_call")
    calls = np.append(distinct(source[called].astype(np.int64) << 32 | target[called]), -1)
    returns = known & (arrays.callee >= 0)
    unknown = np.zeros(arrays.n_edges, bool)
    returned = source[returns].astype(np.int64) << 32 | arrays.callee[returns]
    unknown[returns] = calls[np.searchsorted(calls[:-1], returned)] != returned
    yield places_of_edges(arrays, unknown, "a return from a callee that was never called from there")


def check_counts(arrays: TraceArrays) -> Iterator[Places]:
    block_id, edge_id = arrays.numbers("counts", "block_id"), arrays.numbers("counts", "edge_id")

    def found(wrong: Array, says: str) -> Places:
        return places_of_rows(arrays, "counts", wrong, lambda _, row: f"counts, row {row}: {says}")

    yield found((block_id >= 0) == (edge_id >= 0), "one of block and edge, not both")
    yield found((block_id >= 0) & (arrays.count_block < 0), "no such block")
    yield found((edge_id >= 0) & (arrays.count_edge < 0), "no such edge")
    yield found(arrays.count_executions <= 0, "executions are above 0")
    yield found(find_duplicates(arrays.count_thread, edge_id, block_id), "the same thread and place again")
    is_recorded = np.append(arrays.is_recorded, [True])
    yield found(~is_recorded[arrays.count_block], "a block that is not recorded is counted")
    yield found(~np.isin(arrays.tids, arrays.thread_key)[arrays.count_thread], "no such thread")


def check_coverage(trace: Trace) -> list[str]:
    """Of the whole trace: in mode coverage there are no counts."""
    if trace.mode == "coverage" and trace.n_rows("counts"):
        return ["mode coverage counts nothing, but there are counts"]
    return []


def check_instructions(arrays: TraceArrays) -> Iterator[Places]:
    """Blocks that overlap are other decodings of the same bytes: no instruction of one is one of another."""
    version = arrays.numbers("blocks", "code_version")
    found = []
    seen: dict[tuple[int, int, int], int] = {}
    for row in _find_overlaps(arrays, version)[:_MAX_OVERLAPS].tolist():
        code = arrays.column("blocks", "bytes")[row].as_py()
        place = int(arrays.block_process[row]), int(version[row])
        architecture = arrays.trace.architecture_of(place[0])
        for address in instruction_starts(code, int(arrays.app_pc[row]), architecture):
            key = (*place, address)
            if key in seen:
                blocks = f"{arrays.block_id[seen[key]]} and {arrays.block_id[row]}"
                says = f"blocks {blocks}: the instruction at {address:#x} is in both"
                found.append(((*place, int(arrays.app_pc[row]), address), says))
            seen[key] = row
    yield Places.of(found)


def _find_overlaps(arrays: TraceArrays, version: Array) -> Array:
    """Blocks that ran and have bytes in common with others of their process and version, in the order of addresses."""
    ran = np.flatnonzero((arrays.block_executions > 0) & (arrays.size_bytes > 0))
    order = ran[np.lexsort((arrays.app_pc[ran], version[ran], arrays.block_process[ran]))]
    is_next = (arrays.block_process[order][1:] == arrays.block_process[order][:-1]) & (
        version[order][1:] == version[order][:-1]
    )
    start = arrays.app_pc[order]
    end = start + arrays.size_bytes[order].astype(np.uint64)
    overlaps = np.zeros(len(order), bool)
    overlaps[1:] = is_next & (start[1:] < end[:-1])
    # A block that overlaps one further on overlaps the next as well; the one further on has to be found from there.
    at = 0
    for index in np.flatnonzero(overlaps).tolist():
        if index >= at:
            furthest, at = max(end[index - 1], end[index]), index + 1
            while at < len(order) and is_next[at - 1] and start[at] < furthest:
                overlaps[at] = True
                furthest, at = max(furthest, end[at]), at + 1
    overlaps[:-1] |= overlaps[1:] & is_next
    return order[overlaps]


def check_times(arrays: TraceArrays) -> Iterator[Places]:
    start, end = arrays.numbers("processes", "start_ns"), arrays.numbers("processes", "end_ns")
    pid = arrays.numbers("processes", "pid")
    yield places_of_rows(
        arrays, "processes", start > end, lambda row, _: f"process {pid[row]}: it ends before it starts"
    )
    process = find_rows(arrays.numbers("processes", "process_id"), arrays.block_process)
    first = arrays.numbers("blocks", "first_ns")
    # One more for a row of -1, of which nothing is asked.
    late = (process >= 0) & ((first < np.append(start, 0)[process]) | (first > np.append(end, 0)[process]))
    yield places_of_blocks(arrays, late, "first seen outside of its process's life")
    start, end = arrays.numbers("threads", "start_ns"), arrays.numbers("threads", "end_ns")
    tid = arrays.numbers("threads", "tid")
    yield places_of_rows(arrays, "threads", start > end, lambda row, _: f"thread {tid[row]}: it ends before it starts")


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
