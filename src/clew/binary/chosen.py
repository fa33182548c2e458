"""Words of memory that hold which function was chosen where code chooses one (IFUNC).

Runs in the controller. What is at such a symbol is code that is called once, by the dynamic linker or by a static
program's start; what it gives is written into a word, and called through that. Words are named by relocations.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from clew.binary.architectures.known import architecture_of_machine
from clew.binary.elf import ElfFile
from clew.binary.symbol_rows import SHT_DYNSYM, SYMBOL, read_rows

__all__ = ["find_chosen_words"]

_SHT_RELA, _SHF_ALLOC = 4, 2
_MAX_BYTES: Final = 1 << 28
_MAX_NAME_BYTES: Final = 1 << 12
_RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])


def find_chosen_words(elf: ElfFile, choosers: Collection[int], names: Collection[str]) -> list[int]:
    """Link addresses of words that hold what was chosen: by code of the file at one of some link addresses, or for a
    function of another file that has one of some names. Raises BinaryError."""
    architecture = architecture_of_machine(elf.machine)
    if architecture is None:
        return []
    found: list[int] = []
    for section in elf.sections:
        if section.kind != _SHT_RELA or not section.flags & _SHF_ALLOC:
            continue
        rows = read_rows(elf, section.file_offset, min(section.size_bytes, _MAX_BYTES), _RELOCATION)
        is_own = (rows["type"] == architecture.chosen_relocation) & np.isin(
            rows["addend"], np.array(list(choosers), np.int64)
        )
        found += rows["offset"][is_own].tolist()
        kinds = (*architecture.function_relocations, architecture.word_relocation)
        calls = rows[np.isin(rows["type"], np.array(kinds, np.uint32)) & (rows["addend"] == 0)] if names else rows[:0]
        found += calls["offset"][np.isin(calls["symbol"], _numbers_of(elf, names))].tolist()
    return sorted(set(found))


def _numbers_of(elf: ElfFile, names: Collection[str]) -> list[int]:
    """The numbers of dynamic symbols that have one of some names."""
    wanted = {name.encode("utf-8", "surrogateescape") for name in names}
    for section in elf.sections:
        if section.kind == SHT_DYNSYM and section.link < len(elf.sections):
            rows = read_rows(elf, section.file_offset, min(section.size_bytes, _MAX_BYTES), SYMBOL)
            strings = elf.sections[section.link]
            text = elf.read(strings.file_offset, min(strings.size_bytes, _MAX_BYTES))
            places = enumerate(rows["name"].tolist())
            return [at for at, one in places if text[one : text.find(b"\0", one, one + _MAX_NAME_BYTES)] in wanted]
    return []
