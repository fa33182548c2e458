"""Names of code, by symbol tables.

Runs in the controller. Works on whole tables at once; a name becomes a Python string only when it is asked for. Names
stay as the compiler made them: `clew.binary.demangle` makes them readable, for who looks for such a name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import ImageOffset
from clew.binary.demangle import demangle
from clew.binary.elf import SHF_EXECINSTR, ElfFile, open_elf
from clew.binary.plt import SUFFIX, find_stubs
from clew.binary.symbol_rows import SHT_DYNSYM, SHT_SYMTAB, SYMBOL, read_rows
from clew.binary.unwind import read_function_starts
from clew.dataclass import dataclass
from clew.errors import BinaryError

__all__ = ["SymbolTable", "load_symbols", "read_symbols"]

DEBUG_DIRECTORY: Final = Path("/usr/lib/debug/.build-id")
MAX_SYMBOLS: Final = 1 << 24
MAX_NAME_BYTES: Final = 1 << 16
_STT_NOTYPE, _STT_FUNC, _STT_GNU_IFUNC = 0, 2, 10
_STB_LOCAL, _STB_WEAK = 0, 2
_STUB = 1 << 32
"""Added to the place of a name: the stub that leads to what is called so."""
_LAST_BYTES: Final = np.uint64(4096)
"""What the last symbol has, if it has no size."""
_IS_READABLE: Final = re.compile(r"[( :<]")
"""What names have only after they were made readable."""
_DEPTH: Final = 8
"""How many symbols back one is looked for that still covers an offset, past smaller ones inside it."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SymbolTable:
    """Symbols of code, sorted by offset; of several at one offset, the one that tells most.

    `offsets` and `sizes_bytes` are u64, image offsets and bytes; a size of 0 was made to reach to the next symbol.
    `name_places` are places in `names`, the bytes of the tables of names; a stub's is that of the name it leads to, and
    2^32. `function_offsets` are image offsets, sorted, at
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
        wanted = name.removesuffix(SUFFIX).encode("utf-8", "surrogateescape")
        stub = _STUB if name.endswith(SUFFIX) else 0
        offsets, sizes, places = self._aliases
        found: dict[int, int] = {}
        at = self.names.find(wanted)
        while wanted and at >= 0:
            if self.names[at + len(wanted) : at + len(wanted) + 1] in (b"\0", b"@", b""):
                for index in np.flatnonzero(places == at + stub).tolist():
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
        place, suffix = place % _STUB, SUFFIX if place >= _STUB else ""
        end = self.names.find(b"\0", place, place + MAX_NAME_BYTES)
        name = self.names[place : end if end >= 0 else place + MAX_NAME_BYTES]
        # A version after @ or @@ is no part of the name.
        stem = name.partition(b"@")[0] or name
        return stem.decode("utf-8", "backslashreplace") + suffix


def load_symbols(path: str | Path) -> SymbolTable:
    """Symbols of the ELF file at `path`, and of the debug file that its build-id names, if that is installed.

    Raises BinaryError if the file can't be read.
    """
    with open_elf(Path(path)) as elf:
        return read_symbols(elf)


def read_symbols(elf: ElfFile) -> SymbolTable:
    """Symbols of an open ELF file, as `load_symbols` gives them."""
    found = _Found()
    found.add_tables(elf)
    found.add_stubs(elf)
    build_id = elf.build_id
    if build_id and len(build_id) > 2 and not any(section.kind == SHT_SYMTAB for section in elf.sections):
        debug_path = DEBUG_DIRECTORY / build_id[:2] / f"{build_id[2:]}.debug"
        if debug_path.exists():
            try:
                with open_elf(debug_path) as debug:
                    if debug.build_id == build_id:
                        found.add_tables(debug)
            except BinaryError:
                pass  # A damaged debug file takes nothing from the names that the program itself has.
    return found.build(read_function_starts(elf), elf.lowest_address)


class _Found:
    """Symbols of code as they are found in tables: rows of these, and the place of each one's name in `names`."""

    def __init__(self) -> None:
        self._rows = [np.zeros(0, SYMBOL)]
        self._places = [np.zeros(0, np.int64)]
        self._names: list[bytes] = []
        self._n_bytes = 0
        self._dynamic = np.zeros(0, np.int64)
        """Of each dynamic symbol of the first file, the place of its name; -1: it has none."""

    def add_tables(self, elf: ElfFile) -> None:
        """Add what every table of `elf` has."""
        is_code = np.array([bool(section.flags & SHF_EXECINSTR) for section in elf.sections] or [False])
        for section in elf.sections:
            if section.kind not in (SHT_SYMTAB, SHT_DYNSYM) or section.link >= len(elf.sections):
                continue
            size_bytes = min(section.size_bytes, MAX_SYMBOLS * SYMBOL.itemsize)
            rows = read_rows(elf, section.file_offset, size_bytes, SYMBOL)
            strings = elf.sections[section.link]
            text = elf.read(strings.file_offset, strings.size_bytes)
            if self._n_bytes + len(text) >= _STUB:
                continue
            has_name = rows["name"] < len(text)
            places = rows["name"].astype(np.int64) + self._n_bytes
            if section.kind == SHT_DYNSYM and not len(self._dynamic):
                self._dynamic = np.where(has_name & (rows["name"] > 0), places, -1)
            kind, binding = rows["info"] & 15, rows["info"] >> 4
            in_code = (rows["section"] > 0) & (rows["section"] < len(is_code))
            in_code &= is_code[np.where(in_code, rows["section"], 0)]
            is_function = (kind == _STT_FUNC) | (kind == _STT_GNU_IFUNC)
            is_function |= (kind == _STT_NOTYPE) & in_code & ((binding != _STB_LOCAL) | (rows["size"] > 0))
            chosen = np.flatnonzero(is_function & (rows["section"] != 0) & has_name & (rows["value"] != 0))
            self._rows.append(rows[chosen])
            self._places.append(places[chosen])
            self._names += [text, b"\0"]
            self._n_bytes += len(text) + 1

    def add_stubs(self, elf: ElfFile) -> None:
        """Add the stubs, each called like the function that it leads to."""
        addresses, sizes, indices = find_stubs(elf)
        known = np.flatnonzero((indices > 0) & (indices < len(self._dynamic)))
        known = known[self._dynamic[indices[known]] >= 0]
        rows = np.zeros(len(known), SYMBOL)
        rows["info"], rows["value"], rows["size"] = _STT_FUNC, addresses[known], sizes[known]
        self._rows.append(rows)
        self._places.append(self._dynamic[indices[known]] + _STUB)

    def build(self, function_addresses: Array, lowest_address: int) -> SymbolTable:
        """The table of all of them; addresses are counted from `lowest_address`."""
        lowest = np.uint64(lowest_address)
        rows, places, names = np.concatenate(self._rows), np.concatenate(self._places), b"".join(self._names)
        inside = rows["value"] >= lowest
        rows, places = rows[inside], places[inside]
        text = np.frombuffer(names + bytes(4), np.uint8)
        kind, binding = rows["info"] & 15, rows["info"] >> 4
        first_byte = places % _STUB
        underscores = (text[first_byte] == ord("_")).astype(np.int8)
        underscores += (underscores > 0) & (text[first_byte + 1] == ord("_"))
        # The C library calls its own functions by other names, __GI_ and the name.
        underscores += (underscores == 2) & (text[first_byte + 2] == ord("G")) & (text[first_byte + 3] == ord("I"))
        # Of several names: a function before a label, one with a size, global before weak before local, the plainest.
        weight = np.where(binding == _STB_LOCAL, 2, np.where(binding == _STB_WEAK, 1, 0))
        order = np.lexsort((places, underscores, weight, rows["size"] == 0, kind == _STT_NOTYPE, rows["value"]))
        rows, places = rows[order], places[order]
        offsets = rows["value"] - lowest
        first = np.ones(len(rows), bool)
        first[1:] = offsets[1:] != offsets[:-1]
        kept = offsets[first]
        sizes = rows["size"][first].copy()
        unsized = np.flatnonzero(sizes == 0)
        following = np.concatenate((kept[1:], kept[-1:] + _LAST_BYTES))
        sizes[unsized] = following[unsized] - kept[unsized]
        return SymbolTable(
            offsets=kept,
            sizes_bytes=sizes,
            name_places=places[first],
            names=names,
            function_offsets=function_addresses[function_addresses >= lowest] - lowest,
            _aliases=(offsets, rows["size"], places),
        )
