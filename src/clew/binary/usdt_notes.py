"""Static probes that a program's authors put into it (USDT), as its notes describe them.

Runs in the controller. As sys/sdt.h of SystemTap writes them (User Space Probe Implementation): a note of the owner
`stapsdt` for each place. Addresses in notes are those that were linked; whoever moves a program's sections later leaves
the notes as they are, and the address of .stapsdt.base tells by how much. A file may be hostile: no more is read than
so much, and what makes no sense is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from clew.binary.elf import ElfFile
from clew.dataclass import dataclass

__all__ = ["UsdtNote", "read_usdt_notes"]

MAX_NOTES: Final = 1 << 17
_MAX_BYTES: Final = 1 << 26
_MAX_TEXT_BYTES: Final = 1 << 12
_OWNER, _KIND = b"stapsdt\0", 3
_NOTE = struct.Struct("<III")
_PLACES = struct.Struct("<QQQ")
_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True)
class UsdtNote:
    """A probe's place: link addresses of its instruction, and of a word of 16 bits that counts who wants it, 0: none.

    `arguments` is what the assembler made of them, such as `-4@OPERAND 8@OPERAND`.
    """

    provider: str
    name: str
    address: int
    semaphore: int
    arguments: str


def read_usdt_notes(elf: ElfFile) -> list[UsdtNote]:
    """The static probes of a file, in the order of its notes. Raises BinaryError."""
    section = elf.find_section(".note.stapsdt")
    if section is None:
        return []
    base = elf.find_section(".stapsdt.base")
    content = elf.read(section.file_offset, min(section.size_bytes, _MAX_BYTES))
    found = []
    for description in _iter_descriptions(content):
        note = _read_note(description, None if base is None else base.address)
        if note is not None:
            found.append(note)
        if len(found) >= MAX_NOTES:
            break
    return found


def _iter_descriptions(content: bytes) -> Iterator[bytes]:
    at = 0
    while at + _NOTE.size <= len(content):
        name_bytes, description_bytes, kind = _NOTE.unpack_from(content, at)
        name_at = at + _NOTE.size
        start = name_at + -(-name_bytes // 4) * 4
        if kind == _KIND and content[name_at : name_at + name_bytes] == _OWNER:
            yield content[start : start + description_bytes]
        at = start + -(-description_bytes // 4) * 4


def _read_note(description: bytes, base: int | None) -> UsdtNote | None:
    if len(description) < _PLACES.size:
        return None
    address, linked_base, semaphore = _PLACES.unpack_from(description)
    moved = 0 if base is None or not linked_base else base - linked_base
    texts = description[_PLACES.size :].split(b"\0")[:3]
    if len(texts) < 3 or not address or max(map(len, texts)) > _MAX_TEXT_BYTES:
        return None
    provider, name, arguments = (text.decode("utf-8", "backslashreplace") for text in texts)
    return UsdtNote(
        provider, name, address + moved & _MASK, semaphore + moved & _MASK if semaphore else 0, arguments.strip()
    )
