"""The images of a process as Este's files tell of them: where they lie, what may be executed there, which are meant.

Runs in the controller. Files are looked at as they are now: one that is not what it was by its build-id tells nothing.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from clew.binary.elf import PF_X, PT_LOAD, SHF_EXECINSTR, ElfFile, open_elf
from clew.binary.symbols import SymbolTable, read_symbols
from clew.errors import BinaryError
from clew.export.este.config import EsteScope

__all__ = ["EsteImage", "ImageFiles", "find_section", "list_images"]

KEPT_FILES: Final = 16
"""Files whose symbols are kept: processes of one trace mostly load the same."""
_NONE: Final = np.zeros(0, np.uint64)
_NO_SYMBOLS: Final = SymbolTable(_NONE, _NONE, _NONE, b"", _NONE, (_NONE, _NONE, _NONE))


@dataclass(frozen=True)
class ImageFile:
    """What a file tells: image offsets between which it may be executed, and its symbols; `loss` is why it
    tells nothing though there is one, or was."""

    executable: tuple[tuple[int, int], ...]
    symbols: SymbolTable
    loss: str = ""


@dataclass(frozen=True)
class EsteImage:
    """An image: `idx` is its number in the order of loading, `image_id` the trace's; `executable` are pairs of
    addresses between which it may be executed."""

    idx: int
    image_id: int
    path: str
    base: int
    end: int
    executable: tuple[tuple[int, int], ...]
    is_main: bool
    is_whitelisted: bool
    file: ImageFile

    def to_json(self) -> dict[str, Any]:
        """As `binaries_loaded` has it."""
        return {
            "idx": self.idx,
            "path": self.path,
            "addr_range": [self.base, self.end],
            "addr_range_executable": [list(pair) for pair in self.executable],
            "is_main": self.is_main,
            "is_whitelisted": self.is_whitelisted,
        }


class ImageFiles:
    """Reads files, and keeps what some of them told."""

    def __init__(self) -> None:
        self.read = lru_cache(KEPT_FILES)(self._read)

    def _read(self, path: str, build_id: str | None) -> ImageFile:
        if not path.startswith("/") or path.startswith("/memfd:") or "\0" in path:
            return ImageFile((), _NO_SYMBOLS)
        try:
            with open_elf(Path(path)) as elf:
                if elf.build_id != build_id:
                    return ImageFile((), _NO_SYMBOLS, "is another file by now")
                return ImageFile(tuple(_list_executable(elf)), read_symbols(elf))
        except BinaryError as error:
            return ImageFile((), _NO_SYMBOLS, f"can't be read: {error.reason}")


def _list_executable(elf: ElfFile) -> list[tuple[int, int]]:
    """Image offsets of the sections with code, else of the segments; only what is loaded."""
    low, end = elf.lowest_address, elf.lowest_address + elf.loaded_bytes
    found = []
    with contextlib.suppress(BinaryError):
        found = [
            (section.address, section.address + section.size_bytes)
            for section in elf.sections
            if section.flags & SHF_EXECINSTR and section.size_bytes
        ]
    found = found or [
        (segment.address, segment.address + segment.memory_bytes)
        for segment in elf.segments
        if segment.kind == PT_LOAD and segment.flags & PF_X and segment.memory_bytes
    ]
    return [(first - low, last - low) for first, last in sorted(found) if low <= first < last <= end]


def list_images(
    rows: Iterable[dict[str, Any]], executable: str, scope: EsteScope, files: ImageFiles
) -> list[EsteImage]:
    """The images of a process, in the order in which they were loaded, of rows of the table `images`."""
    ordered = sorted(rows, key=lambda row: (row["loaded_ns"], row["image_id"]))
    main = next((row["image_id"] for row in ordered if row["path"] == executable), None)
    if main is None and ordered:
        # Its file has another name by now: it was there first.
        main = ordered[0]["image_id"]
    found = []
    for idx, row in enumerate(ordered):
        file = files.read(row["path"], row["build_id"])
        is_main = row["image_id"] == main
        found.append(
            EsteImage(
                idx,
                row["image_id"],
                row["path"],
                row["base"],
                row["base"] + row["size_bytes"],
                tuple((row["base"] + first, row["base"] + last) for first, last in file.executable),
                is_main,
                scope.is_whitelisted(row["path"], is_main=is_main),
                file,
            )
        )
    return found


def find_section(image: EsteImage | None, address: int) -> int:
    """The number of the executable range of an image that an address is in; -1 where there is none."""
    ranges: tuple[tuple[int, int], ...] = () if image is None else image.executable
    at = bisect_right(ranges, (address, 1 << 64)) - 1
    return at if at >= 0 and address < ranges[at][1] else -1
