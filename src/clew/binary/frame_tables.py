"""Tables by which stacks are unwound in a target, made of what files say of their functions' frames.

Runs in the controller. Rules are made by the library `pathcodec` (pathcodec/src/call_frames.rs), of a large file in
some milliseconds; here they are sorted, and told where to look first. `frame_rules.py` reads the same, of one place.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset
from clew.binary.architectures.known import architecture_of_machine
from clew.binary.elf import PF_X, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_LOAD, ElfFile
from clew.binary.path_codec import read_frame_rows
from clew.protocol._generated import UNWIND_TABLE_BYTES

__all__ = ["BUCKET_LOG2", "MAX_SECTION_BYTES", "frame_rows", "pack_rows"]

Array = npt.NDArray[Any]

MAX_SECTION_BYTES: Final = 1 << 27
"""Of a larger section .eh_frame there are no tables."""
BUCKET_LOG2: Final = 8
"""So many bytes of code, by their binary logarithm, have their first rule told."""
_SHT_NOBITS: Final = 8
_RULE_BITS: Final = np.uint64(32)
_NOTHING, _SIGNAL = 0, 5
"""Rules of pathcodec/src/frame_rules.rs."""
_MAX_SEARCHED_BYTES: Final = 4 << 20
_HEAD: Final = struct.Struct("<IIII")


def frame_rows(elf: ElfFile) -> Array | None:
    """The rules of a file's code, sorted, u64: how far each place is behind `elf.lowest_address`, in the upper half,
    and the rule from there on, up to the next place. None: it has more than is read. Raises BinaryError."""
    found = _find_section(elf)
    rows = np.zeros(0, np.uint64)
    if found is not None:
        offset, size_bytes, address = found
        if size_bytes > MAX_SECTION_BYTES:
            return None
        rows = read_frame_rows(elf.read(offset, size_bytes), address, elf.lowest_address)
    rows = _sorted(rows)
    signals = [one for one in _find_signal_returns(elf) if _rule_at(rows, one[0]) == _NOTHING]
    if signals:
        own = [(start << 32 | _SIGNAL, end << 32 | _NOTHING) for start, end in signals]
        rows = _sorted(np.concatenate([rows, np.array(own, np.uint64).reshape(-1)]))
    return rows


def pack_rows(rows: Array) -> bytes:
    """As the runtime reads them: UnwindTable, where each piece of code has its first row, and the rows."""
    if not len(rows):
        return b""
    offsets = (rows >> _RULE_BITS).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    n_buckets = (last - first >> BUCKET_LOG2) + 1
    edges = first + (np.arange(n_buckets + 1, dtype=np.int64) << BUCKET_LOG2)
    buckets = np.searchsorted(offsets, edges).astype("<u4")
    head = _HEAD.pack(first, BUCKET_LOG2, len(rows), n_buckets)
    assert len(head) == UNWIND_TABLE_BYTES
    gap = bytes(-len(buckets) % 2 * 4)
    return head + buckets.tobytes() + gap + rows.astype("<u8").tobytes()


def _sorted(rows: Array) -> Array:
    """Where a function begins behind another one, its rule is the one."""
    if not len(rows):
        return rows
    rows.sort(kind="stable")
    places = rows >> _RULE_BITS
    last = rows[np.append(places[1:] != places[:-1], True)]
    rules = last & np.uint64(0xFFFFFFFF)
    others: Array = last[np.append(True, rules[1:] != rules[:-1])]
    return others


def _rule_at(rows: Array, offset: int) -> int:
    index = int(np.searchsorted(rows >> _RULE_BITS, np.uint64(offset), side="right")) - 1
    return int(rows[index]) & 0xFFFFFFFF if index >= 0 else _NOTHING


def _find_section(elf: ElfFile) -> tuple[FileOffset, int, int] | None:
    """Where in the file .eh_frame is, how many bytes it has, and its link address; None: there is none."""
    section = elf.find_section(".eh_frame")
    if section is not None and section.kind != _SHT_NOBITS:
        return section.file_offset, section.size_bytes, section.address
    header = next((one for one in elf.segments if one.kind == PT_GNU_EH_FRAME), None)
    data = b"" if header is None else elf.read(FileOffset(header.file_offset), 8)
    # Version 1; a pointer, 4 signed bytes from here.
    if header is None or len(data) < 8 or data[:2] != b"\x01\x1b":
        return None
    address = header.address + 4 + int(struct.unpack_from("<i", data, 4)[0])
    for one in elf.segments:
        if one.kind == PT_LOAD and one.address <= address < one.address + one.file_bytes:
            behind = address - one.address
            return FileOffset(one.file_offset + behind), one.file_bytes - behind, address
    return None


def _find_signal_returns(elf: ElfFile) -> list[tuple[int, int]]:
    """How far behind the lowest address what handlers of signals return to begins, and ends."""
    found: list[tuple[int, int]] = []
    architecture = architecture_of_machine(elf.machine)
    code_bytes = sum(one.file_bytes for one in elf.segments if one.kind == PT_LOAD and one.flags & PF_X)
    if code_bytes > _MAX_SEARCHED_BYTES and any(one.kind == PT_DYNAMIC for one in elf.segments):
        # It has that from a C library.
        return found
    patterns = () if architecture is None else architecture.signal_returns
    for one in elf.segments:
        if one.kind != PT_LOAD or not one.flags & PF_X:
            continue
        code = elf.read(one.file_offset, one.file_bytes)
        for pattern in patterns:
            at = code.find(pattern)
            while at >= 0 and len(found) < 16:
                start = one.address + at - elf.lowest_address
                found.append((start, start + len(pattern)))
                at = code.find(pattern, at + 1)
    return [(start, end) for start, end in found if start >= 0 and end < 1 << 32]
