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
    RECORD_BYTES,
    UNMAP_RECORD,
    EdgeKind,
    ExitKind,
    RecordKind,
)
from clew.recording.assembly.blocks_keys import VSYSCALL_END, VSYSCALL_START, gather
from clew.recording.assembly.instruction_starts import InstructionStarts
from clew.recording.assembly.rows import Rows

__all__ = [
    "NO_INDEX",
    "NO_SYMBOL",
    "Fragments",
    "ImageMapping",
    "ParsedRecords",
    "count_misses",
    "count_ways",
    "parse_records",
]

NO_INDEX = 0xFFFFFFFF
"""A counter or fragment that is not there."""

NO_SYMBOL = 0xFFFF
"""The symbol of what has none."""

_ADDRESS_LIMIT = 1 << 57
"""No code of the application is as high: user space ends at 2^47, or at 2^56 with five levels of page tables."""

_FLAG_EXCLUDED, _FLAG_LIMITED, _FLAG_COUNTS_FIRST, _FLAG_COUNTS_SECOND = 1, 2, 4, 8
_FLAG_FIRST_IS_BOTH, _FLAG_SECOND_IS_BOTH, _FLAG_LATER_CODE, _FLAG_COUNTED = 16, 32, 64, 128

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Fragments:
    """Fragments, one element each, in the order of (app_pc, code_version, fragment_id).

    `app_pc`, `end_pc`, `target_pc` and `tsc` are u64; `counter_index` is i64, -1 where there is none;
    `region_block`, i64, is NO_INDEX where there is none; `code_at` is where the code of a fragment starts in `code`,
    all in bytes. `is_left_out`: not to be recorded; `is_excluded`: not counted either. `n_misses` is how many counters
    of misses a fragment has behind its own. Bit `bit_at[i] + k` of `starts` says whether an instruction starts at byte
    k of fragment i.
    """

    fragment_id: Array
    app_pc: Array
    end_pc: Array
    target_pc: Array
    tsc: Array
    tid: Array
    code_version: Array
    counter_index: Array
    region_block: Array
    exit_kind: Array
    n_instructions: Array
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
        """How many instructions of each fragment (an index) start from `start_pc` up to `end_pc`; all shape (n,)."""
        origin = self.bit_at[fragment]
        first = origin + (start_pc - self.app_pc[fragment]).astype(np.int64)
        last = origin + (end_pc - self.app_pc[fragment]).astype(np.int64)
        counted: Array = self.starts.count_before(last) - self.starts.count_before(first)
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
    fragment_rows, fragment_at = stream.select(RecordKind.FRAGMENT, FRAGMENT_RECORD)
    fragments, damaged = _parse_fragments(stream, fragment_rows, fragment_at, n_counters)
    damaged += stream.damaged_continuations

    edges, _ = stream.select(RecordKind.DYNAMIC_EDGE, DYNAMIC_EDGE_RECORD)
    sound = (edges["edge_kind"] <= max(EdgeKind)) & is_address(edges["target_pc"]) & is_address(edges["source_pc"])
    links, _ = stream.select(RecordKind.LINK, LINK_RECORD)
    sound_links = (links["edge_kind"] <= max(EdgeKind)) & is_address(links["target_pc"])
    damaged += int(np.count_nonzero(~sound) + np.count_nonzero(~sound_links))

    mappings, damaged_mappings = _parse_mappings(stream)
    unmaps, _ = stream.select(RecordKind.UNMAP, UNMAP_RECORD)
    events, _ = stream.select(RecordKind.EVENT, EVENT_RECORD)
    invalidates, _ = stream.select(RecordKind.INVALIDATE, INVALIDATE_RECORD)
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


class _RecordStream:
    """Records with their continuations checked and their payload gathered."""

    def __init__(self, records: npt.NDArray[np.uint8]) -> None:
        self.records = records
        head = (
            records[:, :4].copy().view("<u2")
        )  # the kind; then how many continue it or, in a continuation, which it is
        self.kind = head[:, 0]
        self.announced = head[:, 1]
        is_continuation = self.kind == RecordKind.CONTINUATION
        position = np.arange(len(records), dtype=np.int64)
        owner = np.maximum.accumulate(np.where(is_continuation, -1, position)) if len(records) else position
        follows = is_continuation & (owner >= 0) & (self.announced == position - owner - 1)
        follows[follows] = self.announced[follows] < self.announced[owner[follows]]
        self.damaged_continuations = int(np.count_nonzero(is_continuation) - np.count_nonzero(follows))
        self.payload = records[follows, 4:].reshape(-1)
        self.payload_at = (np.cumsum(follows) - follows) * CONTINUATION_PAYLOAD_BYTES
        self.received = np.bincount(owner[follows], minlength=len(records))

    def select(self, kind: RecordKind, dtype: np.dtype[np.void]) -> tuple[Array, Array]:
        """The records of one kind as a structured array, and their positions."""
        at = np.flatnonzero(self.kind == kind)
        return self.records[at].reshape(-1).view(dtype), at


def _parse_fragments(stream: _RecordStream, rows: Array, at: Array, n_counters: int) -> tuple[Fragments, int]:
    size = rows["size_bytes"].astype(np.int64)
    bitmap_bytes = (size + 7) // 8
    needed = -(-(size + bitmap_bytes) // CONTINUATION_PAYLOAD_BYTES)
    sound = (size > 0) & (size <= MAX_FRAGMENT_BYTES) & (rows["exit_kind"] <= max(ExitKind))
    sound &= (rows["n_instructions"] > 0) & (rows["n_instructions"] <= MAX_FRAGMENT_INSTRUCTIONS)
    sound &= (stream.announced[at] == needed) & (stream.received[at] == needed)
    sound &= (rows["app_pc"] < _ADDRESS_LIMIT) & is_address(rows["target_pc"])
    sound &= rows["fragment_id"] != NO_INDEX
    numbers = rows["fragment_id"].astype(np.int64)
    sound &= Rows(numbers).find_first(numbers) == np.arange(len(rows))

    kept = np.flatnonzero(sound)
    size, bitmap_bytes, code_at = size[kept], bitmap_bytes[kept], stream.payload_at[at[kept]]
    starts = InstructionStarts(gather(stream.payload, code_at + size, bitmap_bytes))
    bit_at = (np.cumsum(bitmap_bytes) - bitmap_bytes) * 8
    counted = starts.count_before(bit_at + size) - starts.count_before(bit_at)
    consistent = (counted == rows["n_instructions"][kept]) & starts.is_set(bit_at)
    order = np.lexsort((rows["fragment_id"][kept], rows["code_version"][kept], rows["app_pc"][kept]))
    order = order[consistent[order]]
    chosen = kept[order]

    exit_kind = rows["exit_kind"][chosen]
    n_ways = count_ways(exit_kind)
    counter_index = rows["counter_index"][chosen].astype(np.int64)
    n_misses = count_misses(rows[chosen])
    counter_index[counter_index + n_ways + n_misses > n_counters] = -1
    flags = rows["flags"][chosen]
    app_pc = rows["app_pc"][chosen].astype(np.uint64)
    sizes = size[order]
    fragments = Fragments(
        fragment_id=rows["fragment_id"][chosen].astype(np.int64),
        app_pc=app_pc,
        end_pc=app_pc + sizes.astype(np.uint64),
        target_pc=rows["target_pc"][chosen].astype(np.uint64),
        tsc=rows["tsc"][chosen].astype(np.uint64),
        tid=rows["tid"][chosen].astype(np.int64),
        code_version=rows["code_version"][chosen].astype(np.int64),
        counter_index=counter_index,
        region_block=rows["region_block"][chosen].astype(np.int64),
        exit_kind=exit_kind,
        n_instructions=rows["n_instructions"][chosen].astype(np.int64),
        is_excluded=(flags & (_FLAG_EXCLUDED | _FLAG_COUNTED)) == _FLAG_EXCLUDED,
        is_left_out=(flags & _FLAG_EXCLUDED) != 0,
        is_limited=(flags & _FLAG_LIMITED) != 0,
        counts_first=(flags & _FLAG_COUNTS_FIRST) != 0,
        counts_second=(flags & _FLAG_COUNTS_SECOND) != 0,
        first_is_both=((flags & _FLAG_FIRST_IS_BOTH) != 0) & (n_ways == 2),
        second_is_both=((flags & _FLAG_SECOND_IS_BOTH) != 0) & (n_ways == 2),
        is_later_code=(flags & _FLAG_LATER_CODE) != 0,
        n_misses=n_misses,
        # What comes with the code is most of the payload.
        code=gather(stream.payload, code_at[order], sizes),
        code_at=np.cumsum(sizes) - sizes,
        starts=starts,
        bit_at=bit_at[order],
    )
    return fragments, len(rows) - len(chosen)


def count_ways(exit_kind: Array) -> Array:
    """How many ways out fragments have that are counted by numbers of their own, i64."""
    return np.where(exit_kind == ExitKind.CONDITIONAL, 2, 1)


def count_misses(rows: Array) -> Array:
    """How many counters of misses fragments have, i64: as many as ways out, or none."""
    n_ways = count_ways(rows["exit_kind"])
    return np.where(rows["n_misses"] == n_ways, n_ways, 0)


def _parse_mappings(stream: _RecordStream) -> tuple[list[ImageMapping], int]:
    rows, at = stream.select(RecordKind.IMAGE, IMAGE_RECORD)
    mappings: list[ImageMapping] = []
    damaged = 0
    for row, position in zip(rows, at.tolist(), strict=True):
        path_bytes, start, size = int(row["path_bytes"]), int(row["start"]), int(row["size_bytes"])
        needed = -(-path_bytes // CONTINUATION_PAYLOAD_BYTES)
        received = int(stream.received[position])
        if path_bytes > MAX_PATH_BYTES or received != needed or not size or start + size > _ADDRESS_LIMIT:
            damaged += 1
            continue
        begin = int(stream.payload_at[position])
        path = stream.payload[begin : begin + path_bytes].tobytes().split(b"\0")[0]
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
