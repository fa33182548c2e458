"""Names of code, by symbol tables.

Runs in the controller. Works on whole tables at once; a name becomes a Python string only when it is asked for. Names
stay as the compiler made them: `clew.binary.demangle` makes them readable, for who looks for such a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import ImageOffset
from clew.binary.demangle import demangle
from clew.binary.elf import SHF_EXECINSTR, ElfFile, open_elf
from clew.binary.plt import SUFFIX, find_stubs
from clew.binary.unwind import read_function_starts
from clew.errors import BinaryError

__all__ = ["SymbolTable", "load_symbols", "read_symbols"]

DEBUG_DIRECTORY: Final = Path("/usr/lib/debug/.build-id")
MAX_SYMBOLS: Final = 1 << 24
MAX_NAME_BYTES: Final = 1 << 16
MAX_STUB_NAMES_BYTES: Final = 1 << 24
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11
_STT_NOTYPE, _STT_FUNC, _STT_GNU_IFUNC = 0, 2, 10
_STB_LOCAL, _STB_WEAK = 0, 2
_IS_READABLE: Final = re.compile(r"[( :<]")
"""What names have only after they were made readable."""
_DEPTH: Final = 8
"""How many symbols back one is looked for that still covers an offset, past smaller ones inside it."""

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SymbolTable:
    """Symbols of code, sorted by offset; of several at one offset, the one that tells most.

    `offsets` and `sizes_bytes` are u64, image offsets and bytes; a size of 0 was made to reach to the next symbol.
    `names_at` are places in `names`, the bytes of the tables of names. `function_offsets` are image offsets, sorted, at
    which functions start, from the unwind table, which stripped files keep.
    """

    offsets: Array
    sizes_bytes: Array
    name_places: Array
    names: bytes
    function_offsets: Array
    _aliases: tuple[Array, Array, Array]

    def __len__(self) -> int:
        return len(self.offsets)

    def name(self, index: int) -> str:
        """Name of symbol `index`, without the version that a table of names may append."""
        return self._name_at(int(self.name_places[index]))

    def find(self, offsets: Array) -> Array:
        """Indices of the symbols that cover the image offsets `offsets`; -1 where none does."""
        offsets = np.asarray(offsets, np.uint64)
        found = np.full(len(offsets), -1)
        at = np.searchsorted(self.offsets, offsets, "right") - 1
        for _ in range(_DEPTH):
            open_ = np.flatnonzero((found < 0) & (at >= 0))
            if not len(open_):
                break
            candidate = at[open_]
            covers = offsets[open_] - self.offsets[candidate] < self.sizes_bytes[candidate]
            found[open_[covers]] = candidate[covers]
            at[open_] -= 1
        return found

    def find_functions(self, offsets: Array) -> Array:
        """Where the function around each image offset starts, i64: by symbol, else by the unwind table, else -1."""
        offsets = np.asarray(offsets, np.uint64)
        index = self.find(offsets)
        starts = np.full(len(offsets), -1, np.int64)
        starts[index >= 0] = self.offsets[index[index >= 0]].astype(np.int64)
        if len(self.function_offsets):
            at = np.searchsorted(self.function_offsets, offsets, "right") - 1
            unnamed = (index < 0) & (at >= 0)
            starts[unnamed] = self.function_offsets[at[unnamed]].astype(np.int64)
        return starts

    def names_at(self, offsets: Array) -> list[str | None]:
        """Names of the symbols that cover the image offsets `offsets`; None where none does."""
        return [self.name(index) if index >= 0 else None for index in self.find(offsets).tolist()]

    def find_by_name(self, name: str) -> list[tuple[ImageOffset, int]]:
        """Image offset and size in bytes of each place that is called `name`, aliases included.

        What is no name in any file, such as `thr(int)`, is looked for among the names made readable.
        """
        if _IS_READABLE.search(name):
            return self._find_readable(name)
        wanted = name.encode("utf-8", "surrogateescape")
        offsets, sizes, places = self._aliases
        found: dict[int, int] = {}
        at = self.names.find(wanted)
        while wanted and at >= 0:
            following = self.names[at + len(wanted) : at + len(wanted) + 5]
            if following[:1] in (b"\0", b"@", b"") and following != b"@plt\0":
                for index in np.flatnonzero(places == at).tolist():
                    found[int(offsets[index])] = int(sizes[index])
            at = self.names.find(wanted, at + 1)
        return [(ImageOffset(offset), size) for offset, size in sorted(found.items())]

    def _find_readable(self, name: str) -> list[tuple[ImageOffset, int]]:
        offsets, sizes, places = self._aliases
        return sorted(
            {
                (ImageOffset(offset), size)
                for offset, size, place in zip(offsets.tolist(), sizes.tolist(), places.tolist(), strict=True)
                if demangle(self._name_at(place)) == name
            }
        )

    def _name_at(self, place: int) -> str:
        end = self.names.find(b"\0", place, place + MAX_NAME_BYTES)
        name = self.names[place : end if end >= 0 else place + MAX_NAME_BYTES]
        stem, _, version = name.partition(b"@")
        # A version after @ or @@ is no part of the name; @plt marks a stub.
        return (name if not stem or version == b"plt" else stem).decode("utf-8", "backslashreplace")


def load_symbols(path: str | Path) -> SymbolTable:
    """Symbols of the ELF file at `path`, and of the debug file that its build-id names, if that is installed.

    Raises BinaryError if the file can't be read.
    """
    with open_elf(Path(path)) as elf:
        return read_symbols(elf)


def read_symbols(elf: ElfFile) -> SymbolTable:
    """Symbols of an open ELF file, as `load_symbols` gives them."""
    rows, names = _read_tables(elf, b"")
    stubs, names = _name_stubs(elf, names)
    rows = np.concatenate([rows, stubs])
    build_id = elf.build_id
    if build_id and len(build_id) > 2 and not any(section.kind == _SHT_SYMTAB for section in elf.sections):
        debug_path = DEBUG_DIRECTORY / build_id[:2] / f"{build_id[2:]}.debug"
        if debug_path.exists():
            try:
                with open_elf(debug_path) as debug:
                    if debug.build_id == build_id:
                        more, names = _read_tables(debug, names)
                        rows = np.concatenate([rows, more])
            except BinaryError:
                pass  # A damaged debug file takes nothing from the names that the program itself has.
    return _build_table(rows, names, read_function_starts(elf), elf.lowest_address)


def _read_tables(elf: ElfFile, names: bytes) -> tuple[Array, bytes]:
    """Symbols of code in every table of `elf`, with their names appended to `names`."""
    found = [np.zeros(0, _SYMBOL)]
    is_code = np.array([bool(section.flags & SHF_EXECINSTR) for section in elf.sections] or [False])
    for section in elf.sections:
        if section.kind not in (_SHT_SYMTAB, _SHT_DYNSYM) or section.link >= len(elf.sections):
            continue
        data = elf.read(section.file_offset, min(section.size_bytes, MAX_SYMBOLS * _SYMBOL.itemsize))
        rows = np.frombuffer(data[: len(data) // _SYMBOL.itemsize * _SYMBOL.itemsize], _SYMBOL)
        strings = elf.sections[section.link]
        text = elf.read(strings.file_offset, strings.size_bytes)
        if len(names) + len(text) >= 1 << 32:
            continue
        kind, binding = rows["info"] & 15, rows["info"] >> 4
        in_code = (rows["section"] > 0) & (rows["section"] < len(is_code))
        in_code &= is_code[np.where(in_code, rows["section"], 0)]
        is_function = (kind == _STT_FUNC) | (kind == _STT_GNU_IFUNC)
        is_function |= (kind == _STT_NOTYPE) & in_code & ((binding != _STB_LOCAL) | (rows["size"] > 0))
        rows = rows[is_function & (rows["section"] != 0) & (rows["name"] < len(text)) & (rows["value"] != 0)].copy()
        rows["name"] += np.uint32(len(names))
        names += text + b"\0"
        found.append(rows)
    return np.concatenate(found), names


def _name_stubs(elf: ElfFile, names: bytes) -> tuple[Array, bytes]:
    """Stubs as symbols that are called like the function with @plt, the names appended to `names`."""
    addresses, sizes, indices = find_stubs(elf)
    dynsym = next((section for section in elf.sections if section.kind == _SHT_DYNSYM), None)
    if not len(addresses) or dynsym is None or dynsym.link >= len(elf.sections):
        return np.zeros(0, _SYMBOL), names
    data = elf.read(dynsym.file_offset, min(dynsym.size_bytes, MAX_SYMBOLS * _SYMBOL.itemsize))
    table = np.frombuffer(data[: len(data) // _SYMBOL.itemsize * _SYMBOL.itemsize], _SYMBOL)
    text = elf.read(elf.sections[dynsym.link].file_offset, elf.sections[dynsym.link].size_bytes)
    parts, places, kept = [names], [], []
    at = len(names)
    for position, index in enumerate(indices.tolist()):
        if not 0 < index < len(table) or at - len(names) > MAX_STUB_NAMES_BYTES:
            continue
        place = int(table["name"][index])
        end = text.find(b"\0", place, place + MAX_NAME_BYTES)
        if end <= place:
            continue
        part = text[place:end] + SUFFIX.encode() + b"\0"
        parts.append(part)
        places.append(at)
        kept.append(position)
        at += len(part)
    rows = np.zeros(len(kept), _SYMBOL)
    rows["name"], rows["info"] = places, _STT_FUNC
    rows["value"], rows["size"] = addresses[kept], sizes[kept]
    return rows, b"".join(parts)


def _build_table(rows: Array, names: bytes, function_addresses: Array, lowest_address: int) -> SymbolTable:
    lowest = np.uint64(lowest_address)
    rows = rows[rows["value"] >= lowest]
    text = np.frombuffer(names + bytes(4), np.uint8)
    kind, binding = rows["info"] & 15, rows["info"] >> 4
    underscores = (text[rows["name"]] == ord("_")).astype(np.int8)
    second = rows["name"] + 1
    underscores += (underscores > 0) & (text[second] == ord("_"))
    # The C library calls its own functions by other names, __GI_ and the name.
    underscores += (underscores == 2) & (text[second + 1] == ord("G")) & (text[second + 2] == ord("I"))
    # Of several names: a function before a label, one with a size, global before weak before local, the plainest.
    weight = np.where(binding == _STB_LOCAL, 2, np.where(binding == _STB_WEAK, 1, 0))
    order = np.lexsort((rows["name"], underscores, weight, rows["size"] == 0, kind == _STT_NOTYPE, rows["value"]))
    rows = rows[order]
    offsets = rows["value"] - lowest
    first = np.ones(len(rows), bool)
    first[1:] = offsets[1:] != offsets[:-1]
    kept = offsets[first]
    sizes = rows["size"][first].copy()
    unsized = np.flatnonzero(sizes == 0)
    following = np.append(kept[1:], kept[-1:] + np.uint64(4096))
    sizes[unsized] = following[unsized] - kept[unsized]
    return SymbolTable(
        offsets=kept,
        sizes_bytes=sizes,
        name_places=rows["name"][first].astype(np.int64),
        names=names,
        function_offsets=function_addresses[function_addresses >= lowest] - lowest,
        _aliases=(offsets, rows["size"], rows["name"].astype(np.int64)),
    )
