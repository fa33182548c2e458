"""Where functions start, by what unwinders read: it stays in stripped files.

Runs in the controller. Programs have a sorted search table, .eh_frame_hdr; those that are linked statically may have
none, and then the records of .eh_frame itself are gone through. Of them only the addresses are read, of no more than
so many, and whatever makes no sense ends it: what was found until then is good.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset
from clew.binary.elf import PF_X, PT_GNU_EH_FRAME, PT_LOAD, ElfFile

__all__ = ["read_function_starts"]

Array = npt.NDArray[Any]

MAX_BYTES: Final = 1 << 28
MAX_RECORDS: Final = 1 << 20
_MAX_AUGMENTATION_BYTES: Final = 16
_MAX_LEB128_BYTES: Final = 10
_SHT_NOBITS: Final = 8
_LENGTH_IS_64_BITS: Final = 0xFFFFFFFF
_U64_MASK: Final = (1 << 64) - 1

_ABSOLUTE, _RELATIVE = 0x00, 0x10
"""What an encoded pointer counts from (DW_EH_PE_absptr, DW_EH_PE_pcrel)."""
_POINTERS: Final = {
    0x00: struct.Struct("<Q"),
    0x02: struct.Struct("<H"),
    0x03: struct.Struct("<I"),
    0x04: struct.Struct("<Q"),
    0x0A: struct.Struct("<h"),
    0x0B: struct.Struct("<i"),
    0x0C: struct.Struct("<q"),
}
"""How an encoded pointer is stored, by the lower half of its encoding (DW_EH_PE_udata4, ...)."""


def read_function_starts(elf: ElfFile) -> Array:
    """Link addresses at which functions start, u64, sorted; empty if the file does not say."""
    starts = _read_search_table(elf)
    return starts if len(starts) else _read_records(elf)


def _read_search_table(elf: ElfFile) -> Array:
    none = np.zeros(0, np.uint64)
    header = next((segment for segment in elf.segments if segment.kind == PT_GNU_EH_FRAME), None)
    if header is None:
        return none
    data = elf.read(FileOffset(header.file_offset), min(header.file_bytes, MAX_BYTES))
    # Version 1; a pointer, 4 signed bytes from here; a count, 4 bytes; pairs of 4 signed bytes from the header.
    if len(data) < 12 or data[:4] != b"\x01\x1b\x03\x3b":
        return none
    count = min(struct.unpack_from("<I", data, 8)[0], (len(data) - 12) // 8)
    pairs = np.frombuffer(data, "<i4", count * 2, 12).reshape(-1, 2)
    starts = pairs[:, 0].astype(np.int64) + np.int64(header.address)
    return np.sort(starts[starts > 0], kind="stable").astype(np.uint64)


def _read_records(elf: ElfFile) -> Array:
    section = elf.find_section(".eh_frame")
    if section is None or section.kind == _SHT_NOBITS:
        return np.zeros(0, np.uint64)
    data = elf.read(section.file_offset, min(section.size_bytes, MAX_BYTES))
    found = np.array(_find_starts(data, section.address), np.uint64)
    in_code = np.zeros(len(found), bool)
    for segment in elf.segments:
        if segment.kind == PT_LOAD and segment.flags & PF_X:
            in_code |= (found >= segment.address) & (found < segment.address + segment.memory_bytes)
    return np.unique(found[in_code])


def _find_starts(data: bytes, address: int) -> list[int]:
    """The first address of each function that a record describes; `data` is .eh_frame, linked at `address`."""
    starts: list[int] = []
    # Of the entries that functions have in common, by their places: how addresses are stored.
    encodings: dict[int, int | None] = {}
    at = 0
    try:
        for _ in range(MAX_RECORDS):
            entry_at = at
            (length,) = struct.unpack_from("<I", data, at)
            at += 4
            if length == _LENGTH_IS_64_BITS:
                (length,) = struct.unpack_from("<Q", data, at)
                at += 8
            if not 0 < length <= len(data) - at:
                break  # The end, or nonsense.
            # How far back the common entry is; 0: this is one.
            (distance,) = struct.unpack_from("<I", data, at)
            if distance:
                start = _read_pointer(data, at + 4, encodings.get(at - distance), address)
                if start is not None:
                    starts.append(start)
            else:
                encodings[entry_at] = _read_encoding(data, at + 4)
            at += length
    except (struct.error, IndexError):
        pass
    return starts


def _read_encoding(data: bytes, at: int) -> int | None:
    """How the functions' addresses are stored, by the common entry whose version is at `at`; None: not known.

    Raises IndexError where the section ends.
    """
    version = data[at]
    end = data.find(b"\0", at + 1, at + 1 + _MAX_AUGMENTATION_BYTES)
    if version not in (1, 3) or end < 0:
        return None
    augmentation = data[at + 1 : end]
    if not augmentation.startswith(b"z"):
        return _ABSOLUTE if not augmentation else None
    at = _skip_leb128(data, _skip_leb128(data, end + 1))  # the alignments of code and data
    at = at + 1 if version == 1 else _skip_leb128(data, at)  # the return address' register
    at = _skip_leb128(data, at)  # the size of what follows
    for letter in augmentation[1:]:
        match letter:
            case 0x52:  # R: of functions' addresses
                return data[at]
            case 0x4C:  # L: of language-specific data
                at += 1
            case 0x50:  # P: of the personality routine, and that
                pointer = _POINTERS.get(data[at] & 0x0F)
                if pointer is None:
                    return None
                at += 1 + pointer.size
            case 0x53 | 0x42:  # S, B: no more than that they are there
                pass
            case _:
                return None
    return _ABSOLUTE


def _skip_leb128(data: bytes, at: int) -> int:
    """What comes after a number of variable length. Raises IndexError where the section, or all patience, ends."""
    for end in range(at, at + _MAX_LEB128_BYTES):
        if data[end] < 0x80:
            return end + 1
    raise IndexError


def _read_pointer(data: bytes, at: int, encoding: int | None, address: int) -> int | None:
    """The address that is stored at `at`; None if that is none. Raises struct.error where the section ends."""
    if encoding is None or encoding & 0xF0 not in (_ABSOLUTE, _RELATIVE):
        return None
    pointer = _POINTERS.get(encoding & 0x0F)
    if pointer is None:
        return None
    value: int = pointer.unpack_from(data, at)[0]
    if not value:
        return None  # The linker left the function out.
    return (value + (address + at if encoding & _RELATIVE else 0)) & _U64_MASK
