"""What describes a function that an image has: a description, a prototype of headers, or nothing.

Runs in the controller, in the thread that owns the target.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from clew.api.description import Function
from clew.api.prototypes import Prototypes

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.api.headers import Headers
    from clew.binary.elf import ElfFile
    from clew.sessions.debug_prototypes import DebugPrototypes

__all__ = ["FunctionDescriptions"]

_PT_INTERP: Final = 3
_ET_EXEC: Final = 2
_DT_FLAGS_1: Final = 0x6FFFFFFB
_DF_1_PIE: Final = 0x08000000
_MAX_BYTES: Final = 1 << 16


class FunctionDescriptions:
    """Finds them among `descriptions`, among prototypes, and in `headers` that somebody named."""

    def __init__(self, descriptions: Descriptions, headers: Headers | None = None) -> None:
        self._descriptions, self._headers = descriptions, headers
        self._prototypes = Prototypes(add_table=descriptions.add_table)
        self.undescribed: set[str] = set()
        """The functions that were asked for, and of which nobody knows the parameters."""

    def find(
        self, elf: ElfFile, library: str, names: Sequence[str], offset: int, debug: DebugPrototypes | None
    ) -> Function:
        """The function of the file called `library` that has some names, of which the first is preferred, and is
        `offset` bytes behind the base. `debug`: what debugging information says, which goes before headers."""
        is_alone = _has_all_inside(elf)
        for name in names:
            found = self._descriptions.find_function(library, name)
            if found is None and is_alone:
                found = self._descriptions.find_anywhere(name)
            if found is not None:
                return found
        found = None if debug is None else debug.find(offset + elf.lowest_address, names[0])
        if found is not None:
            return self._descriptions.hidden(found)
        for name in names:
            found = self._prototypes.find(library, name)
            if found is None and is_alone:
                found = self._prototypes.find_anywhere(name)
            if found is not None:
                return self._descriptions.hidden(found)
        found = None if self._headers is None else self._headers.find(names)
        return self._undescribed(names[0]) if found is None else self._descriptions.hidden(found)

    def by_name(self, name: str) -> Function:
        """The function of whatever library has one of that name."""
        found = self._descriptions.find_anywhere(name)
        if found is not None:
            return found
        found = self._prototypes.find_anywhere(name)
        if found is None and self._headers is not None:
            found = self._headers.find([name])
        return self._undescribed(name) if found is None else self._descriptions.hidden(found)

    def _undescribed(self, name: str) -> Function:
        self.undescribed.add(name)
        return Function(name, "Other", None)


def _has_all_inside(elf: ElfFile) -> bool:
    """Whether it is a program that has its libraries inside: nobody is asked for to load them."""
    if any(one.kind == _PT_INTERP for one in elf.segments):
        return False
    section = elf.find_section(".dynamic")
    if elf.kind == _ET_EXEC or section is None:
        return bool(elf.kind == _ET_EXEC)
    table = elf.read(section.file_offset, min(section.size_bytes, _MAX_BYTES))
    entries = struct.iter_unpack("<QQ", table[: len(table) // 16 * 16])
    return any(tag == _DT_FLAGS_1 and bool(value & _DF_1_PIE) for tag, value in entries)
