"""Versions of an ELF file's dynamic symbols: which of several of one name others are bound to.

Runs in the controller. As the linker writes them (LSB, 10.7): a number for each symbol (.gnu.version), and the names
that a file gives to its own (.gnu.version_d). A file may be hostile: what makes no sense is no version.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from clew.binary.elf import ElfFile
from clew.binary.symbol_rows import read_rows

__all__ = ["read_versions"]

_SHT_DEFINITIONS, _SHT_NUMBERS = 0x6FFFFFFD, 0x6FFFFFFF
_HIDDEN: Final = 0x8000
_BASE: Final = 1
"""VER_FLG_BASE: the file's own name, which is no version."""
_MAX_BYTES: Final = 1 << 26
_MAX_DEFINITIONS: Final = 1 << 15
_MAX_NAME_BYTES: Final = 256
_DEFINITION = struct.Struct("<HHHHIII")


def read_versions(elf: ElfFile) -> list[str]:
    """Of each dynamic symbol `@@VERSION`, `@VERSION` where others are bound to it only if they ask, or nothing.

    Empty where the file has no versions. Raises BinaryError.
    """
    names = _read_definitions(elf)
    section = next((one for one in elf.sections if one.kind == _SHT_NUMBERS), None)
    if section is None or not names:
        return []
    size_bytes = min(section.size_bytes, _MAX_BYTES)
    numbers = read_rows(elf, section.file_offset, size_bytes, np.dtype("<u2")).tolist()
    known = {number: f"@@{name}" for number, name in names.items()}
    known |= {number | _HIDDEN: f"@{name}" for number, name in names.items()}
    return [known.get(number, "") for number in numbers]


def _read_definitions(elf: ElfFile) -> dict[int, str]:
    section = next((one for one in elf.sections if one.kind == _SHT_DEFINITIONS), None)
    if section is None or section.link >= len(elf.sections):
        return {}
    strings = elf.sections[section.link]
    content = elf.read(section.file_offset, min(section.size_bytes, _MAX_BYTES))
    text = elf.read(strings.file_offset, min(strings.size_bytes, _MAX_BYTES))
    names: dict[int, str] = {}
    at = 0
    for _ in range(_MAX_DEFINITIONS):
        if at + _DEFINITION.size > len(content):
            break
        _, flags, number, _, _, first, following = _DEFINITION.unpack_from(content, at)
        if not flags & _BASE and at + first + 4 <= len(content):
            (place,) = struct.unpack_from("<I", content, at + first)
            end = text.find(b"\0", place, place + _MAX_NAME_BYTES)
            if end > place:
                names[number] = text[place:end].decode("utf-8", "backslashreplace")
        if not following:
            break
        at += following
    return names
