"""The table of tags of a process (mode region).

Runs in the controller, after the target ended. Knows the columns of the store and the blocks; what the words of the
runtime mean is `tags`'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.dataclass import replace
from clew.protocol._generated import NO_INDEX, REGION_BLOCKS, REGION_WINDOW_BYTES
from clew.protocol.words import TAG_WORDS
from clew.recording.assembly.blocks.blocks import NO_BLOCK, Blocks, CutBlocks
from clew.recording.assembly.clock import Clock
from clew.recording.assembly.flow.flow import ProcessFlow
from clew.recording.assembly.records.records import Fragments
from clew.recording.assembly.region.busy import count_untold
from clew.recording.assembly.region.tag_chunks import TagChunks
from clew.recording.assembly.region.tags import NOT_THERE, TagDecoder, Tags
from clew.recording.raw.process import Counters, RawProcess, RawThread
from clew.store.columns import numbers, words
from clew.store.schema import SCHEMAS

__all__ = ["iter_tag_tables", "without_window"]

Array = npt.NDArray[Any]


def without_window(thread: RawThread) -> RawThread:
    """A thread without what its tags take of its counters."""
    counters = thread.counters
    is_counter = counters.index >= REGION_WINDOW_BYTES // 8
    return replace(thread, counters=Counters(counters.index[is_counter], counters.value[is_counter]))


def iter_tag_tables(
    process: RawProcess,
    fragments: Fragments,
    flow: ProcessFlow,
    cut: CutBlocks,
    block_id: Array,
    process_id: int,
) -> Iterator[pa.Table]:
    """The tags of all threads. `block_id` are the ids of the blocks, and NO_BLOCK at the end."""
    clock = Clock(process)
    block_of, start_pc = _find_blocks(fragments, cut)
    places = _Places(cut.blocks, block_of, block_id)
    for tid, indices in _group_by_number(process.threads).items():
        n_before = 0
        for index in indices:
            n_tags = n_before
            for tags in _iter_tags(process.threads[index], start_pc, fragments, flow, index):
                n_tags = n_before + int(tags.number[-1]) + 1
                yield _table(tags, n_before, process, process_id, tid, clock, places)
            n_before = n_tags


def _group_by_number(threads: Sequence[RawThread]) -> dict[int, list[int]]:
    """By number the threads that had it, one after another: their tags are one sequence."""
    groups: dict[int, list[int]] = {}
    for index, thread in enumerate(threads):
        groups.setdefault(thread.tid & 0x7FFFFFFF, []).append(index)
    for indices in groups.values():
        # Which slot was looked at first says nothing of that.
        indices.sort(key=lambda index: threads[index].start_tsc)
    return groups


def _iter_tags(
    thread: RawThread, start_pc: Array, fragments: Fragments, flow: ProcessFlow, index: int
) -> Iterator[Tags]:
    """The tags of thread `index`, some at a time; behind those that it told what it did not come to tell."""
    if thread.tag_chunks is None:
        return
    window = thread.counters.at(np.arange(REGION_WINDOW_BYTES // 8)).astype("<u8").tobytes()
    decoder = TagDecoder(start_pc)
    yield from _iter_told(thread.tag_chunks, window, decoder)
    if decoder.busy:
        told = _iter_told(thread.tag_chunks, window, TagDecoder(start_pc))
        untold = count_untold(decoder.busy, decoder.n_tags, told, start_pc, fragments, flow, index)
        if len(untold):
            yield untold


def _iter_told(chunks: TagChunks, window: bytes, decoder: TagDecoder) -> Iterator[Tags]:
    """The tags that a thread told, by `decoder`, some at a time."""
    is_end = False
    for piece in chunks.iter_pieces(window):
        yield from decoder.take(piece.words, piece.numbers)
        is_end = piece.is_end
    yield from decoder.finish(is_end=is_end)


def _find_blocks(fragments: Fragments, cut: CutBlocks) -> tuple[Array, Array]:
    """By number of a block as tags have it: the basic block that it begins with (NO_BLOCK: none), and its address.

    Code that the program may write is cut behind what writes memory: what goes on there begins with no block.
    """
    numbered = np.flatnonzero((fragments.region_block != NO_INDEX) & ~fragments.is_excluded)
    number = fragments.region_block[numbered]
    sound = number < REGION_BLOCKS
    numbered, number = numbered[sound], number[sound]
    n = int(number.max()) + 1 if len(number) else 0
    block_of, start_pc = np.full(n + 1, NO_BLOCK), np.zeros(n, np.uint64)
    start_pc[number] = fragments.app_pc[numbered]
    blocks, first = cut.blocks, cut.code.first
    has_code = first[numbered + 1] > first[numbered]
    found = cut.piece_block[first[numbered[has_code]]]
    ran = (found >= 0) & (blocks.app_pc[found] == fragments.app_pc[numbered[has_code]])
    block_of[number[has_code][ran]] = found[ran]
    return block_of, start_pc


class _Places:
    """Ids of blocks by number and by address."""

    def __init__(self, blocks: Blocks, block_of: Array, block_id: Array) -> None:
        self._blocks, self._block_of, self._block_id = blocks, block_of, block_id

    def of_number(self, number: Array) -> Array:
        """Ids of the blocks with these numbers; NO_BLOCK where there is none."""
        n = len(self._block_of) - 1
        found: Array = self._block_id[self._block_of[np.where((number >= 0) & (number < n), number, n)]]
        return found

    def of_address(self, pc: Array) -> Array:
        """Ids of the blocks that begin at these addresses, of several versions the last; NO_BLOCK where none does."""
        wanted = pc.astype(np.uint64)
        at = np.searchsorted(self._blocks.app_pc, wanted, "right") - 1
        is_there = (pc >= 0) & (at >= 0)
        is_there[is_there] = self._blocks.app_pc[at[is_there]] == wanted[is_there]
        found: Array = self._block_id[np.where(is_there, at, len(self._block_id) - 1)]
        return found


def _table(
    tags: Tags, n_before: int, process: RawProcess, process_id: int, tid: int, clock: Clock, places: _Places
) -> pa.Table:
    n = len(tags)
    block, target = places.of_number(tags.block), places.of_number(tags.target)
    target = np.where(tags.target_pc >= 0, places.of_address(tags.target_pc), target)
    is_timed = tags.tsc != NOT_THERE
    columns: dict[str, pa.Array] = {
        "process_id": numbers(np.full(n, process_id), pa.int32()),
        "pid": numbers(np.full(n, process.pid), pa.int32()),
        "tid": numbers(np.full(n, tid), pa.int32()),
        "tag": numbers(n_before + tags.number, pa.int64()),
        "kind": words(tags.kind, TAG_WORDS),
        "block_id": numbers(block, pa.int64(), block < 0),
        "target_block_id": numbers(target, pa.int64(), target < 0),
        "executions": numbers(tags.executions, pa.int64(), tags.executions == NOT_THERE),
        "value": numbers(tags.value, pa.int64(), tags.value == NOT_THERE),
        "time_ns": numbers(clock.to_ns(np.where(is_timed, tags.tsc, 0).astype(np.uint64)), pa.int64(), ~is_timed),
    }
    schema = SCHEMAS["tags"]
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
