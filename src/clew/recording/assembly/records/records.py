"""Raw records of the runtime, parsed into arrays.

Runs in the controller, after the target ended. Knows the layout of records and nothing of blocks, images or tables.

Records come from the target and are untrusted: what contradicts itself is left out and counted, and nothing that
follows can be made to read outside an array by a field.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import (
    CONTINUATION_PAYLOAD_BYTES,
    DYNAMIC_EDGE_RECORD,
    EVENT_RECORD,
    FRAGMENT_RECORD,
    IMAGE_RECORD,
    INVALIDATE_RECORD,
    LINK_RECORD,
    MAX_FRAGMENT_BYTES,
    MAX_FRAGMENT_INSTRUCTIONS,
    MAX_PATH_BYTES,
    NO_INDEX,
    RECORD_BYTES,
    UNMAP_RECORD,
    EdgeKind,
    ExitKind,
    FragmentFlag,
    RecordKind,
)
from clew.recording.assembly.arrays.keys import VSYSCALL_END, VSYSCALL_START, spans
from clew.recording.assembly.arrays.rows import Rows
from clew.recording.assembly.arrays.tallies import narrow
from clew.recording.assembly.records.instruction_starts import InstructionStarts

__all__ = [
    "Fragments",
    "ImageMapping",
    "ParsedRecords",
    "count_misses",
    "count_ways",
    "parse_fragment_heads",
    "parse_records",
]

_ADDRESS_LIMIT = 1 << 57
"""No code of the application is as high: user space ends at 2^47, or at 2^56 with five levels of page tables."""

_ROWS_AT_ONCE = 1 << 14
"""Continuations of which a copy is in memory at a time, or pieces of code of which something is worked out."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Fragments:
    """Fragments, one element each, in the order of (app_pc, code_version, fragment_id).

    `app_pc`, `end_pc`, `target_pc` and `tsc` are u64, other numbers of 32 bits where they fit. `counter_index` is -1
    where there is none, `region_block`, u32, NO_INDEX; `code_at` is where the code of a fragment starts in `code`, all
    in bytes. `is_left_out`: not to be recorded; `is_excluded`: not counted either. `n_misses` is how many counters
    of misses a fragment has behind its own. Bit `bit_at[i] + k` of `starts` says whether an instruction starts at byte
    k of fragment i.
    """

    fragment_id: Array
    app_pc: Array
    end_pc: Array
    target_pc: Array
    tsc: Array
    code_version: Array
    counter_index: Array
    region_block: Array
    exit_kind: Array
    is_excluded: Array
    is_left_out: Array
    is_limited: Array
    counts_first: Array
    counts_second: Array
    first_is_both: Array
    second_is_both: Array
    is_later_code: Array
    n_misses: Array
    code: Array
    code_at: Array
    starts: InstructionStarts
    bit_at: Array

    def __len__(self) -> int:
        return len(self.app_pc)

    def count_instructions(self, fragment: Array, start_pc: Array, end_pc: Array) -> Array:
        """How many instructions of each fragment (an index) start from `start_pc` up to `end_pc`, i32; shape (n,)."""
        counted = np.empty(len(fragment), np.int32)
        for first in range(0, len(fragment), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            start = self.bit_at[fragment[rows]] + (start_pc[rows] - self.app_pc[fragment[rows]]).astype(np.int64)
            end = start + (end_pc[rows] - start_pc[rows]).astype(np.int64)
            counted[rows] = self.starts.count_before(end) - self.starts.count_before(start)
        return counted

    def starts_instruction(self, fragment: Array, pc: Array) -> Array:
        """Whether an instruction of fragment `fragment` starts at `pc`, which lies inside it; shape (n,), bool."""
        return self.starts.is_set(self.bit_at[fragment] + (pc - self.app_pc[fragment]).astype(np.int64))

    def find_next_instruction(self, fragment: int, pc: int) -> int:
        """Where the instruction at `pc` of fragment `fragment` (an index) ends."""
        first, end_pc = int(self.app_pc[fragment]), int(self.end_pc[fragment])
        further = np.flatnonzero(self.starts.is_set(int(self.bit_at[fragment]) - first + np.arange(pc + 1, end_pc)))
        return pc + 1 + int(further[0]) if len(further) else end_pc


@dataclass(frozen=True)
class ImageMapping:
    """The program mapped executable memory: addresses from `start` up to `end`, at time stamp `tsc`."""

    start: int
    end: int
    file_offset: int
    device: int
    inode: int
    protection: int
    path: str
    tsc: int


@dataclass(frozen=True)
class ParsedRecords:
    """What the records of a process say. Tables of numpy are structured arrays of the dtypes of the protocol."""

    fragments: Fragments
    dynamic_edges: Array
    links: Array
    mappings: list[ImageMapping]
    unmaps: Array
    events: Array
    invalidates: Array
    damaged_records: int


def parse_records(records: npt.NDArray[np.uint8], n_counters: int) -> ParsedRecords:
    """Parse `records`, shape (n, 64); each thread's in the order written, a record and its continuations together.

    `n_counters` is how many counters the process used; one that lies beyond is taken as never incremented.
    """
    records = np.ascontiguousarray(records, dtype=np.uint8).reshape(-1, RECORD_BYTES)
    stream = _RecordStream(records)
    fragments, damaged = _parse_fragments(stream, n_counters)
    damaged += stream.damaged_continuations

    edges = stream.select(RecordKind.DYNAMIC_EDGE, DYNAMIC_EDGE_RECORD)
    sound = (edges["edge_kind"] <= max(EdgeKind)) & is_address(edges["target_pc"]) & is_address(edges["source_pc"])
    links = stream.select(RecordKind.LINK, LINK_RECORD)
    sound_links = (links["edge_kind"] <= max(EdgeKind)) & is_address(links["target_pc"])
    damaged += int(np.count_nonzero(~sound) + np.count_nonzero(~sound_links))

    mappings, damaged_mappings = _parse_mappings(stream)
    unmaps = stream.select(RecordKind.UNMAP, UNMAP_RECORD)
    events = stream.select(RecordKind.EVENT, EVENT_RECORD)
    invalidates = stream.select(RecordKind.INVALIDATE, INVALIDATE_RECORD)
    unknown = int(np.count_nonzero(stream.kind > max(RecordKind)))
    return ParsedRecords(
        fragments=fragments,
        dynamic_edges=edges[sound],
        links=links[sound_links],
        mappings=mappings,
        unmaps=unmaps,
        events=events,
        invalidates=invalidates,
        damaged_records=damaged + damaged_mappings + unknown,
    )


def is_address(pc: Array) -> Array:
    """Whether the application can go to `pc`: user space, or the old vsyscall page far above it."""
    there: Array = (pc < _ADDRESS_LIMIT) | ((pc >= VSYSCALL_START) & (pc < VSYSCALL_END))
    return there


class _Columns:
    """Some of the records, `rows` of a table, of which one column at a time is read.

    Nothing but that is copied: records are most of the memory at this time.
    """

    def __init__(self, rows: Array, at: Array) -> None:
        self._rows, self._at = rows, at

    def __getitem__(self, name: str) -> Array:
        column: Array = self._rows[name][self._at]
        return column

    def take(self, chosen: Array) -> _Columns:
        """Those that `chosen` names."""
        return _Columns(self._rows, self._at[chosen])


class _RecordStream:
    """Records with their continuations checked. What continues a record and is sound stands right behind it."""

    def __init__(self, records: npt.NDArray[np.uint8]) -> None:
        self.records = records
        # The kind; then how many continue it or, in a continuation, which it is.
        head = records[:, :4].copy().view("<u2")
        self.kind = head[:, 0]
        self.announced = head[:, 1]
        is_continuation = self.kind == RecordKind.CONTINUATION
        position = np.arange(len(records), dtype=np.int32)
        owner = np.maximum.accumulate(np.where(is_continuation, np.int32(-1), position)) if len(records) else position
        follows = is_continuation & (owner >= 0) & (self.announced == position - owner - 1)
        follows[follows] = self.announced[follows] < self.announced[owner[follows]]
        self.damaged_continuations = int(np.count_nonzero(is_continuation) - np.count_nonzero(follows))
        # As many as have been announced, each in its place: all of them are there.
        self.received = narrow(np.bincount(owner[follows], minlength=len(records)))

    def find(self, kind: RecordKind) -> Array:
        """The positions of the records of one kind."""
        return np.flatnonzero(self.kind == kind)

    def select(self, kind: RecordKind, dtype: np.dtype[np.void]) -> Array:
        """The records of one kind as a structured array."""
        return self.records[self.find(kind)].reshape(-1).view(dtype)

    def gather_payload(self, at: Array, begin: Array, length: Array) -> Array:
        """Of what continues each of the records at `at` so many bytes, from byte `begin` of it on; joined, u8.

        They have received as much.
        """
        gathered = np.empty(int(length.sum()), np.uint8)
        n_rows = -(-(begin + length) // CONTINUATION_PAYLOAD_BYTES)
        ends, row_ends = np.cumsum(length), np.cumsum(n_rows)
        first = done = n_done = 0
        while first < len(at):
            last = max(int(np.searchsorted(row_ends, n_done + _ROWS_AT_ONCE, "right")), first + 1)
            inside = slice(first, last)
            payload = self.records[spans(at[inside] + 1, n_rows[inside]), 4:].reshape(-1)
            start = (row_ends[inside] - n_rows[inside] - n_done) * CONTINUATION_PAYLOAD_BYTES + begin[inside]
            end = int(ends[last - 1])
            gathered[done:end] = payload[spans(start, length[inside])]
            first, done, n_done = last, end, int(row_ends[last - 1])
        return gathered


def _parse_fragments(stream: _RecordStream, n_counters: int) -> tuple[Fragments, int]:
    at = stream.find(RecordKind.FRAGMENT)
    rows = _Columns(stream.records.reshape(-1).view(FRAGMENT_RECORD), at)
    size = rows["size_bytes"].astype(np.int64)
    bitmap_bytes = (size + 7) // 8
    needed = -(-(size + bitmap_bytes) // CONTINUATION_PAYLOAD_BYTES)
    n_instructions, fragment_id = rows["n_instructions"], rows["fragment_id"]
    sound = (size > 0) & (size <= MAX_FRAGMENT_BYTES) & (rows["exit_kind"] <= max(ExitKind))
    sound &= (n_instructions > 0) & (n_instructions <= MAX_FRAGMENT_INSTRUCTIONS)
    sound &= (stream.announced[at] == needed) & (stream.received[at] == needed)
    sound &= (rows["app_pc"] < _ADDRESS_LIMIT) & is_address(rows["target_pc"])
    sound &= fragment_id != NO_INDEX
    numbers = fragment_id.astype(np.int64)
    sound &= Rows(numbers).find_first(numbers) == np.arange(len(at))

    kept = np.flatnonzero(sound)
    size, bitmap_bytes, at, rows = size[kept], bitmap_bytes[kept], at[kept], rows.take(kept)
    starts = InstructionStarts(stream.gather_payload(at, size, bitmap_bytes))
    bit_at = (np.cumsum(bitmap_bytes) - bitmap_bytes) * 8
    counted = starts.count_before(bit_at + size) - starts.count_before(bit_at)
    consistent = (counted == n_instructions[kept]) & starts.is_set(bit_at)
    order = np.lexsort((fragment_id[kept], rows["code_version"], rows["app_pc"]))
    order = order[consistent[order]]

    sizes = size[order]
    fragments = _make_fragments(
        rows.take(order),
        sizes,
        n_counters,
        # What comes with the code is most of the payload.
        code=stream.gather_payload(at[order], np.zeros_like(sizes), sizes),
        starts=starts,
        bit_at=bit_at[order],
    )
    return fragments, len(fragment_id) - len(order)


def parse_fragment_heads(rows: Array) -> Fragments:
    """Fragments out of their records, of dtype FRAGMENT_RECORD, without what continues these: no code is in them.

    Neither is any of it checked; they stay in their order, and counters may be beyond all that there are.
    """
    rows = rows[rows["exit_kind"] <= max(ExitKind)]
    none, sizes = np.zeros(0, np.uint8), np.zeros(len(rows), np.int64)
    return _make_fragments(
        rows, sizes, 1 << 40, code=none, starts=InstructionStarts(none), bit_at=np.zeros(len(rows), np.int64)
    )


def _make_fragments(
    chosen: _Columns | Array, sizes: Array, n_counters: int, *, code: Array, starts: InstructionStarts, bit_at: Array
) -> Fragments:
    exit_kind = chosen["exit_kind"]
    n_ways, n_misses = count_ways(exit_kind), count_misses(chosen)
    counter_index = chosen["counter_index"].astype(np.int64)
    counter_index[counter_index + n_ways + n_misses > n_counters] = -1
    flags = chosen["flags"]
    app_pc = chosen["app_pc"]
    return Fragments(
        fragment_id=narrow(chosen["fragment_id"]),
        app_pc=app_pc,
        end_pc=app_pc + sizes.astype(np.uint64),
        target_pc=chosen["target_pc"],
        tsc=chosen["tsc"],
        code_version=narrow(chosen["code_version"]),
        counter_index=narrow(counter_index),
        region_block=chosen["region_block"],
        exit_kind=exit_kind,
        is_excluded=(flags & (FragmentFlag.EXCLUDED | FragmentFlag.COUNTED)) == FragmentFlag.EXCLUDED,
        is_left_out=(flags & FragmentFlag.EXCLUDED) != 0,
        is_limited=(flags & FragmentFlag.LIMIT) != 0,
        counts_first=(flags & FragmentFlag.FIRST_EDGE) != 0,
        counts_second=(flags & FragmentFlag.SECOND_EDGE) != 0,
        first_is_both=((flags & FragmentFlag.FIRST_COUNTS_BOTH) != 0) & (n_ways == 2),
        second_is_both=((flags & FragmentFlag.SECOND_COUNTS_BOTH) != 0) & (n_ways == 2),
        is_later_code=(flags & FragmentFlag.LATER_CODE) != 0,
        n_misses=n_misses.astype(np.int8),
        code=code,
        code_at=narrow(np.cumsum(sizes) - sizes),
        starts=starts,
        bit_at=narrow(bit_at),
    )


def count_ways(exit_kind: Array) -> Array:
    """How many ways out fragments have that are counted by numbers of their own, i64."""
    return np.where(exit_kind == ExitKind.CONDITIONAL, 2, 1)


def count_misses(rows: Array | _Columns) -> Array:
    """How many counters of misses fragments have, i64: as many as ways out, or none."""
    n_ways = count_ways(rows["exit_kind"])
    return np.where(rows["n_misses"] == n_ways, n_ways, 0)


def _parse_mappings(stream: _RecordStream) -> tuple[list[ImageMapping], int]:
    at, rows = stream.find(RecordKind.IMAGE), stream.select(RecordKind.IMAGE, IMAGE_RECORD)
    mappings: list[ImageMapping] = []
    damaged = 0
    for row, position in zip(rows, at.tolist(), strict=True):
        path_bytes, start, size = int(row["path_bytes"]), int(row["start"]), int(row["size_bytes"])
        needed = -(-path_bytes // CONTINUATION_PAYLOAD_BYTES)
        is_whole = int(stream.announced[position]) == int(stream.received[position]) == needed
        if path_bytes > MAX_PATH_BYTES or not is_whole or not size or start + size > _ADDRESS_LIMIT:
            damaged += 1
            continue
        payload = stream.records[position + 1 : position + 1 + needed, 4:].reshape(-1)
        path = payload[:path_bytes].tobytes().split(b"\0")[0]
        mappings.append(
            ImageMapping(
                start=start,
                end=start + size,
                file_offset=int(row["file_offset"]),
                device=int(row["device"]),
                inode=int(row["inode"]),
                protection=int(row["protection"]),
                path=path.decode("utf-8", "surrogateescape"),
                tsc=int(row["tsc"]),
            )
        )
    return mappings, damaged
