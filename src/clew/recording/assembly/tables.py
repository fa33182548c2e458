"""Tables of a trace out of blocks, edges and images of a process.

Runs in the controller, after the target ended. Knows the columns of the store; how blocks were found is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.protocol._generated import EdgeKind, EndKind, EventKind, ExitKind, ReleaseReason
from clew.recording.assembly.blocks import NO_BLOCK, Blocks
from clew.recording.assembly.blocks_keys import gather, spans
from clew.recording.assembly.edges import Edges
from clew.recording.assembly.images import ImageMap
from clew.recording.assembly.records import Fragments
from clew.recording.assembly.rows import add_up
from clew.recording.raw import RawProcess
from clew.store.columns import binaries, booleans, numbers, optional_numbers, text_lists, texts, words
from clew.store.schema import SCHEMAS

__all__ = ["Clock", "FirstIds", "build_tables", "name_blocks", "number_blocks"]

Array = npt.NDArray[Any]

_EXIT_KINDS = [kind.name.lower() for kind in sorted(ExitKind)]
_EDGE_KINDS = [kind.name.lower() for kind in sorted(EdgeKind)]
_MAX_CHUNK_BYTES = 1 << 30
_COUNTS_ROWS = 1 << 18


@dataclass
class FirstIds:
    """The first id that is still free, of each kind; ids are unique in a trace."""

    block: int = 0
    edge: int = 0
    image: int = 0
    process: int = 0


class Clock:
    """Time stamps of a process turned into CLOCK_REALTIME nanoseconds, kept within the life of the process."""

    def __init__(self, process: RawProcess) -> None:
        status = process.status
        self.start_tsc = int(status["start_tsc"])
        ticks, nanoseconds = int(status["last_tsc"]) - self.start_tsc, int(status["last_ns"]) - int(status["start_ns"])
        self.ns_per_tick = nanoseconds / ticks if ticks > 0 and nanoseconds > 0 else 0.0
        self.start_ns, self._end_ns = process.start_ns, max(process.end_ns, process.start_ns)

    def to_ns(self, tsc: Array) -> Array:
        """Nanoseconds, i64, of time stamps."""
        elapsed = (
            np.where(tsc > self.start_tsc, tsc - np.uint64(self.start_tsc), 0).astype(np.float64) * self.ns_per_tick
        )
        return self.start_ns + np.minimum(elapsed, self._end_ns - self.start_ns).astype(np.int64)

    def one_to_ns(self, tsc: int) -> int:
        """Nanoseconds of one time stamp."""
        return int(self.to_ns(np.array([tsc], np.uint64))[0])


def build_tables(
    process: RawProcess,
    fragments: Fragments,
    events: Array,
    images: ImageMap,
    blocks: Blocks,
    edges: Edges,
    first: FirstIds,
) -> Iterator[tuple[str, pa.Table]]:
    """Tables with their names; some in several parts. `first` is moved past the ids used, at the end."""
    clock = Clock(process)
    block_id, kept = number_blocks(blocks, edges, first.block)
    yield "processes", _processes(process, first.process)
    yield "threads", _threads(process, blocks, edges, clock, first.process)
    yield "images", _images(process, images, clock, first)
    yield "blocks", _blocks(process, fragments, blocks, kept, images, clock, first)
    yield "edges", _edges(process, edges, block_id, first)
    for part in _counts(process, edges, block_id, first):
        yield "counts", part
    yield "events", _events(process, events, blocks, block_id, clock, first.process)
    first.block += len(kept)
    first.edge += len(edges)
    first.image += len(images.images)
    first.process += 1


def clean_text(text: str) -> str:
    """`text` as valid Unicode: bytes that are none stay visible as escapes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def number_blocks(blocks: Blocks, edges: Edges, first_id: int) -> tuple[Array, Array]:
    """Ids of blocks by index (-1: left out), and the blocks that stay: those that ran, and those that edges touch."""
    stays = np.zeros(len(blocks), bool)
    for ends in (edges.source, edges.target, edges.callee):
        stays[ends[ends >= 0]] = True
    if edges.threads:
        for thread in edges.threads:
            stays[thread.block] = True
        stays[edges.passed] = True
    else:
        stays[blocks.is_recorded & (blocks.n_instructions > 0)] = True
    kept = np.flatnonzero(stays)
    block_id = np.full(len(blocks) + 1, NO_BLOCK)
    block_id[kept] = first_id + np.arange(len(kept))
    return block_id, kept


def _table(table: str, /, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    schema = SCHEMAS[table]
    return pa.Table.from_arrays([columns[field] for field in schema.names], schema=schema)


def _processes(process: RawProcess, process_id: int) -> pa.Table:
    return _table(
        "processes",
        process_id=numbers([process_id], pa.int32()),
        pid=numbers([process.pid], pa.int32()),
        parent_pid=numbers([process.parent_pid], pa.int32()),
        executable=texts([clean_text(process.executable)]),
        command=text_lists([[clean_text(word) for word in process.command]]),
        start_ns=numbers([_clean_number(process.start_ns)], pa.int64()),
        end_ns=numbers([_clean_number(process.end_ns)], pa.int64()),
        exit_code=optional_numbers([process.exit_code], pa.int32()),
        signal=optional_numbers([process.signal], pa.int32()),
    )


def _threads(process: RawProcess, blocks: Blocks, edges: Edges, clock: Clock, process_id: int) -> pa.Table:
    threads, n = process.threads, len(process.threads)
    executions, instructions = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for index, counts in enumerate(edges.threads):
        executions[index] = counts.block_count.sum()
        instructions[index] = (counts.block_count * blocks.n_instructions[counts.block]).sum()
    ends = [_end_of_thread(process, thread.end_kind) for thread in threads]
    return _table(
        "threads",
        process_id=numbers(np.full(n, process_id), pa.int32()),
        pid=numbers(np.full(n, process.pid), pa.int32()),
        tid=numbers([_clean_tid(thread.tid) for thread in threads], pa.int32()),
        parent_tid=numbers([_clean_tid(thread.parent_tid) for thread in threads], pa.int32()),
        name=texts([clean_text(thread.name) for thread in threads]),
        start_ns=numbers([clock.one_to_ns(thread.start_tsc) for thread in threads], pa.int64()),
        end_ns=numbers(
            [
                clock.one_to_ns(thread.end_tsc) if thread.end_tsc else _clean_number(process.end_ns)
                for thread in threads
            ],
            pa.int64(),
        ),
        end=words(np.arange(n), ends),
        instructions=numbers(instructions, pa.int64()),
        block_executions=numbers(executions, pa.int64()),
        lost_records=numbers([_clean_number(thread.lost_records) for thread in threads], pa.int64()),
    )


def _clean_number(number: int) -> int:
    """A number as the target or a damaged journal gave it, made to fit."""
    return max(0, min(number, (1 << 63) - 1))


def _clean_tid(tid: int) -> int:
    """A thread's number as the target gave it, made to fit."""
    return tid & 0x7FFFFFFF


def _end_of_thread(process: RawProcess, end_kind: int) -> str:
    if end_kind in (EndKind.EXIT, EndKind.EXIT_GROUP):
        return "exit"
    if end_kind in (EndKind.RELEASED, EndKind.EXECVE):
        return "detached"
    is_over = process.signal is not None or process.exit_code is not None or process.went_on_unfollowed
    if is_over and not process.is_lost:
        return "killed"
    return "lost"


def _images(process: RawProcess, images: ImageMap, clock: Clock, first: FirstIds) -> pa.Table:
    rows, n = images.images, len(images.images)
    loaded = [clock.one_to_ns(row.loaded_tsc) if row.loaded_tsc else process.start_ns for row in rows]
    unloaded = [None if row.unloaded_tsc is None else clock.one_to_ns(row.unloaded_tsc) for row in rows]
    return _table(
        "images",
        image_id=numbers(first.image + np.arange(n), pa.int32()),
        process_id=numbers(np.full(n, first.process), pa.int32()),
        pid=numbers(np.full(n, process.pid), pa.int32()),
        path=texts([clean_text(row.path) for row in rows]),
        build_id=texts([row.build_id for row in rows]),
        base=numbers([row.base for row in rows], pa.uint64()),
        size_bytes=numbers([row.size_bytes for row in rows], pa.uint64()),
        loaded_ns=numbers(loaded, pa.int64()),
        unloaded_ns=optional_numbers(unloaded, pa.int64()),
    )


def _blocks(
    process: RawProcess,
    fragments: Fragments,
    blocks: Blocks,
    kept: Array,
    images: ImageMap,
    clock: Clock,
    first: FirstIds,
) -> pa.Table:
    app_pc, n = blocks.app_pc[kept], len(kept)
    tsc = blocks.first_tsc[kept]
    image = images.locate(app_pc, tsc)
    base = np.array([row.base for row in images.images] + [0], np.uint64)
    offset = app_pc - base[image]
    has_image = (image >= 0) & (app_pc >= base[image])
    symbol, names, symbol_offset, function_offset = name_blocks(image, offset, images)
    return _table(
        "blocks",
        block_id=numbers(first.block + np.arange(n), pa.int64()),
        process_id=numbers(np.full(n, first.process), pa.int32()),
        pid=numbers(np.full(n, process.pid), pa.int32()),
        image_id=numbers(first.image + image, pa.int32(), ~has_image),
        offset=numbers(offset, pa.uint64(), ~has_image),
        app_pc=numbers(app_pc, pa.uint64()),
        code_version=numbers(blocks.code_version[kept], pa.uint32()),
        size_bytes=numbers(blocks.end_pc[kept] - app_pc, pa.int32()),
        n_instructions=numbers(blocks.n_instructions[kept], pa.int32()),
        bytes=_gather_code(fragments, blocks, kept),
        symbol=words(symbol, names, symbol < 0),
        symbol_offset=numbers(symbol_offset, pa.int64(), symbol < 0),
        function_offset=numbers(function_offset, pa.uint64(), function_offset < 0),
        exit_kind=words(blocks.exit_kind[kept], _EXIT_KINDS),
        is_recorded=booleans(blocks.is_recorded[kept]),
        first_ns=numbers(clock.to_ns(np.where(tsc == np.iinfo(np.uint64).max, 0, tsc)), pa.int64()),
    )


def name_blocks(image: Array, offset: Array, images: ImageMap) -> tuple[Array, list[str], Array, Array]:
    """For each block: its symbol (index into the names, or -1), how far into it, and where its function starts."""
    symbol = np.full(len(image), -1)
    symbol_offset = np.zeros(len(image), np.int64)
    function_offset = np.full(len(image), -1, np.int64)
    names: list[str] = []
    for index, row in enumerate(images.images):
        inside = np.flatnonzero(image == index) if row.symbols is not None else np.zeros(0, np.int64)
        if row.symbols is None or not len(inside):
            continue
        found = row.symbols.find(offset[inside])
        named = found >= 0
        which, renumbered = np.unique(found[named], return_inverse=True)
        symbol[inside[named]] = len(names) + renumbered
        symbol_offset[inside[named]] = (offset[inside[named]] - row.symbols.offsets[found[named]]).astype(np.int64)
        names += [row.symbols.name(at) for at in which.tolist()]
        function_offset[inside] = row.symbols.find_functions(offset[inside])
    return symbol, names, symbol_offset, function_offset


def _gather_code(fragments: Fragments, blocks: Blocks, kept: Array) -> pa.ChunkedArray:
    """The code of the blocks `kept`."""
    n_parts = (blocks.part_first[1:] - blocks.part_first[:-1])[kept]
    parts = blocks.parts[spans(blocks.part_first[:-1][kept], n_parts)]
    code = blocks.code
    fragment = code.fragment[parts]
    size = (code.end_pc[parts] - code.start_pc[parts]).astype(np.int64)
    start = fragments.code_at[fragment] + (code.start_pc[parts] - fragments.app_pc[fragment]).astype(np.int64)
    part_before = np.concatenate([[0], np.cumsum(n_parts)])
    offsets = np.concatenate([[0], np.cumsum(size)])[part_before]
    chunks: list[pa.Array] = []
    first = 0
    while first < len(kept) or not chunks:
        # An array of Arrow holds 2 GiB.
        last = max(int(np.searchsorted(offsets, offsets[first] + _MAX_CHUNK_BYTES, "right")) - 1, first + 1)
        last = min(last, len(kept))
        inside = slice(part_before[first], part_before[last])
        data = gather(fragments.code, start[inside], size[inside])
        chunks.append(binaries(data, offsets[first : last + 1] - offsets[first]))
        first = last
    return pa.chunked_array(chunks, pa.binary())


def _edges(process: RawProcess, edges: Edges, block_id: Array, first: FirstIds) -> pa.Table:
    n = len(edges)
    return _table(
        "edges",
        edge_id=numbers(first.edge + np.arange(n), pa.int64()),
        process_id=numbers(np.full(n, first.process), pa.int32()),
        pid=numbers(np.full(n, process.pid), pa.int32()),
        source_block_id=numbers(block_id[edges.source], pa.int64(), edges.source < 0),
        target_block_id=numbers(block_id[edges.target], pa.int64()),
        kind=words(edges.kind, _EDGE_KINDS),
        callee_block_id=numbers(block_id[edges.callee], pa.int64(), edges.callee < 0),
    )


def _counts(process: RawProcess, edges: Edges, block_id: Array, first: FirstIds) -> Iterator[pa.Table]:
    """Counts by thread; threads that had one number, one after another, are added up."""
    by_tid: dict[int, list[int]] = {}
    for index, thread in enumerate(process.threads[: len(edges.threads)]):
        by_tid.setdefault(_clean_tid(thread.tid), []).append(index)
    waiting: list[tuple[int, Array, Array, Array]] = []
    n_waiting = 0
    for tid, members in sorted(by_tid.items()):
        counts = [edges.threads[index] for index in members]
        block, block_count = _add_all([(one.block, one.block_count) for one in counts])
        edge, edge_count = _add_all([(one.edge, one.edge_count) for one in counts])
        waiting.append((tid, block_id[block], first.edge + edge, np.concatenate([block_count, edge_count])))
        n_waiting += len(block) + len(edge)
        if n_waiting >= _COUNTS_ROWS:
            yield _counts_table(process, waiting, first.process)
            waiting, n_waiting = [], 0
    if waiting:
        yield _counts_table(process, waiting, first.process)


def _counts_table(process: RawProcess, threads: list[tuple[int, Array, Array, Array]], process_id: int) -> pa.Table:
    """For each thread its number, ids of blocks, ids of edges, and the counts of both."""
    n_blocks = np.array([len(block) for _, block, _, _ in threads])
    n_edges = np.array([len(edge) for _, _, edge, _ in threads])
    ids = np.concatenate([part for _, block, edge, _ in threads for part in (block, edge)])
    is_edge = np.repeat(np.tile([False, True], len(threads)), np.stack([n_blocks, n_edges], axis=1).reshape(-1))
    n = len(ids)
    return _table(
        "counts",
        process_id=numbers(np.full(n, process_id), pa.int32()),
        pid=numbers(np.full(n, process.pid), pa.int32()),
        tid=numbers(np.repeat([tid for tid, _, _, _ in threads], n_blocks + n_edges), pa.int32()),
        block_id=numbers(ids, pa.int64(), is_edge),
        edge_id=numbers(ids, pa.int64(), ~is_edge),
        executions=numbers(np.concatenate([count for _, _, _, count in threads]), pa.int64()),
    )


def _add_all(counts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    if len(counts) == 1:
        return counts[0]
    return add_up(np.concatenate([which for which, _ in counts]), np.concatenate([count for _, count in counts]))


def _events(
    process: RawProcess, events: Array, blocks: Blocks, block_id: Array, clock: Clock, process_id: int
) -> pa.Table:
    events = events[np.argsort(events["tsc"], kind="stable")]
    app_pc = events["app_pc"].astype(np.uint64)
    at = np.searchsorted(blocks.app_pc, app_pc, "right") - 1
    block = block_id[at]
    is_known = (at >= 0) & (block >= 0)
    if len(blocks):
        is_known &= blocks.app_pc[at] == app_pc
    kinds = events["event_kind"].tolist()
    known = {int(kind): kind.name.lower() for kind in EventKind}
    return _table(
        "events",
        time_ns=numbers(clock.to_ns(events["tsc"].astype(np.uint64)), pa.int64()),
        process_id=numbers(np.full(len(events), process_id), pa.int32()),
        pid=numbers(np.full(len(events), process.pid), pa.int32()),
        tid=numbers(events["tid"] & 0x7FFFFFFF, pa.int32()),
        kind=words(np.arange(len(events)), [known.get(kind, f"kind_{kind}") for kind in kinds]),
        block_id=numbers(block, pa.int64(), ~is_known),
        details=texts([json.dumps(_details(kind, row)) for kind, row in zip(kinds, events, strict=True)]),
    )


def _details(kind: int, row: np.void) -> dict[str, Any]:
    a, b, c, app_pc = int(row["a"]), int(row["b"]), int(row["c"]), int(row["app_pc"])
    has_place = app_pc != 0 or kind in (EventKind.SIGNAL, EventKind.FAULT)
    details: dict[str, Any] = {"app_pc": hex(app_pc)} if has_place else {}
    if kind in (EventKind.SIGNAL, EventKind.FAULT):
        details |= {"signal": a, "code": b - (1 << 64) if b >> 63 else b}
        if kind == EventKind.FAULT:
            details["address"] = hex(c)
    elif kind == EventKind.FORK:
        details |= {"child_pid": a, "is_followed": b == 1}
    elif kind == EventKind.EXECVE:
        details["is_followed"] = a == 1
    elif kind == EventKind.EXECVE_FAILED:
        details["errno"] = a
    elif kind == EventKind.RELEASED:
        details["reason"] = ReleaseReason(a).name.lower() if a in set(ReleaseReason) else a
    elif kind == EventKind.EXIT_GROUP:
        details["status"] = a
    elif kind == EventKind.THREAD_START:
        details |= {"parent_tid": a, "slot": b}
    elif kind == EventKind.THREAD_END:
        details["end"] = EndKind(a).name.lower() if a in set(EndKind) else a
    elif kind == EventKind.RECORDING_CHANGED:
        details |= {"was_recorded": a == 1, "is_recorded": b == 1}
    else:
        details |= {"a": hex(a), "b": hex(b), "c": hex(c)}
    return details
