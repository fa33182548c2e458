"""The memory of a session's target: bytes in it, images, and names of addresses.

Runs in the controller, in any thread: the kernel lets whoever may trace a process read its memory (proc(5)).
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from clew.address import Pid
from clew.binary.debug_file import DebugFile
from clew.binary.elf import ElfFile, open_elf
from clew.binary.frame_rules import FrameRules
from clew.binary.symbols import SymbolTable, read_symbols
from clew.binary.vdso import VDSO_NAME, open_vdso
from clew.dataclass import dataclass
from clew.errors import BinaryError, FilterError, TargetError
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping, read_maps
from clew.recording.options.filters import CodeMapping, image_base

__all__ = ["Image", "Images", "bias_of", "read_memory", "write_memory"]


def read_memory(pid: Pid, address: int, size_bytes: int) -> bytes:
    """What is at an address: as much of it as can be read. Raises TargetError if the process is gone."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            return _read_open(file.fileno(), address, size_bytes)
    except OSError as error:
        raise TargetError(pid, f"process {pid}: its memory can't be read: {error.strerror}") from error


def _read_open(descriptor: int, address: int, size_bytes: int) -> bytes:
    pieces = []
    while size_bytes > 0 and 0 <= address < 1 << 63:
        try:
            piece = os.pread(descriptor, size_bytes, address)
        except OSError:
            # Nothing at all: the kernel gives what comes before a gap by itself.
            break
        if not piece:
            break
        pieces.append(piece)
        address, size_bytes = address + len(piece), size_bytes - len(piece)
    return b"".join(pieces)


def write_memory(pid: Pid, address: int, data: bytes) -> None:
    """Change what is at an address, whatever is protected. Raises TargetError where not all of it could be."""
    try:
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as file:
            n_written = os.pwrite(file.fileno(), data, address)
    except (OSError, OverflowError) as error:
        raise TargetError(pid, f"process {pid}: nothing can be written at {address:#x}") from error
    if n_written != len(data):
        raise TargetError(pid, f"process {pid}: only {n_written} of {len(data)} bytes could be written at {address:#x}")


@dataclass(frozen=True)
class Image:
    """A loaded file: its code is from `start` up to `end`, and `base` is where its lowest byte is."""

    path: str
    base: int
    start: int
    end: int

    @property
    def name(self) -> str:
        """The file's name, without folders."""
        return Path(self.path).name


@dataclass
class _File:
    elf: ElfFile
    rules: FrameRules
    symbols: SymbolTable | None = None
    debug: DebugFile | None = None


def bias_of(image: Image, elf: ElfFile) -> int:
    """What an image's addresses are more than those in its file `elf`, which may be negative."""
    return image.base - elf.lowest_address


class Images:
    """The images of a process, and what their files say; files are read once. Closed with `close`."""

    def __init__(self) -> None:
        self._files: dict[str, _File | None] = {}
        self._open = contextlib.ExitStack()
        self.lock = threading.RLock()
        """Held by who asks debugging information: what was read is kept in it."""

    def close(self) -> None:
        """Let go of the files."""
        self._open.close()
        self._files.clear()

    def of(self, pid: Pid) -> list[Image]:
        """The images of a process now, by their addresses. Raises TargetError if it is gone."""
        try:
            mappings = read_maps(pid)
        except OSError as error:
            raise TargetError(pid, f"process {pid}: {error.strerror}") from error
        return self.in_mappings(mappings)

    def in_mappings(self, mappings: list[Mapping], *, has_vdso: bool = False) -> list[Image]:
        """The images whose code is in some mappings, one for each of these; the vDSO only where it is asked for."""
        found = []
        for mapping in mappings:
            if has_vdso and mapping.path == VDSO_NAME and mapping.protection & PROT_EXEC:
                found.append(Image(VDSO_NAME, mapping.start, mapping.start, mapping.end))
            if mapping.protection & PROT_EXEC and mapping.path.startswith("/"):
                with contextlib.suppress(FilterError, OSError):
                    base = image_base(CodeMapping.of(mapping))
                    found.append(Image(mapping.path, base, mapping.start, mapping.end))
        return found

    def symbols(self, image: Image) -> SymbolTable | None:
        """The symbols of an image; None if its file can't be read."""
        file = self._file(image.path)
        if file is not None and file.symbols is None:
            with contextlib.suppress(BinaryError, ValueError):
                file.symbols = read_symbols(file.elf)
        return None if file is None else file.symbols

    def loaded_bytes(self, image: Image) -> int | None:
        """How much of memory an image takes up from its base on, its data among it; None if its file can't be read."""
        file = self._file(image.path)
        return None if file is None else file.elf.loaded_bytes

    def elf(self, image: Image) -> ElfFile | None:
        """An image's file, which stays open; None if it can't be read."""
        file = self._file(image.path)
        return None if file is None else file.elf

    def debug(self, image: Image) -> DebugFile | None:
        """The debugging information of an image; None if its file can't be read."""
        file = self._file(image.path)
        if file is not None and file.debug is None:
            file.debug = DebugFile(Path(image.path))
        return None if file is None else file.debug

    def rules(self, image: Image) -> tuple[FrameRules, int] | None:
        """How to unwind frames of an image, and its `bias_of`; None if its file can't be read."""
        file = self._file(image.path)
        return None if file is None else (file.rules, bias_of(image, file.elf))

    def name(self, images: list[Image], address: int) -> tuple[str, str, int]:
        """Image and symbol in which an address lies, and how far behind its start; the image's start where no symbol is
        known, empty names where no image is."""
        image = next((one for one in images if one.start <= address < one.end), None)
        if image is None:
            return "", "", address
        symbols = self.symbols(image)
        offset = address - image.base
        if symbols is not None and len(symbols):
            import numpy as np

            index = int(symbols.find(np.array([offset], np.uint64))[0])
            if index >= 0:
                return image.name, symbols.name(index), offset - int(symbols.offsets[index])
        return image.name, "", offset

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            self._files[path] = None
            with contextlib.suppress(BinaryError, OSError, ValueError):
                opened = open_vdso() if path == VDSO_NAME else open_elf(Path(path))
                elf = self._open.enter_context(opened)
                self._files[path] = _File(elf, FrameRules(elf))
        return self._files[path]
