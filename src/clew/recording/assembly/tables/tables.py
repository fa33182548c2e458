"""Tables of a trace out of blocks, edges and images of the processes of a bundle.

Runs in the controller, after the target ended. Knows the columns of the store; how blocks were found is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.binary.symbols import SymbolTable
from clew.dataclass import dataclass, replace
from clew.protocol._generated import EndKind
from clew.protocol.words import EDGE_WORDS, EXIT_WORDS, ThreadEndWord
from clew.recording.assembly.blocks.block_code import BlockCode
from clew.recording.assembly.blocks.blocks import NO_BLOCK, Blocks
from clew.recording.assembly.edges.edges import Edges, ThreadsCounts
from clew.recording.assembly.images.images import ImageMap
from clew.recording.assembly.records.bundles import Bundle
from clew.recording.assembly.tables.counts_rows import clean_tid, counts_tables
from clew.recording.assembly.tables.event_rows import event_tables
from clew.recording.assembly.tables.members import Members, make_table
from clew.recording.raw.process import RawProcess, RawThread
from clew.store.columns import binaries, booleans, numbers, optional_numbers, text_lists, texts, words

__all__ = ["FirstIds", "build_tables", "name_blocks", "number_blocks"]

Array = npt.NDArray[Any]

_ROWS_AT_ONCE = 1 << 17
"""Of blocks or edges that are in memory as rows of a table."""
_BYTES_AT_ONCE = 1 << 30
"""Of their code: an array of Arrow holds 2 GiB."""


@dataclass
class FirstIds:
    """The first id that is still free, of each kind; ids are unique in a trace."""

    block: int = 0
    edge: int = 0
    image: int = 0
    process: int = 0


def build_tables(
    bundle: Bundle,
    code: BlockCode,
    events: Array,
    images: ImageMap,
    blocks: Blocks,
    edges: Edges,
    first: FirstIds,
) -> Iterator[tuple[str, pa.Table]]:
    """Tables with their names; some in several parts. `first` is moved past the ids used, at the end.

    Rows of each table are process by process. Images are at the addresses that the bundle has them at.
    """
    members = Members(bundle, first.process)
    block_owner = bundle.owner_of(blocks.app_pc)
    if len(bundle.processes) > 1:
        edges = _sort_by_process(edges, block_owner)
    block_id, kept = number_blocks(blocks, edges, first.block)
    yield "processes", _processes(bundle.processes, first.process)
    yield "threads", _threads(members, blocks, edges)
    yield "images", _images(members, images, first)
    for rows in _iter_parts(blocks.end_pc[kept] - blocks.app_pc[kept]):
        yield "blocks", _blocks(members, block_owner, code, blocks, kept[rows], images, first, first.block + rows.start)
    for rows in _iter_parts(np.zeros(len(edges), np.int64)):
        yield "edges", _edges(members, block_owner, edges, rows, block_id, first.edge + rows.start)
    for part in counts_tables(members, edges, block_id, first.edge):
        yield "counts", part
    for part in event_tables(members, events, blocks, block_id):
        yield "events", part
    first.block += len(kept)
    first.edge += len(edges)
    first.image += len(images.images)
    first.process += len(bundle.processes)


def _iter_parts(size_bytes: Array) -> Iterator[slice]:
    """Rows of so many bytes, one after another, as many as are a table at a time; none of them if there are none."""
    ends = np.cumsum(size_bytes)
    first = 0
    while first < len(ends) or not first:
        before = ends[first - 1] if first else 0
        enough = max(int(np.searchsorted(ends, before + _BYTES_AT_ONCE)), first + 1)
        last = min(enough, first + _ROWS_AT_ONCE, max(len(ends), 1))
        yield slice(first, last)
        first = last


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
        threads=ThreadsCounts([replace(batch, edges=batch.edges.renumber(rank)) for batch in edges.threads.batches]),
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
        for batch in edges.threads.batches:
            stays[batch.blocks.number] = True
        stays[edges.passed] = True
    else:
        stays[blocks.is_recorded & (blocks.n_instructions > 0)] = True
    kept = np.flatnonzero(stays)
    block_id = np.full(len(blocks) + 1, NO_BLOCK)
    block_id[kept] = first_id + np.arange(len(kept))
    return block_id, kept


def _processes(processes: Sequence[RawProcess], first_id: int) -> pa.Table:
    return make_table(
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
        architecture=texts([clean_text(process.architecture) for process in processes]),
    )


def _threads(members: Members, blocks: Blocks, edges: Edges) -> pa.Table:
    owned = [(process, thread) for process in members.processes for thread in process.threads]
    threads, n, owner = [thread for _, thread in owned], len(owned), members.bundle.thread_owner
    executions, instructions = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for first, batch in zip(edges.threads.firsts, edges.threads.batches, strict=False):
        counted = batch.blocks.open()
        np.add.at(executions, first + counted.thread, counted.count)
        np.add.at(instructions, first + counted.thread, counted.count * blocks.n_instructions[counted.number])
    ends = [_end_of_thread(process, thread.end_kind) for process, thread in owned]
    start_tsc, end_tsc = (np.array(stamps, np.uint64) for stamps in _stamps(threads))
    process_end_ns = np.array([_clean_number(process.end_ns) for process, _ in owned], np.int64)
    return make_table(
        "threads",
        **members.columns(owner),
        tid=numbers([clean_tid(thread.tid) for thread in threads], pa.int32()),
        parent_tid=numbers([clean_tid(thread.parent_tid) for thread in threads], pa.int32()),
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


def _end_of_thread(process: RawProcess, end_kind: int) -> ThreadEndWord:
    if end_kind in (EndKind.EXIT, EndKind.EXIT_GROUP):
        return "exit"
    if end_kind in (EndKind.RELEASED, EndKind.EXECVE):
        return "detached"
    is_over = process.signal is not None or process.exit_code is not None or process.went_on_unfollowed
    if is_over and not process.is_lost:
        return "killed"
    return "lost"


def _images(members: Members, images: ImageMap, first: FirstIds) -> pa.Table:
    rows, n = images.images, len(images.images)
    owner = np.array([row.owner for row in rows], np.int64)
    loaded_tsc = np.array([row.loaded_tsc for row in rows], np.uint64)
    unloaded_tsc = np.array([row.unloaded_tsc or 0 for row in rows], np.uint64)
    start_ns = np.array([process.start_ns for process in members.processes], np.int64)
    is_loaded = np.array([row.unloaded_tsc is None for row in rows], bool)
    return make_table(
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
    members: Members,
    block_owner: Array,
    code: BlockCode,
    blocks: Blocks,
    kept: Array,
    images: ImageMap,
    first: FirstIds,
    first_id: int,
) -> pa.Table:
    app_pc, owner, n = members.bundle.own_pc(blocks.app_pc[kept]), block_owner[kept], len(kept)
    tsc = blocks.first_tsc[kept]
    image = images.locate(blocks.app_pc[kept], tsc)
    base = np.array([row.base for row in images.images] + [0], np.uint64)
    offset = app_pc - base[image]
    has_image = (image >= 0) & (app_pc >= base[image])
    symbol, names, symbol_offset, function_offset = name_blocks(image, offset, images)
    return make_table(
        "blocks",
        block_id=numbers(first_id + np.arange(n), pa.int64()),
        **members.columns(owner),
        image_id=numbers(first.image + image, pa.int32(), ~has_image),
        offset=numbers(offset, pa.uint64(), ~has_image),
        app_pc=numbers(app_pc, pa.uint64()),
        code_version=numbers(blocks.code_version[kept], pa.uint32()),
        size_bytes=numbers(blocks.end_pc[kept] - blocks.app_pc[kept], pa.int32()),
        n_instructions=numbers(blocks.n_instructions[kept], pa.int32()),
        bytes=binaries(*code.gather(kept)),
        symbol=words(symbol, names, symbol < 0),
        symbol_offset=numbers(symbol_offset, pa.int64(), symbol < 0),
        function_offset=numbers(function_offset, pa.uint64(), function_offset < 0),
        exit_kind=words(blocks.exit_kind[kept], EXIT_WORDS),
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


def _edges(members: Members, block_owner: Array, edges: Edges, rows: slice, block_id: Array, first_id: int) -> pa.Table:
    source, target, callee = edges.source[rows], edges.target[rows], edges.callee[rows]
    return make_table(
        "edges",
        edge_id=numbers(first_id + np.arange(len(source)), pa.int64()),
        **members.columns(block_owner[target]),
        source_block_id=numbers(block_id[source], pa.int64(), source < 0),
        target_block_id=numbers(block_id[target], pa.int64()),
        kind=words(edges.kind[rows], EDGE_WORDS),
        callee_block_id=numbers(block_id[callee], pa.int64(), callee < 0),
    )
