"""A file in which places are looked for: opened once, and read as it is asked.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from clew.address import FileOffset
from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.known import architecture_of_machine
from clew.binary.chosen import ChosenWords, read_chosen_words
from clew.binary.code_symbols import CodeSymbols, read_code_symbols
from clew.binary.debug_file import DebugFile
from clew.binary.disassembly import instruction_starts
from clew.binary.elf import ElfFile, open_elf, open_elf_bytes
from clew.binary.frame_rules import FrameRules
from clew.binary.symbol_rows import read_rows
from clew.binary.symbols import SymbolTable, read_symbols
from clew.probing.locations.place import ImagePlace, PlaceKind

__all__ = ["ImageFile", "is_image_named", "open_image", "open_image_bytes"]

_PT_DYNAMIC, _DT_STRTAB, _DT_SONAME = 2, 5, 14
_MAX_DYNAMIC_BYTES: Final = 1 << 16
_MAX_NAME_BYTES: Final = 256
_MAX_FUNCTION_BYTES: Final = 1 << 20


class ImageFile:
    """The file `elf`, which people call `path`. What is read of it is kept. Its properties raise BinaryError."""

    def __init__(self, elf: ElfFile, path: str, readable_path: Path) -> None:
        self.elf, self.path, self._readable_path = elf, path, readable_path

    @cached_property
    def architecture(self) -> Architecture:
        """Whose code it has."""
        return architecture_of_machine(self.elf.machine) or Architecture("unknown")

    @cached_property
    def symbols(self) -> CodeSymbols:
        """All symbols of its code."""
        return read_code_symbols(self.elf)

    @cached_property
    def table(self) -> SymbolTable:
        """What its code is called, by addresses."""
        return read_symbols(self.elf)

    @property
    def readable_path(self) -> Path:
        """Where it can be opened again."""
        return self._readable_path

    @cached_property
    def debug(self) -> DebugFile:
        """Its debugging information, its own or what is installed for it."""
        return DebugFile(self._readable_path)

    @cached_property
    def rules(self) -> FrameRules:
        """How its frames are unwound."""
        return FrameRules(self.elf)

    @cached_property
    def chosen(self) -> ChosenWords:
        """The words that hold functions which code chose."""
        return read_chosen_words(self.elf)

    @cached_property
    def soname(self) -> str:
        """What it calls itself for those that are linked against it; empty: nothing."""
        segment = next((one for one in self.elf.segments if one.kind == _PT_DYNAMIC), None)
        if segment is None:
            return ""
        size_bytes = min(segment.file_bytes, _MAX_DYNAMIC_BYTES)
        entries = dict(read_rows(self.elf, segment.file_offset, size_bytes, np.dtype("<2u8")).reshape(-1, 2).tolist())
        strings = self.elf.find_file_offset(entries.get(_DT_STRTAB, 0))
        if strings is None or _DT_SONAME not in entries:
            return ""
        place = FileOffset(strings + min(entries[_DT_SONAME], 1 << 32))
        return self.elf.read(place, _MAX_NAME_BYTES).partition(b"\0")[0].decode("utf-8", "backslashreplace")

    def function_at(self, address: int) -> tuple[str, int]:
        """The function around a link address, as the file calls it, and how far behind its start that is."""
        offset = address - self.elf.lowest_address
        index = int(self.table.find(np.array([offset], np.uint64))[0]) if offset >= 0 else -1
        return ("", 0) if index < 0 else (self.table.name(index), offset - int(self.table.offsets[index]))

    def place(self, kind: PlaceKind, address: int, symbol: str | None = None, distance: int = 0) -> ImagePlace:
        """A place at a link address, which is code, in a function; None: in whichever is there."""
        if symbol is None:
            symbol, distance = self.function_at(address)
        file_offset = self.elf.find_file_offset(address)
        offset = self.elf.image_offset(address)
        return ImagePlace(self.path, kind, address, offset, file_offset or FileOffset(0), symbol, distance)

    def find_instruction(self, address: int, start: int) -> int | None:
        """Where the instruction begins that has the byte at a link address, if code is read from `start` on; None where
        that is not known."""
        if not start <= address < start + _MAX_FUNCTION_BYTES:
            return None
        at = self.elf.find_file_offset(start)
        longest = self.architecture.max_instruction_bytes
        code = b"" if at is None else self.elf.read(at, address - start + longest)
        before = [one for one in instruction_starts(code, start, self.architecture) if one <= address]
        return before[-1] if before and before[-1] + longest > address else None


def is_image_named(image: str, path: str, soname: str = "") -> bool:
    """Whether a file is meant by a name, a path, or a pattern of such; an empty one means all."""
    if not image or image == path:
        return True
    if "/" in image:
        return fnmatchcase(path, image)
    return any(name == image or fnmatchcase(name, image) for name in (os.path.basename(path), soname) if name)


@contextlib.contextmanager
def open_image(path: Path, name: str = "") -> Iterator[ImageFile]:
    """The file at `path`, which people call `name` if that is another. Raises BinaryError."""
    with open_elf(path) as elf:
        yield ImageFile(elf, name or str(path), path)


@contextlib.contextmanager
def open_image_bytes(content: bytes, name: str) -> Iterator[ImageFile]:
    """A file that is in memory, and called `name`. Raises BinaryError, OSError."""
    with open_elf_bytes(content, name) as elf:
        yield ImageFile(elf, name, Path(f"/proc/self/fd/{elf.descriptor}"))
