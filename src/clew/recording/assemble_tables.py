"""Tables of a trace out of blocks, edges and images of a process.

Runs in the controller, after the target ended. Knows the columns of the store; how blocks were found is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.protocol._generated import EdgeKind, EndKind, EventKind, ExitKind, ReleaseReason
from clew.recording.assemble_edges import Edges
from clew.recording.assemble_images import ImageMap
from clew.recording.assemble_records import Fragments
from clew.recording.blocks import NO_BLOCK, Blocks
from clew.recording.blocks_keys import spans
from clew.recording.raw import RawProcess
from clew.store.schema import SCHEMAS

__all__ = ["Clock", "FirstIds", "build_tables"]

Array = npt.NDArray[Any]


@dataclass
class FirstIds:
    """The first id that is still free, of each kind; ids are unique in a trace."""

    block: int = 0
    edge: int = 0
    image: int = 0


class Clock:
    """Time stamps of a process turned into CLOCK_REALTIME nanoseconds, kept within the life of the process."""

    def __init__(self, process: RawProcess) -> None:
        status = process.status
        self._tsc = int(status["start_tsc"])
        ticks, nanoseconds = int(status["last_tsc"]) - self._tsc, int(status["last_ns"]) - int(status["start_ns"])
        self._rate = nanoseconds / ticks if ticks > 0 and nanoseconds > 0 else 0.0
        self._start_ns, self._end_ns = process.start_ns, max(process.end_ns, process.start_ns)

    def to_ns(self, tsc: Array) -> Array:
        """Nanoseconds, i64, of time stamps."""
        elapsed = np.where(tsc > self._tsc, tsc - np.uint64(self._tsc), 0).astype(np.float64) * self._rate
        return self._start_ns + np.minimum(elapsed, self._end_ns - self._start_ns).astype(np.int64)

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
) -> dict[str, pa.Table]:
    """Tables by name. `first` is moved past the ids used."""
    clock = Clock(process)
    block_id, kept = _number_blocks(blocks, edges, first.block)
    tables = {
        "processes": _processes(process),
        "threads": _threads(process, blocks, edges, clock),
        "images": _images(process, images, clock, first.image),
        "blocks": _blocks(process, fragments, blocks, kept, images, clock, first),
        "edges": _edges(process, edges, block_id, first.edge),
        "counts": _counts(process, edges, block_id, first.edge),
        "events": _events(process, events, blocks, block_id, clock),
    }
    first.block += len(kept)
    first.edge += len(edges)
    first.image += len(images.images)
    return tables


def clean_text(text: str) -> str:
    """`text` as valid Unicode: bytes that are none stay visible as escapes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _number_blocks(blocks: Blocks, edges: Edges, first_id: int) -> tuple[Array, Array]:
    """Ids of blocks by index (-1: left out), and the blocks that stay: those that ran, and those that edges touch."""
    stays = np.zeros(len(blocks), bool)
    for ends in (edges.source, edges.target, edges.callee):
        stays[ends[ends >= 0]] = True
    if edges.threads:
        for thread in edges.threads:
            stays[thread.block] = True
    else:
        stays[blocks.is_recorded & (blocks.n_instructions > 0)] = True
    kept = np.flatnonzero(stays)
    block_id = np.full(len(blocks) + 1, NO_BLOCK)
    block_id[kept] = first_id + np.arange(len(kept))
    return block_id, kept


def _processes(process: RawProcess) -> pa.Table:
    row = {
        "pid": process.pid,
        "parent_pid": process.parent_pid,
        "executable": clean_text(process.executable),
        "command": [clean_text(word) for word in process.command],
        "start_ns": process.start_ns,
        "end_ns": process.end_ns,
        "exit_code": process.exit_code,
        "signal": process.signal,
    }
    return pa.Table.from_pylist([row], SCHEMAS["processes"])


def _threads(process: RawProcess, blocks: Blocks, edges: Edges, clock: Clock) -> pa.Table:
    rows = []
    for index, thread in enumerate(process.threads):
        instructions = executions = 0
        if edges.threads:
            counts = edges.threads[index]
            executions = int(counts.block_count.sum())
            instructions = int((counts.block_count * blocks.n_instructions[counts.block]).sum())
        rows.append(
            {
                "pid": process.pid,
                "tid": thread.tid,
                "parent_tid": thread.parent_tid,
                "name": clean_text(thread.name),
                "start_ns": clock.one_to_ns(thread.start_tsc),
                "end_ns": clock.one_to_ns(thread.end_tsc) if thread.end_tsc else process.end_ns,
                "end": _end_of_thread(process, thread.end_kind),
                "instructions": instructions,
                "block_executions": executions,
                "lost_records": min(thread.lost_records, (1 << 63) - 1),
            }
        )
    return pa.Table.from_pylist(rows, SCHEMAS["threads"])


def _end_of_thread(process: RawProcess, end_kind: int) -> str:
    if end_kind in (EndKind.EXIT, EndKind.EXIT_GROUP):
        return "exit"
    if end_kind in (EndKind.RELEASED, EndKind.EXECVE):
        return "detached"
    if process.signal is not None or process.exit_code is not None:
        return "killed"
    return "lost"


def _images(process: RawProcess, images: ImageMap, clock: Clock, first_id: int) -> pa.Table:
    rows = [
        {
            "image_id": first_id + index,
            "pid": process.pid,
            "path": clean_text(image.path),
            "build_id": image.build_id,
            "base": image.base,
            "size_bytes": image.size_bytes,
            "loaded_ns": clock.one_to_ns(image.loaded_tsc) if image.loaded_tsc else process.start_ns,
            "unloaded_ns": None if image.unloaded_tsc is None else clock.one_to_ns(image.unloaded_tsc),
        }
        for index, image in enumerate(images.images)
    ]
    return pa.Table.from_pylist(rows, SCHEMAS["images"])


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
    symbol, names, symbol_offset, function_offset = _name_blocks(image, offset, images)
    code, code_offsets = _gather_code(fragments, blocks, kept)
    columns = {
        "block_id": pa.array(first.block + np.arange(n)),
        "pid": pa.array(np.full(n, process.pid, np.int32)),
        "image_id": pa.array((first.image + image).astype(np.int32), mask=~has_image),
        "offset": pa.array(offset, mask=~has_image),
        "app_pc": pa.array(app_pc),
        "code_version": pa.array(blocks.code_version[kept].astype(np.uint32)),
        "size_bytes": pa.array((blocks.end_pc[kept] - app_pc).astype(np.int32)),
        "n_instructions": pa.array(blocks.n_instructions[kept].astype(np.int32)),
        "bytes": pa.Array.from_buffers(pa.binary(), n, [None, pa.py_buffer(code_offsets), pa.py_buffer(code)]),
        "symbol": pa.DictionaryArray.from_arrays(
            pa.array(symbol.astype(np.int32), mask=symbol < 0), pa.array(names, pa.string())
        ),
        "symbol_offset": pa.array(symbol_offset, mask=symbol < 0),
        "function_offset": pa.array(function_offset.astype(np.uint64), mask=function_offset < 0),
        "exit_kind": _words(blocks.exit_kind[kept], ExitKind),
        "is_recorded": pa.array(blocks.is_recorded[kept]),
        "first_ns": pa.array(clock.to_ns(np.where(tsc == np.iinfo(np.uint64).max, 0, tsc))),
    }
    return pa.table(columns, SCHEMAS["blocks"])


def _name_blocks(image: Array, offset: Array, images: ImageMap) -> tuple[Array, list[str], Array, Array]:
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


def _gather_code(fragments: Fragments, blocks: Blocks, kept: Array) -> tuple[Array, Array]:
    """The code of the blocks `kept`, end to end, and where each starts in it (i32, one more than blocks)."""
    n_parts = (blocks.part_first[1:] - blocks.part_first[:-1])[kept]
    parts = blocks.parts[spans(blocks.part_first[:-1][kept], n_parts)]
    code = blocks.code
    fragment = code.fragment[parts]
    size = (code.end_pc[parts] - code.start_pc[parts]).astype(np.int64)
    start = fragments.code_at[fragment] + (code.start_pc[parts] - fragments.app_pc[fragment]).astype(np.int64)
    size_before = np.concatenate([[0], np.cumsum(size)])
    offsets = size_before[np.concatenate([[0], np.cumsum(n_parts)])]
    return fragments.code[spans(start, size)], offsets.astype(np.int32)


def _edges(process: RawProcess, edges: Edges, block_id: Array, first_id: int) -> pa.Table:
    n = len(edges)
    columns = {
        "edge_id": pa.array(first_id + np.arange(n)),
        "pid": pa.array(np.full(n, process.pid, np.int32)),
        "source_block_id": pa.array(block_id[edges.source], mask=edges.source < 0),
        "target_block_id": pa.array(block_id[edges.target]),
        "kind": _words(edges.kind, EdgeKind),
        "callee_block_id": pa.array(block_id[edges.callee], mask=edges.callee < 0),
    }
    return pa.table(columns, SCHEMAS["edges"])


def _counts(process: RawProcess, edges: Edges, block_id: Array, first_edge_id: int) -> pa.Table:
    """Counts by thread; threads that had one number, one after another, are added up."""
    by_tid: dict[int, list[int]] = {}
    for index, thread in enumerate(process.threads[: len(edges.threads)]):
        by_tid.setdefault(thread.tid, []).append(index)
    parts = []
    for tid, members in sorted(by_tid.items()):
        blocks = _add_up([(edges.threads[index].block, edges.threads[index].block_count) for index in members])
        taken = _add_up([(edges.threads[index].edge, edges.threads[index].edge_count) for index in members])
        n = len(blocks[0]) + len(taken[0])
        is_edge = np.arange(n) >= len(blocks[0])
        ids = np.concatenate([block_id[blocks[0]], first_edge_id + taken[0]])
        columns = {
            "pid": pa.array(np.full(n, process.pid, np.int32)),
            "tid": pa.array(np.full(n, tid, np.int32)),
            "block_id": pa.array(ids, mask=is_edge),
            "edge_id": pa.array(ids, mask=~is_edge),
            "executions": pa.array(np.concatenate([blocks[1], taken[1]])),
        }
        parts.append(pa.table(columns, SCHEMAS["counts"]))
    return pa.concat_tables(parts) if parts else SCHEMAS["counts"].empty_table()


def _add_up(counts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    if len(counts) == 1:
        return counts[0]
    index, where = np.unique(np.concatenate([which for which, _ in counts]), return_inverse=True)
    total = np.zeros(len(index), np.int64)
    np.add.at(total, where, np.concatenate([count for _, count in counts]))
    return index, total


def _events(process: RawProcess, events: Array, blocks: Blocks, block_id: Array, clock: Clock) -> pa.Table:
    events = events[np.argsort(events["tsc"], kind="stable")]
    time_ns = clock.to_ns(events["tsc"].astype(np.uint64)).tolist()
    rows = []
    for row, when in zip(events, time_ns, strict=True):
        kind, app_pc = int(row["event_kind"]), int(row["app_pc"])
        name = EventKind(kind).name.lower() if kind in set(EventKind) else f"kind_{kind}"
        there = [number for number in block_id[blocks.at(app_pc)].tolist() if number >= 0] if app_pc else []
        rows.append(
            {
                "time_ns": when,
                "pid": process.pid,
                "tid": int(row["tid"]) & 0x7FFFFFFF,
                "kind": name,
                "block_id": there[-1] if there else None,
                "details": json.dumps(_details(kind, row)),
            }
        )
    return pa.Table.from_pylist(rows, SCHEMAS["events"])


def _details(kind: int, row: np.void) -> dict[str, Any]:
    a, b, c, app_pc = int(row["a"]), int(row["b"]), int(row["c"]), int(row["app_pc"])
    details: dict[str, Any] = {"app_pc": hex(app_pc)} if app_pc else {}
    if kind in (EventKind.SIGNAL, EventKind.FAULT):
        details |= {"signal": a, "code": b - (1 << 64) if b >> 63 else b}
        if kind == EventKind.FAULT:
            details["address"] = hex(c)
    elif kind == EventKind.FORK:
        details["child_pid"] = a
    elif kind == EventKind.RELEASED:
        details["reason"] = ReleaseReason(a).name.lower() if a in set(ReleaseReason) else a
    elif kind == EventKind.EXIT_GROUP:
        details["status"] = a
    elif kind == EventKind.THREAD_START:
        details |= {"parent_tid": a, "slot": b}
    elif kind == EventKind.THREAD_END:
        details["end"] = EndKind(a).name.lower() if a in set(EndKind) else a
    else:
        details |= {"a": hex(a), "b": hex(b), "c": hex(c)}
    return details


def _words(values: Array, words: type[EdgeKind] | type[ExitKind]) -> pa.DictionaryArray:
    names = [word.name.lower() for word in sorted(words)]
    return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), pa.array(names, pa.string()))
