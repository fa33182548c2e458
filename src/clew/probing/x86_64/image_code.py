"""All code of a file, by functions, and what is known to lead into each of them.

Where functions are is told by symbols and by the unwind table; what no function is known of is left out. Addresses are
those of the file loaded at some base. A file may have been made to hurt: functions that it says lie over one another
are cut where the next one begins, so each byte is decoded once.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset
from clew.binary.architectures.known import architecture_of_machine
from clew.binary.elf import ET_EXEC, PF_X, PT_LOAD, SHF_EXECINSTR, ElfFile, Section
from clew.binary.symbol_rows import read_rows
from clew.binary.symbols import read_symbols
from clew.dataclass import dataclass
from clew.probing.x86_64.function_code import FunctionCode, ReadMemory, decode_function
from clew.probing.x86_64.functions import Branches, Functions, Parts, find_leads
from clew.probing.x86_64.parts import find_parts
from clew.probing.x86_64.plans import Displaced

__all__ = ["ImageCode", "read_image_code"]

Array = npt.NDArray[Any]

MAX_CODE_BYTES: Final = 1 << 28
MAX_RELATIVE_WORDS: Final = 1 << 20
_MAX_TABLE_BYTES: Final = 1 << 27
_RELOCATION: Final = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_SHT_RELA: Final = 4
_SHT_NOBITS: Final = 8
_SHT_RELR: Final = 19
_SHF_WRITE: Final = 1
_COLD: Final = re.compile(r"\.cold(\.[0-9]+)?$")
"""Names that compilers give to pieces that are seldom executed."""
_STUBS: Final = (".plt", ".plt.got", ".plt.sec")


@dataclass(frozen=True)
class ImageCode:
    """The functions of a file, sorted, and addresses that one of them, or a word that is relocated, leads to: all of
    them are `entries`, and `branches` are the direct branches and calls that lead from a function to an address outside
    of it, less those addresses that words point to. `parts` are the pieces of functions that lie elsewhere, by where
    the function begins."""

    functions: Functions
    entries: AbstractSet[int]
    branches: Mapping[int, tuple[Displaced, ...]]
    parts: Mapping[int, tuple[FunctionCode, ...]]


def read_image_code(elf: ElfFile, base: int) -> ImageCode:
    """The code of a file that is loaded at `base`."""
    shift = base - elf.lowest_address
    symbols = read_symbols(elf)
    begins = np.unique(np.concatenate((symbols.offsets, symbols.function_offsets))).tolist()
    sizes = dict(zip(symbols.offsets.tolist(), symbols.sizes_bytes.tolist(), strict=True))
    read = _reader(elf, shift)
    found: list[FunctionCode] = []
    for section in elf.sections:
        if not section.flags & SHF_EXECINSTR or section.name in _STUBS:
            continue
        start = section.address + shift
        text = elf.read(section.file_offset, min(section.size_bytes, MAX_CODE_BYTES))
        ranges = _cut(begins, sizes, start - base, start - base + len(text))
        for first, size, following in ranges:
            at = first + base - start
            behind = following + base - start
            found.append(decode_function(first + base, text[at:behind], size, read, text[behind : behind + 8]))
    functions = Functions.of(found)
    pointers = {shift + address for address in _find_pointers(elf)}
    led = find_leads(functions)
    entries = {base + begin for begin in begins} | pointers
    entries.update(np.unique(led.targets).tolist())
    named = {
        base + offset for index, offset in enumerate(symbols.offsets.tolist()) if not _COLD.search(symbols.name(index))
    }
    parts = find_parts(functions, led, named, pointers)
    return ImageCode(functions, frozenset(entries), Branches(functions, led, pointers), Parts(functions, parts))


def _cut(begins: list[int], sizes: dict[int, int], start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Of each function from `start` to `end`: where it begins, its bytes, and where the next one begins.

    What begins within another one, as far as that one's size is known, is a place in it.
    """
    inside = [begin for begin in begins if start <= begin < end]
    index = 0
    while index < len(inside):
        begin = inside[index]
        size = sizes.get(begin)
        index += 1
        while size is not None and index < len(inside) and inside[index] < begin + size:
            index += 1
        following = inside[index] if index < len(inside) else end
        yield begin, following - begin if size is None else min(size, following - begin), following


def _find_pointers(elf: ElfFile) -> set[int]:
    """Link addresses of code that words of the file point to."""
    ranges = [
        (segment.address, segment.address + segment.memory_bytes)
        for segment in elf.segments
        if segment.kind == PT_LOAD and segment.flags & PF_X
    ]
    found = [_read_relocated(elf, section) for section in elf.sections]
    values = np.concatenate([np.zeros(0, np.uint64), *found])
    chosen = np.zeros(len(values), bool)
    for start, end in ranges:
        chosen |= (values >= start) & (values < end)
    return set(values[chosen].tolist())


def _read_relocated(elf: ElfFile, section: Section) -> Array:
    """Values of words, as far as a section tells of them."""
    size_bytes = min(section.size_bytes, _MAX_TABLE_BYTES)
    if section.kind == _SHT_RELA:
        rows = read_rows(elf, section.file_offset, size_bytes, _RELOCATION)
        architecture = architecture_of_machine(elf.machine)
        known = (architecture.relative_relocation, architecture.chosen_relocation) if architecture is not None else ()
        return rows["addend"][np.isin(rows["info"] & 0xFFFFFFFF, known)].astype(np.uint64)
    if section.kind == _SHT_RELR:
        read = _reader(elf, 0)
        places = islice(_relr_places(elf.read(section.file_offset, size_bytes)), MAX_RELATIVE_WORDS)
        words = [int.from_bytes(read(place, 8), "little") for place in places]
        return np.array(words, np.uint64)
    if elf.kind == ET_EXEC and section.flags & _SHF_WRITE and section.kind != _SHT_NOBITS:
        # Addresses are fixed, so nothing says which words are some.
        data = elf.read(section.file_offset, size_bytes)
        return np.frombuffer(data, "<u8", len(data) // 8)
    return np.zeros(0, np.uint64)


def _relr_places(table: bytes) -> Iterator[int]:
    """Link addresses of words that are relocated: an even entry is an address, an odd one tells by its bits which of
    the next 63 words are (generic ABI, SHT_RELR)."""
    place = 0
    for (entry,) in struct.iter_unpack("<Q", table[: len(table) // 8 * 8]):
        if not entry & 1:
            yield entry
            place = entry + 8
            continue
        yield from (place + 8 * bit for bit in range(63) if entry >> bit + 1 & 1)
        place += 63 * 8


def _reader(elf: ElfFile, shift: int) -> ReadMemory:
    """Reads the file's memory as it is before it is relocated."""

    def read(address: int, size_bytes: int) -> bytes:
        for segment in elf.segments:
            at = address - shift - segment.address
            if segment.kind == PT_LOAD and 0 <= at < segment.file_bytes:
                return elf.read(FileOffset(segment.file_offset + at), min(size_bytes, segment.file_bytes - at))
        return b""

    return read
