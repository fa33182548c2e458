"""The functions of an ELF file by their names: for who looks for all whose names fit something.

Runs in the controller.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clew.binary.elf import ElfFile
from clew.binary.symbol_rows import SHT_DYNSYM, SHT_SYMTAB, SYMBOL, read_rows
from clew.dataclass import dataclass

__all__ = ["FunctionName", "list_functions"]

_FUNCTION: Final = 2
_INDIRECT: Final = 10
"""STT_FUNC and STT_GNU_IFUNC (elf.h)."""
_MOST: Final = 1 << 20


@dataclass(frozen=True)
class FunctionName:
    """A name of a function, which begins `offset` bytes behind the image's base.

    `is_indirect`: what is there chooses the function that is meant, and is not it.
    """

    name: str
    offset: int
    is_indirect: bool


def list_functions(elf: ElfFile) -> list[FunctionName]:
    """All names of functions that the file's symbol tables have, each once, by their places. Raises BinaryError."""
    found: dict[tuple[int, str], FunctionName] = {}
    for section in elf.sections:
        if section.kind not in (SHT_SYMTAB, SHT_DYNSYM) or section.link >= len(elf.sections):
            continue
        rows = read_rows(elf, section.file_offset, min(section.size_bytes, _MOST * SYMBOL.itemsize), SYMBOL)
        strings = elf.sections[section.link]
        text = elf.read(strings.file_offset, strings.size_bytes)
        kind = rows["info"] & 15
        chosen = ((kind == _FUNCTION) | (kind == _INDIRECT)) & (rows["section"] != 0) & (rows["name"] < len(text))
        for row in rows[np.flatnonzero(chosen & (rows["value"] >= elf.lowest_address))]:
            start = int(row["name"])
            name = text[start : text.find(b"\0", start)].decode(errors="replace")
            offset = int(row["value"]) - elf.lowest_address
            if name:
                is_indirect = int(row["info"]) & 15 == _INDIRECT
                found.setdefault((offset, name), FunctionName(name, offset, is_indirect))
    return [found[key] for key in sorted(found)]
