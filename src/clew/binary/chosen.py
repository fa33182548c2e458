"""Words of memory that hold which function was chosen where code chooses one (IFUNC).

Runs in the controller. What is at such a symbol is code that is called once, by the dynamic linker or by a static
program's start; what it gives is written into a word, and called through that. Words are named by relocations.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.binary.architectures.known import architecture_of_machine
from clew.binary.elf import ElfFile
from clew.binary.symbol_rows import SHT_DYNSYM, SYMBOL, read_rows
from clew.dataclass import dataclass

__all__ = ["ChosenWords", "read_chosen_words"]

Array = npt.NDArray[Any]

_SHT_RELA, _SHF_ALLOC = 4, 2
_MAX_BYTES: Final = 1 << 28
_MAX_NAME_BYTES: Final = 1 << 12
_RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])


@dataclass(frozen=True)
class ChosenWords:
    """Link addresses of words of a file that hold functions: by the link address of the file's own code that chooses,
    and by the names of functions, the file's or others'."""

    by_chooser: dict[int, list[int]]
    by_name: dict[str, list[int]]


def read_chosen_words(elf: ElfFile) -> ChosenWords:
    """The words of a file. Raises BinaryError."""
    found = ChosenWords({}, {})
    architecture = architecture_of_machine(elf.machine)
    if architecture is None:
        return found
    kinds = (*architecture.function_relocations, architecture.word_relocation)
    parts = [
        read_rows(elf, one.file_offset, min(one.size_bytes, _MAX_BYTES), _RELOCATION)
        for one in elf.sections
        if one.kind == _SHT_RELA and one.flags & _SHF_ALLOC
    ]
    rows = np.concatenate([np.zeros(0, _RELOCATION), *parts])
    for row in rows[rows["type"] == architecture.chosen_relocation]:
        found.by_chooser.setdefault(int(row["addend"]), []).append(int(row["offset"]))
    calls = rows[np.isin(rows["type"], np.array(kinds, np.uint32)) & (rows["addend"] == 0) & (rows["symbol"] > 0)]
    names = _read_names(elf, np.unique(calls["symbol"]))
    for symbol, word in zip(calls["symbol"].tolist(), calls["offset"].tolist(), strict=True):
        if symbol in names:
            found.by_name.setdefault(names[symbol], []).append(word)
    return found


def _read_names(elf: ElfFile, numbers: Array) -> dict[int, str]:
    """The names of dynamic symbols by their numbers."""
    for section in elf.sections:
        if section.kind == SHT_DYNSYM and section.link < len(elf.sections):
            rows = read_rows(elf, section.file_offset, min(section.size_bytes, _MAX_BYTES), SYMBOL)
            strings = elf.sections[section.link]
            text = elf.read(strings.file_offset, min(strings.size_bytes, _MAX_BYTES))
            known = numbers[numbers < len(rows)]
            places = zip(known.tolist(), rows["name"][known].tolist(), strict=True)
            return {number: _name_at(text, place) for number, place in places}
    return {}


def _name_at(text: bytes, place: int) -> str:
    return text[place : place + _MAX_NAME_BYTES].partition(b"\0")[0].decode("utf-8", "backslashreplace")
