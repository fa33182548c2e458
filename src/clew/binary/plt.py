"""Names of the stubs through which a file calls other files' functions.

Runs in the controller. Stubs have no symbols: what one jumps through is an entry of a table, and the relocation of that
entry names the function.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.known import architecture_of_machine
from clew.binary.elf import ElfFile
from clew.binary.symbol_rows import read_rows

__all__ = ["SUFFIX", "find_stubs"]

Array = npt.NDArray[Any]

SUFFIX: Final = "@plt"
_STUB_SECTIONS: Final = (".plt", ".plt.sec", ".plt.got")
_RELOCATION_SECTIONS: Final = (".rela.plt", ".rela.dyn")
_MAX_BYTES: Final = 1 << 26
_RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])


def find_stubs(elf: ElfFile) -> tuple[Array, Array, Array]:
    """Link addresses of stubs, their sizes in bytes, and the index in .dynsym of what each calls; u64, u64, i64."""
    none = np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    architecture = architecture_of_machine(elf.machine)
    if architecture is None:
        return none
    slots, symbols = _read_relocations(elf, architecture)
    if not len(slots):
        return none
    found = []
    for name in _STUB_SECTIONS:
        section = elf.find_section(name)
        if section is None:
            continue
        code = np.frombuffer(elf.read(section.file_offset, min(section.size_bytes, _MAX_BYTES)), np.uint8)
        stub_bytes = 8 if name == ".plt.got" and section.entry_bytes in (0, 8) else 16
        at, slot = architecture.find_stub_slots(code, section.address)
        where = np.minimum(np.searchsorted(slots, slot), len(slots) - 1)
        known = slots[where] == slot
        start = (at[known] // stub_bytes * stub_bytes).astype(np.uint64) + np.uint64(section.address)
        found.append((start, np.full(len(start), stub_bytes, np.uint64), symbols[where[known]]))
    if not found:
        return none
    starts, sizes, names = (np.concatenate(column) for column in zip(*found, strict=True))
    return starts, sizes, names


def _read_relocations(elf: ElfFile, architecture: Architecture) -> tuple[Array, Array]:
    """Addresses that the dynamic linker fills with functions, sorted, and the index in .dynsym of each function."""
    parts = [np.zeros(0, _RELOCATION)]
    for name in _RELOCATION_SECTIONS:
        section = elf.find_section(name)
        if section is not None:
            size_bytes = min(section.size_bytes, _MAX_BYTES)
            parts.append(read_rows(elf, section.file_offset, size_bytes, _RELOCATION))
    rows = np.concatenate(parts)
    kind, symbol = rows["info"] & np.uint64(0xFFFFFFFF), (rows["info"] >> np.uint64(32)).astype(np.int64)
    is_function = np.isin(kind, np.array(architecture.function_relocations, np.uint64))
    rows, symbol = rows[is_function], symbol[is_function]
    order = np.argsort(rows["offset"], kind="stable")
    return rows["offset"][order], symbol[order]
