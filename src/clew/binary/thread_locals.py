"""Where a file's thread-local variables are: from the thread pointer of the thread that asks on.

Runs in the controller. The program's own block ends at the thread pointer, so that its variables are at fixed distances
from there. Of a library the dynamic linker decides that, and writes it into words of the library: the distance of a
variable (as libc has it for `errno`), or the number of its module, by which the thread's table (dtv) has the address of
the block. Those words are read where the capture is taken: then they are right whenever the library was loaded, and
nothing has to be known of the dynamic linker's own structures but the dtv, which is part of the ABI.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.binary.architectures.known import architecture_of_machine
from clew.binary.elf import ElfFile
from clew.binary.symbol_rows import SHT_DYNSYM, SHT_SYMTAB, SYMBOL, read_rows
from clew.binary.variable_places import Constant, Operation, Stored, Term, ThreadPointer
from clew.dataclass import dataclass
from clew.errors import BinaryError

__all__ = ["DataSymbol", "ThreadLocals", "find_data_symbol"]

Array = npt.NDArray[Any]

MAX_BYTES: Final = 1 << 28
MAX_DYNAMIC: Final = 4096
MAX_PLACES: Final = 1 << 16
"""At which a name is written in a table of names."""
_MASK: Final = (1 << 64) - 1
_SHT_RELA, _SHF_ALLOC = 4, 2
_STT_OBJECT, _STT_TLS = 1, 6
_PT_DYNAMIC, _PT_TLS, _ET_EXEC = 2, 7, 2
_DT_FLAGS_1, _DF_1_PIE = 0x6FFFFFFB, 0x08000000

_RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])


@dataclass(frozen=True)
class DataSymbol:
    """A variable's symbol: its link address, or, of one that is thread-local, where it is in the file's block."""

    value: int
    size_bytes: int


def find_data_symbol(elf: ElfFile, name: str, *, is_thread_local: bool) -> DataSymbol | None:
    """The variable of that name that a file defines; None where it has none. Raises BinaryError."""
    wanted = _STT_TLS if is_thread_local else _STT_OBJECT
    text = name.encode("utf-8", "surrogateescape")
    for section in elf.sections:
        if section.kind not in (SHT_SYMTAB, SHT_DYNSYM) or section.link >= len(elf.sections):
            continue
        rows = read_rows(elf, section.file_offset, min(section.size_bytes, MAX_BYTES), SYMBOL)
        chosen = rows[(rows["info"] & 15 == wanted) & (rows["section"] != 0)]
        strings = elf.sections[section.link]
        names = elf.read(strings.file_offset, min(strings.size_bytes, MAX_BYTES))
        for row in _named(chosen, names, text):
            return DataSymbol(int(row["value"]), int(row["size"]))
    return None


def _named(rows: Array, names: bytes, text: bytes) -> Array:
    """The rows that are called so: their names are at places where it is written."""
    places: list[int] = []
    at = names.find(text + b"\0")
    while at >= 0 and len(places) < MAX_PLACES:
        places.append(at)
        at = names.find(text + b"\0", at + 1)
    return rows[np.isin(rows["name"], np.array(places, np.uint64))]


class ThreadLocals:
    """Those of one file. `is_program`: it is the program itself, and no library."""

    def __init__(self, elf: ElfFile, *, is_program: bool) -> None:
        self._elf = elf
        self._is_program = is_program or elf.kind == _ET_EXEC or _is_position_independent_program(elf)
        self._block = next((segment for segment in elf.segments if segment.kind == _PT_TLS), None)

    def address(self, offset: int, bias: int) -> Term:
        """The address of what is at an offset of the file's block. `bias` is what the file's addresses are more than
        those that it was linked for. Raises BinaryError where that is not known."""
        block = self._block
        if block is None:
            raise BinaryError(self._elf.path, "it has no thread-local variables")
        if self._is_program:
            # As linkers and dynamic linkers have it: the block ends at the thread pointer, aligned as it was linked.
            alignment = max(self._alignment(), 1)
            padding = -(block.address + block.memory_bytes) % alignment
            return _sum(ThreadPointer(), offset - block.memory_bytes - padding)
        return self._in_library(offset, bias)

    def _alignment(self) -> int:
        assert self._block is not None
        alignment = self._block.alignment
        return alignment if alignment & (alignment - 1) == 0 else 1

    def _in_library(self, offset: int, bias: int) -> Term:
        architecture = architecture_of_machine(self._elf.machine)
        if architecture is None or not architecture.dtv_offset:
            raise BinaryError(self._elf.path, "where its thread-local variables are is not known on this architecture")
        rows = self._relocations()
        by_offset = rows[rows["type"] == architecture.thread_offset_relocation]
        if len(by_offset):
            # What the word has for a variable at the addend.
            row = by_offset[0]
            distance = Stored(Constant(int(row["offset"]) + bias & _MASK), 8)
            return _sum(Operation("add", ThreadPointer(), distance), offset - int(row["addend"]))
        by_module = rows[rows["type"] == architecture.module_relocation]
        if not len(by_module):
            why = "nothing in it tells where its thread-local variables are (it uses descriptors, or does not use them)"
            raise BinaryError(self._elf.path, why)
        module = Stored(Constant(int(by_module[0]["offset"]) + bias & _MASK), 8)
        table = Stored(_sum(ThreadPointer(), architecture.dtv_offset), 8)
        size = architecture.dtv_entry_bytes
        # In front of it is how many entries it has: of what is behind them nothing is read, since what is divided by 0
        # is missing.
        is_there = Operation("not_greater", module, Stored(_sum(table, -size), 8))
        entry = Operation("add", table, Operation("multiply", module, Constant(size)))
        return _sum(Operation("divide", Stored(entry, 8), is_there), offset)

    def _relocations(self) -> Array:
        """Those of variables of the file's own: they name none, and have its place in the block for an addend."""
        sections = [one for one in self._elf.sections if one.kind == _SHT_RELA and one.flags & _SHF_ALLOC]
        parts = [read_rows(self._elf, one.file_offset, min(one.size_bytes, MAX_BYTES), _RELOCATION) for one in sections]
        rows = np.concatenate([np.zeros(0, _RELOCATION), *parts])
        own: Array = rows[rows["symbol"] == 0]
        architecture = architecture_of_machine(self._elf.machine)
        assert architecture is not None
        kinds = (architecture.module_relocation, architecture.thread_offset_relocation)
        if np.isin(own["type"], kinds).any():
            return own
        # Those with names are of variables that others see, too: of one that the file itself defines, its own.
        return self._with_values(rows[(rows["symbol"] != 0) & np.isin(rows["type"], kinds)])

    def _with_values(self, rows: Array) -> Array:
        symbols = np.zeros(0, SYMBOL)
        for section in self._elf.sections:
            if section.kind == SHT_DYNSYM:
                symbols = read_rows(self._elf, section.file_offset, min(section.size_bytes, MAX_BYTES), SYMBOL)
        rows = rows[rows["symbol"] < len(symbols)].copy()
        named = symbols[rows["symbol"]]
        rows["addend"] += named["value"].astype(np.int64)
        own: Array = rows[(named["section"] != 0) & (named["info"] & 15 == _STT_TLS)]
        return own


def _sum(term: Term, distance: int) -> Term:
    return Operation("add", term, Constant(distance & _MASK)) if distance else term


def _is_position_independent_program(elf: ElfFile) -> bool:
    """Whether the linker marked it as a program that may lie anywhere (DF_1_PIE)."""
    segment = next((one for one in elf.segments if one.kind == _PT_DYNAMIC), None)
    if segment is None:
        return False
    rows = read_rows(elf, segment.file_offset, min(segment.file_bytes, 16 * MAX_DYNAMIC), np.dtype("<2u8"))
    return any(int(tag) == _DT_FLAGS_1 and int(value) & _DF_1_PIE for tag, value in rows.reshape(-1, 2).tolist())
