"""Tables of a trace out of blocks, edges and images of the processes of a bundle.

Runs in the controller, after the target ended. Knows the columns of the store; how blocks were found is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.binary.symbols import SymbolTable
from clew.dataclass import dataclass, replace
from clew.protocol._generated import EdgeKind, EndKind, EventKind, ExitKind, ReleaseReason
from clew.recording.assembly.blocks import NO_BLOCK, Blocks
from clew.recording.assembly.blocks_keys import gather, spans
from clew.recording.assembly.bundles import Bundle
from clew.recording.assembly.edges import Edges
from clew.recording.assembly.images import ImageMap
from clew.recording.assembly.records import Fragments
from clew.recording.assembly.rows import add_up
from clew.recording.raw import RawProcess, RawThread
from clew.store.columns import binaries, booleans, numbers, optional_numbers, repeated_texts, text_lists, texts, words
from clew.store.schema import SCHEMAS

__all__ = ["Clock", "FirstIds", "build_tables", "name_blocks", "number_blocks"]

Array = npt.NDArray[Any]

_EXIT_KINDS = [kind.name.lower() for kind in sorted(ExitKind)]
_EDGE_KINDS = [kind.name.lower() for kind in sorted(EdgeKind)]
_MAX_CHUNK_BYTES = 1 << 30
_COUNTS_ROWS = 1 << 18
_EVENTS_ROWS = 1 << 14
_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd number without a pattern: multiplying by it spreads what is in the low bits."""


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
        self.start_ns = process.start_ns
        self.duration_ns = max(process.end_ns - process.start_ns, 0)

    def to_ns(self, tsc: Array) -> Array:
        """Nanoseconds, i64, of time stamps."""
        elapsed = (
            np.where(tsc > self.start_tsc, tsc - np.uint64(self.start_tsc), 0).astype(np.float64) * self.ns_per_tick
        )
        return self.start_ns + np.minimum(elapsed, self.duration_ns).astype(np.int64)

    def one_to_ns(self, tsc: int) -> int:
        """Nanoseconds of one time stamp."""
        return int(self.to_ns(np.array([tsc], np.uint64))[0])


class _Members:
    """The processes of `bundle`, the first of which has id `first_process`, by their place in it (`owner`)."""

    def __init__(self, bundle: Bundle, first_process: int) -> None:
        self.bundle, self.processes, self._first = bundle, bundle.processes, first_process
        self._pids = np.array([process.pid for process in bundle.processes], np.int64)
        clocks = [Clock(process) for process in bundle.processes]
        self._start_tsc = np.array([clock.start_tsc for clock in clocks], np.uint64)
        self._ns_per_tick = np.array([clock.ns_per_tick for clock in clocks])
        self._start_ns = np.array([clock.start_ns for clock in clocks], np.int64)
        self._duration_ns = np.array([clock.duration_ns for clock in clocks], np.int64)

    def columns(self, owner: Array) -> dict[str, pa.Array]:
        """The columns that say of which process rows are."""
        return {
            "process_id": numbers(self._first + owner, pa.int32()),
            "pid": numbers(self._pids[owner], pa.int32()),
        }

    def to_ns(self, tsc: Array, owner: Array) -> Array:
        """As `Clock.to_ns` has it, each time stamp by the clock of its process."""
        start = self._start_tsc[owner]
        elapsed = np.where(tsc > start, tsc - start, 0).astype(np.float64) * self._ns_per_tick[owner]
        time_ns: Array = self._start_ns[owner] + np.minimum(elapsed, self._duration_ns[owner]).astype(np.int64)
        return time_ns


def build_tables(
    bundle: Bundle,
    fragments: Fragments,
    events: Array,
    images: ImageMap,
    blocks: Blocks,
    edges: Edges,
    first: FirstIds,
) -> Iterator[tuple[str, pa.Table]]:
    """Tables with their names; some in several parts. `first` is moved past the ids used, at the end.

    Rows of each table are process by process. Images are at the addresses that the bundle has them at.
    """
    members = _Members(bundle, first.process)
    block_owner = bundle.owner_of(blocks.app_pc)
    if len(bundle.processes) > 1:
        edges = _sort_by_process(edges, block_owner)
    block_id, kept = number_blocks(blocks, edges, first.block)
    yield "processes", _processes(bundle.processes, first.process)
    yield "threads", _threads(members, blocks, edges)
    yield "images", _images(members, images, first)
    yield "blocks", _blocks(members, block_owner, fragments, blocks, kept, images, first)
    yield "edges", _edges(members, block_owner, edges, block_id, first)
    for part in _counts(members, edges, block_id, first):
        yield "counts", part
    for part in _events(members, events, blocks, block_id):
        yield "events", part
    first.block += len(kept)
    first.edge += len(edges)
    first.image += len(images.images)
    first.process += len(bundle.processes)


def _sort_by_process(edges: Edges, block_owner: Array) -> Edges:
    order = np.argsort(block_owner[edges.target], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return replace(
        edges,
        source=edges.source[order],
        target=edges.target[order],
        kind=edges.kind[order],
        callee=edges.callee[order],
        threads=[replace(thread, edge=rank[thread.edge]) for thread in edges.threads],
    )


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


def _processes(processes: Sequence[RawProcess], first_id: int) -> pa.Table:
    return _table(
        "processes",
        process_id=numbers(first_id + np.arange(len(processes)), pa.int32()),
        pid=numbers([process.pid for process in processes], pa.int32()),
        parent_pid=numbers([process.parent_pid for process in processes], pa.int32()),
        executable=texts([clean_text(process.executable) for process in processes]),
        command=text_lists([[clean_text(word) for word in process.command] for process in processes]),
        start_ns=numbers([_clean_number(process.start_ns) for process in processes], pa.int64()),
        end_ns=numbers([_clean_number(process.end_ns) for process in processes], pa.int64()),
        exit_code=optional_numbers([process.exit_code for process in processes], pa.int32()),
        signal=optional_numbers([process.signal for process in processes], pa.int32()),
    )


def _threads(members: _Members, blocks: Blocks, edges: Edges) -> pa.Table:
    owned = [(process, thread) for process in members.processes for thread in process.threads]
    threads, n, owner = [thread for _, thread in owned], len(owned), members.bundle.thread_owner
    executions, instructions = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for index, counts in enumerate(edges.threads):
        executions[index] = counts.block_count.sum()
        instructions[index] = (counts.block_count * blocks.n_instructions[counts.block]).sum()
    ends = [_end_of_thread(process, thread.end_kind) for process, thread in owned]
    start_tsc, end_tsc = (np.array(stamps, np.uint64) for stamps in _stamps(threads))
    process_end_ns = np.array([_clean_number(process.end_ns) for process, _ in owned], np.int64)
    return _table(
        "threads",
        **members.columns(owner),
        tid=numbers([_clean_tid(thread.tid) for thread in threads], pa.int32()),
        parent_tid=numbers([_clean_tid(thread.parent_tid) for thread in threads], pa.int32()),
        name=texts([clean_text(thread.name) for thread in threads]),
        start_ns=numbers(members.to_ns(start_tsc, owner), pa.int64()),
        end_ns=numbers(np.where(end_tsc > 0, members.to_ns(end_tsc, owner), process_end_ns), pa.int64()),
        end=words(np.arange(n), ends),
        instructions=numbers(instructions, pa.int64()),
        block_executions=numbers(executions, pa.int64()),
        lost_records=numbers([_clean_number(thread.lost_records) for thread in threads], pa.int64()),
    )


def _stamps(threads: Sequence[RawThread]) -> tuple[list[int], list[int]]:
    return [thread.start_tsc for thread in threads], [thread.end_tsc for thread in threads]


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


def _images(members: _Members, images: ImageMap, first: FirstIds) -> pa.Table:
    rows, n = images.images, len(images.images)
    owner = np.array([row.owner for row in rows], np.int64)
    loaded_tsc = np.array([row.loaded_tsc for row in rows], np.uint64)
    unloaded_tsc = np.array([row.unloaded_tsc or 0 for row in rows], np.uint64)
    start_ns = np.array([process.start_ns for process in members.processes], np.int64)
    is_loaded = np.array([row.unloaded_tsc is None for row in rows], bool)
    return _table(
        "images",
        image_id=numbers(first.image + np.arange(n), pa.int32()),
        **members.columns(owner),
        path=texts([clean_text(row.path) for row in rows]),
        build_id=texts([row.build_id for row in rows]),
        base=numbers(np.array([row.base for row in rows], np.uint64), pa.uint64()),
        size_bytes=numbers(np.array([row.size_bytes for row in rows], np.uint64), pa.uint64()),
        loaded_ns=numbers(np.where(loaded_tsc > 0, members.to_ns(loaded_tsc, owner), start_ns[owner]), pa.int64()),
        unloaded_ns=numbers(np.where(is_loaded, 0, members.to_ns(unloaded_tsc, owner)), pa.int64(), is_loaded),
    )


def _blocks(
    members: _Members,
    block_owner: Array,
    fragments: Fragments,
    blocks: Blocks,
    kept: Array,
    images: ImageMap,
    first: FirstIds,
) -> pa.Table:
    app_pc, owner, n = members.bundle.own_pc(blocks.app_pc[kept]), block_owner[kept], len(kept)
    tsc = blocks.first_tsc[kept]
    image = images.locate(blocks.app_pc[kept], tsc)
    base = np.array([row.base for row in images.images] + [0], np.uint64)
    offset = app_pc - base[image]
    has_image = (image >= 0) & (app_pc >= base[image])
    symbol, names, symbol_offset, function_offset = name_blocks(image, offset, images)
    return _table(
        "blocks",
        block_id=numbers(first.block + np.arange(n), pa.int64()),
        **members.columns(owner),
        image_id=numbers(first.image + image, pa.int32(), ~has_image),
        offset=numbers(offset, pa.uint64(), ~has_image),
        app_pc=numbers(app_pc, pa.uint64()),
        code_version=numbers(blocks.code_version[kept], pa.uint32()),
        size_bytes=numbers(blocks.end_pc[kept] - blocks.app_pc[kept], pa.int32()),
        n_instructions=numbers(blocks.n_instructions[kept], pa.int32()),
        bytes=_gather_code(fragments, blocks, kept),
        symbol=words(symbol, names, symbol < 0),
        symbol_offset=numbers(symbol_offset, pa.int64(), symbol < 0),
        function_offset=numbers(function_offset, pa.uint64(), function_offset < 0),
        exit_kind=words(blocks.exit_kind[kept], _EXIT_KINDS),
        is_recorded=booleans(blocks.is_recorded[kept]),
        first_ns=numbers(members.to_ns(np.where(tsc == np.iinfo(np.uint64).max, 0, tsc), owner), pa.int64()),
    )


def name_blocks(image: Array, offset: Array, images: ImageMap) -> tuple[Array, list[str], Array, Array]:
    """For each block: its symbol (index into the names, or -1), how far into it, and where its function starts."""
    symbol = np.full(len(image), -1)
    symbol_offset = np.zeros(len(image), np.int64)
    function_offset = np.full(len(image), -1, np.int64)
    names: list[str] = []
    for symbols, inside in _iter_by_symbols(image, images):
        found = symbols.find(offset[inside])
        named = found >= 0
        which, renumbered = np.unique(found[named], return_inverse=True)
        symbol[inside[named]] = len(names) + renumbered
        symbol_offset[inside[named]] = (offset[inside[named]] - symbols.offsets[found[named]]).astype(np.int64)
        names += [symbols.name(at) for at in which.tolist()]
        function_offset[inside] = symbols.find_functions(offset[inside])
    return symbol, names, symbol_offset, function_offset


def _iter_by_symbols(image: Array, images: ImageMap) -> Iterator[tuple[SymbolTable, Array]]:
    """The tables of symbols, and the blocks (indices) that are in images with each; several may be of one file."""
    tables: dict[int, SymbolTable] = {}
    # The last one stands for no image.
    table_of_image = np.full(len(images.images) + 1, -1)
    for index, row in enumerate(images.images):
        if row.symbols is not None:
            tables[id(row.symbols)] = row.symbols
            table_of_image[index] = list(tables).index(id(row.symbols))
    table = table_of_image[image]
    for index, symbols in enumerate(tables.values()):
        inside = np.flatnonzero(table == index)
        if len(inside):
            yield symbols, inside


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


def _edges(members: _Members, block_owner: Array, edges: Edges, block_id: Array, first: FirstIds) -> pa.Table:
    return _table(
        "edges",
        edge_id=numbers(first.edge + np.arange(len(edges)), pa.int64()),
        **members.columns(block_owner[edges.target]),
        source_block_id=numbers(block_id[edges.source], pa.int64(), edges.source < 0),
        target_block_id=numbers(block_id[edges.target], pa.int64()),
        kind=words(edges.kind, _EDGE_KINDS),
        callee_block_id=numbers(block_id[edges.callee], pa.int64(), edges.callee < 0),
    )


@dataclass(frozen=True)
class _CountsOf:
    """Counts of the threads with one number: ids of blocks and edges, and how often each."""

    owner: int
    tid: int
    block_id: Array
    edge_id: Array
    executions: Array


def _counts(members: _Members, edges: Edges, block_id: Array, first: FirstIds) -> Iterator[pa.Table]:
    """Counts by thread; threads that had one number, one after another, are added up."""
    by_tid: dict[tuple[int, int], list[int]] = {}
    threads = [thread for process in members.processes for thread in process.threads]
    for index, owner in enumerate(members.bundle.thread_owner[: len(edges.threads)].tolist()):
        by_tid.setdefault((owner, _clean_tid(threads[index].tid)), []).append(index)
    waiting: list[_CountsOf] = []
    n_waiting = 0
    for (owner, tid), of_tid in sorted(by_tid.items()):
        counts = [edges.threads[index] for index in of_tid]
        block, block_count = _add_all([(one.block, one.block_count) for one in counts])
        edge, edge_count = _add_all([(one.edge, one.edge_count) for one in counts])
        executions = np.concatenate([block_count, edge_count])
        waiting.append(_CountsOf(owner, tid, block_id[block], first.edge + edge, executions))
        n_waiting += len(executions)
        if n_waiting >= _COUNTS_ROWS:
            yield _counts_table(members, waiting)
            waiting, n_waiting = [], 0
    if waiting:
        yield _counts_table(members, waiting)


def _counts_table(members: _Members, counts: Sequence[_CountsOf]) -> pa.Table:
    n_blocks = np.array([len(one.block_id) for one in counts])
    n_edges = np.array([len(one.edge_id) for one in counts])
    ids = np.concatenate([part for one in counts for part in (one.block_id, one.edge_id)])
    is_edge = np.repeat(np.tile([False, True], len(counts)), np.stack([n_blocks, n_edges], axis=1).reshape(-1))
    return _table(
        "counts",
        **members.columns(np.repeat([one.owner for one in counts], n_blocks + n_edges)),
        tid=numbers(np.repeat([one.tid for one in counts], n_blocks + n_edges), pa.int32()),
        block_id=numbers(ids, pa.int64(), is_edge),
        edge_id=numbers(ids, pa.int64(), ~is_edge),
        executions=numbers(np.concatenate([one.executions for one in counts]), pa.int64()),
    )


def _add_all(counts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    if len(counts) == 1:
        return counts[0]
    return add_up(np.concatenate([which for which, _ in counts]), np.concatenate([count for _, count in counts]))


def _events(members: _Members, events: Array, blocks: Blocks, block_id: Array) -> Iterator[pa.Table]:
    """Events by process and time, some at a time: a program may have taken millions of signals."""
    chunks = members.processes[0].event_chunks
    if chunks is not None:
        for part in chunks.iter_with(events):
            yield _events_table(members, part, np.zeros(len(part), np.int64), blocks, block_id)
        return
    owner = members.bundle.owner_of(events["app_pc"])
    order = np.lexsort((events["tsc"], owner))
    for first in range(0, max(len(order), 1), _EVENTS_ROWS):
        chosen = order[first : first + _EVENTS_ROWS]
        yield _events_table(members, events[chosen], owner[chosen], blocks, block_id)


def _events_table(members: _Members, events: Array, owner: Array, blocks: Blocks, block_id: Array) -> pa.Table:
    app_pc = events["app_pc"].astype(np.uint64)
    at = np.searchsorted(blocks.app_pc, app_pc, "right") - 1
    block = block_id[at]
    is_known = (at >= 0) & (block >= 0)
    if len(blocks):
        is_known &= blocks.app_pc[at] == app_pc
    own_pc = members.bundle.own_pc(app_pc)
    # A signal that comes over and over comes with the same words.
    told, alike = _find_alike(events["event_kind"], events["a"], events["b"], events["c"], own_pc)
    kinds = events["event_kind"][told].tolist()
    known = {int(kind): kind.name.lower() for kind in EventKind}
    details = [_details(*row) for row in zip(kinds, events[told], own_pc[told].tolist(), strict=True)]
    return _table(
        "events",
        time_ns=numbers(members.to_ns(events["tsc"].astype(np.uint64), owner), pa.int64()),
        **members.columns(owner),
        tid=numbers(events["tid"] & 0x7FFFFFFF, pa.int32()),
        kind=words(alike, [known.get(kind, f"kind_{kind}") for kind in kinds]),
        block_id=numbers(block, pa.int64(), ~is_known),
        details=repeated_texts([json.dumps(one) for one in details], alike),
    )


def _find_alike(*columns: Array) -> tuple[Array, Array]:
    """Some of the rows of `columns`, all of which are different; and of each row which of these it is like."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * _MIXER
        mixed ^= mixed >> np.uint64(32)
    order = np.argsort(mixed, kind="stable")
    sorted_mixed = mixed[order]
    is_first = np.append(True, sorted_mixed[1:] != sorted_mixed[:-1])[: len(order)]
    for column in columns:
        # Different ones may be mixed alike: those that don't follow one like them stand for themselves.
        in_order = column[order]
        is_first[1:] |= in_order[1:] != in_order[:-1]
    alike = np.empty(len(order), np.int64)
    alike[order] = np.cumsum(is_first) - 1
    return order[is_first], alike


def _details(kind: int, row: np.void, app_pc: int) -> dict[str, Any]:
    a, b, c = int(row["a"]), int(row["b"]), int(row["c"])
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
