"""All symbols of code that an ELF file has, with everything that its tables say of each.

Runs in the controller. `clew.binary.symbols` has one name for each address, for who wants to name code; this is for who
looks for code by its names: all of them, with kinds, versions, and source files. A file may be hostile: no more names
are read than so many bytes.
"""

from __future__ import annotations

import contextlib
import lzma
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clew.binary.elf import SHF_EXECINSTR, ElfFile, open_elf, open_elf_bytes
from clew.binary.symbol_rows import SHT_DYNSYM, SHT_SYMTAB, SYMBOL, read_rows
from clew.binary.symbol_versions import read_versions
from clew.binary.symbols import DEBUG_DIRECTORY
from clew.errors import BinaryError

__all__ = ["CodeSymbol", "CodeSymbols", "read_code_symbols"]

Array = npt.NDArray[Any]

MAX_SYMBOLS: Final = 1 << 22
MAX_NAME_BYTES: Final = 1 << 14
MAX_NAMES_BYTES: Final = 1 << 28
_MAX_TEXT_BYTES: Final = 1 << 29
_MAX_KEPT_BYTES: Final = 1 << 27
_STT_NOTYPE, _STT_FUNC, _STT_FILE, _STT_GNU_IFUNC = 0, 2, 4, 10
_STB_LOCAL, _STB_WEAK = 0, 2
_SHN_RESERVED: Final = 0xFF00


class CodeSymbol(NamedTuple):
    """A symbol: `name` without its version, which is `@V` or `@@V`; `address` is a link address.

    `binding` is `local`, `weak` or `global`. `is_indirect`: what is there chooses the function that is meant (IFUNC).
    `is_label`: nothing says that it is a function. `file` is the source file of a local one, empty where none is told.
    """

    name: str
    version: str
    address: int
    size_bytes: int
    binding: str
    is_indirect: bool
    is_label: bool
    file: str


class CodeSymbols:
    """Those of one file; `names` are all their names, without versions, and `addresses` their link addresses."""

    def __init__(self, tables: list[_Table]) -> None:
        self.names: list[str] = []
        self._versions: dict[int, str] = {}
        self._files: list[str] = []
        self._file_of: list[int] = []
        for table in tables:
            start = len(self.names)
            self._file_of += (table.file_of + len(self._files)).tolist()
            self._files += table.files
            for index, name in enumerate(table.names):
                stem, mark, version = name.partition("@")
                known = mark + version if stem and mark else table.versions.get(index, "")
                self.names.append(stem or name)
                if known:
                    self._versions[start + index] = known
        rows = np.concatenate([np.zeros(0, SYMBOL), *(table.rows for table in tables)])
        # Plain numbers: of an array each would be made one when it is asked for.
        self.addresses: list[int] = rows["value"].tolist()
        self._sizes: list[int] = rows["size"].tolist()
        self._kinds: list[int] = rows["info"].tolist()

    def __len__(self) -> int:
        return len(self.names)

    def pick(self, index: int) -> CodeSymbol:
        """The symbol of a number."""
        kind, binding = self._kinds[index] & 15, self._kinds[index] >> 4
        bound = "local" if binding == _STB_LOCAL else "weak" if binding == _STB_WEAK else "global"
        return CodeSymbol(
            self.names[index],
            self._versions.get(index, ""),
            self.addresses[index],
            self._sizes[index],
            bound,
            kind == _STT_GNU_IFUNC,
            kind == _STT_NOTYPE,
            self._files[self._file_of[index]] if bound == "local" else "",
        )


class _Table:
    """What is taken of one table of a file: `rows`, of each the name, the version, and which of `files` it is of."""

    def __init__(self, elf: ElfFile, rows: Array, text: bytes, versions: list[str]) -> None:
        spans = _find_names(rows["name"], text)
        chosen = np.flatnonzero(_is_code(elf, rows) & (spans[1] > spans[0]))[:MAX_SYMBOLS]
        # Names may overlap: together they may be far longer than the table.
        n_bytes = np.cumsum(spans[1][chosen] - spans[0][chosen])
        chosen = chosen[n_bytes <= MAX_NAMES_BYTES]
        self.rows = rows[chosen]
        self.names = _decode(text, spans[0][chosen], spans[1][chosen])
        self.versions: dict[int, str] = {}
        if versions:
            numbers = enumerate(chosen.tolist())
            self.versions = {at: versions[one] for at, one in numbers if one < len(versions) and versions[one]}
        # What is local comes behind its file's symbol, which names the source (gABI, symbol table).
        places = np.flatnonzero(rows["info"] & 15 == _STT_FILE)
        self.files = ["", *_decode(text, spans[0][places], spans[1][places])]
        self.file_of = np.searchsorted(places, chosen, "right")


def _find_names(places: Array, text: bytes) -> tuple[Array, Array]:
    """Where names begin and end, of those that begin at some places of a table."""
    zeros = np.append(np.flatnonzero(np.frombuffer(text, np.uint8) == 0), len(text))
    starts = np.minimum(places.astype(np.int64), len(text))
    ends = zeros[np.minimum(np.searchsorted(zeros, starts), len(zeros) - 1)]
    return starts, np.minimum(ends, starts + MAX_NAME_BYTES)


def _decode(text: bytes, starts: Array, ends: Array) -> list[str]:
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return [text[start:end].decode("utf-8", "backslashreplace") for start, end in spans]


def _is_code(elf: ElfFile, rows: Array) -> Array:
    """Which rows are of functions, or of labels in code."""
    first = np.array([one.address for one in elf.sections] or [0], np.uint64)
    size = np.array([one.size_bytes for one in elf.sections] or [0], np.uint64)
    is_code = np.array([bool(one.flags & SHF_EXECINSTR) for one in elf.sections] or [False])
    kind, number = rows["info"] & 15, rows["section"].astype(np.int64)
    # 0 is another file's, and what is absolute is no code of this one.
    is_inside = (number > 0) & (number < min(len(first), _SHN_RESERVED))
    number = np.where(is_inside, number, 0)
    # What linkers define at the end of a section is no code.
    is_label = (kind == _STT_NOTYPE) & is_code[number] & (rows["value"] - first[number] < size[number])
    is_function = (kind == _STT_FUNC) | (kind == _STT_GNU_IFUNC)
    found: Array = is_inside & (is_function | is_label) & (rows["value"] >= np.uint64(max(elf.lowest_address, 1)))
    return found


def read_code_symbols(elf: ElfFile) -> CodeSymbols:
    """The symbols of code of a file, and, where it was stripped, of what was kept of them: in it (.gnu_debugdata), and
    in the debug file that is installed for it. Raises BinaryError.
    """
    tables = _read_tables(elf)
    if not any(one.kind == SHT_SYMTAB for one in elf.sections):
        # There is none, or it is damaged: the program's own names are good.
        with contextlib.suppress(BinaryError, OSError), open_elf_bytes(_read_kept(elf), str(elf.path)) as kept:
            tables += _read_tables(kept)
        build_id = elf.build_id
        if build_id and len(build_id) > 2:
            path = DEBUG_DIRECTORY / build_id[:2] / f"{build_id[2:]}.debug"
            with contextlib.suppress(BinaryError), open_elf(path) as debug:
                tables += _read_tables(debug) if debug.build_id == build_id else []
    return CodeSymbols(tables)


def _read_kept(elf: ElfFile) -> bytes:
    """The small file that some distributions put into a program that they strip; nothing where there is none."""
    section = elf.find_section(".gnu_debugdata")
    if section is None:
        return b""
    content = elf.read(section.file_offset, min(section.size_bytes, _MAX_KEPT_BYTES))
    try:
        return lzma.LZMADecompressor(memlimit=_MAX_KEPT_BYTES).decompress(content, _MAX_KEPT_BYTES)
    except (lzma.LZMAError, EOFError):
        return b""


def _read_tables(elf: ElfFile) -> list[_Table]:
    tables = []
    for section in elf.sections:
        if section.kind in (SHT_SYMTAB, SHT_DYNSYM) and section.link < len(elf.sections):
            size_bytes = min(section.size_bytes, MAX_SYMBOLS * SYMBOL.itemsize)
            rows = read_rows(elf, section.file_offset, size_bytes, SYMBOL)
            strings = elf.sections[section.link]
            text = elf.read(strings.file_offset, min(strings.size_bytes, _MAX_TEXT_BYTES))
            tables.append(_Table(elf, rows, text, read_versions(elf) if section.kind == SHT_DYNSYM else []))
    return tables
