"""Sections of debugging information: of a file itself, or of the one that was installed for it, also compressed ones.

Runs in the controller. What is in them is not known here. Files may be hostile: no size in them is believed.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Final

from clew.binary.elf import ElfFile, Section, open_elf
from clew.binary.symbols import DEBUG_DIRECTORY
from clew.errors import BinaryError

__all__ = ["DebugSections", "find_debug_file"]

MAX_SECTION_BYTES: Final = 1 << 28
_SHF_COMPRESSED: Final = 0x800
_ZLIB, _ZSTD = 1, 2
_COMPRESSION = struct.Struct("<IIQQ")
_OLD_COMPRESSION = struct.Struct(">4sQ")


class DebugSections:
    """Sections of the ELF file at `path`, read when first asked for; empty where there is none that can be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._contents: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        """What is in the section `.debug_NAME`."""
        if name not in self._contents:
            try:
                with open_elf(self._path) as elf:
                    self._contents[name] = _read_section(elf, name)
            except BinaryError:
                self._contents[name] = b""
        return self._contents[name]


def find_debug_file(path: Path, name: str) -> Path | None:
    """The file with the section `.debug_NAME` of the program at `path`: itself, or the debug file installed for it."""
    try:
        with open_elf(path) as elf:
            if _find_section(elf, name) is not None:
                return path
            build_id = elf.build_id
        if not build_id or len(build_id) <= 2:
            return None
        debug_path = DEBUG_DIRECTORY / build_id[:2] / f"{build_id[2:]}.debug"
        with open_elf(debug_path) as elf:
            return debug_path if _find_section(elf, name) is not None else None
    except BinaryError:
        return None


def _find_section(elf: ElfFile, name: str) -> Section | None:
    return elf.find_section(f".debug_{name}") or elf.find_section(f".zdebug_{name}")


def _read_section(elf: ElfFile, name: str) -> bytes:
    section = _find_section(elf, name)
    if section is None or section.size_bytes > MAX_SECTION_BYTES:
        return b""
    content = elf.read(section.file_offset, section.size_bytes)
    if section.name.startswith(".z"):
        # As GNU tools wrote them once.
        mark, n_bytes = _OLD_COMPRESSION.unpack_from(content.ljust(_OLD_COMPRESSION.size, b"\0"))
        return _decompress(_ZLIB, content[_OLD_COMPRESSION.size :], n_bytes) if mark == b"ZLIB" else content
    if not section.flags & _SHF_COMPRESSED:
        return content
    kind, _, n_bytes, _ = _COMPRESSION.unpack_from(content.ljust(_COMPRESSION.size, b"\0"))
    return _decompress(kind, content[_COMPRESSION.size :], n_bytes)


def _decompress(kind: int, content: bytes, n_bytes: int) -> bytes:
    if n_bytes > MAX_SECTION_BYTES:
        return b""
    if kind == _ZLIB:
        try:
            return zlib.decompressobj().decompress(content, n_bytes + 1)
        except zlib.error:
            return b""
    if kind == _ZSTD:
        # Python has it from 3.14 on only.
        import pyarrow as pa

        try:
            return bytes(pa.decompress(content, decompressed_size=n_bytes, codec="zstd", asbytes=True))
        except (pa.ArrowException, OSError, ValueError):
            return b""
    return b""
