"""What --include and --exclude mean, and which addresses of a loaded image they hold.

Runs in the controller. Three forms: an image by name or path (`libc.so*`, `/opt/app/*`, `./tool`), a symbol of an image
(`libc.so.6!malloc`), a range of addresses (`0x401000-0x402000`). Of several filters that hold an address an exclude
beats an include. How the runtime uses the ranges is not known here.
"""

from __future__ import annotations

import fnmatch
import os
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from clew.address import FileOffset, RemoteAddress
from clew.binary.architectures.known import native_architecture
from clew.dataclass import dataclass
from clew.errors import ClewError, FilterError
from clew.process.maps import Mapping
from clew.process.shared_memory import FilterRow

__all__ = ["EVERYTHING", "CodeMapping", "Filter", "FilterSet", "image_base", "parse_filter", "parse_filters"]

MAX_ADDRESS: Final = 1 << 64

_RANGE = re.compile(r"(0x[0-9a-fA-F]+|[0-9]+)-(0x[0-9a-fA-F]+|[0-9]+)")
_PT_LOAD: Final = 1
_PF_X: Final = 1
_HEAD_BYTES: Final = 4096
"""Of a file: program headers are within, as a rule."""

SymbolFinder = Callable[[str, str], list[tuple[int, int]]]
"""Of a path and a symbol: (image offset, size in bytes) of each place that it names."""


@dataclass(frozen=True)
class CodeMapping:
    """A piece of executable memory: from `start` up to `end`, `file_offset` of `path` at its start."""

    path: str
    start: RemoteAddress
    end: RemoteAddress
    file_offset: FileOffset

    @classmethod
    def of(cls, mapping: Mapping) -> CodeMapping:
        """That of a mapping of a process."""
        return cls(mapping.path, mapping.start, mapping.end, mapping.file_offset)


@dataclass(frozen=True)
class Filter:
    """One filter. Of `image` (a glob), `symbol` and `addresses`: the image, the image and the symbol, or the range."""

    text: str
    image: str | None = None
    symbol: str | None = None
    addresses: tuple[int, int] | None = None

    def matches_image(self, path: str) -> bool:
        """Whether an image of this path is meant; by its whole path, or by its last part."""
        if self.image is None:
            return False
        names = (path, path.rsplit("/", 1)[-1])
        return any(name == self.image or fnmatch.fnmatchcase(name, self.image) for name in names if name)


EVERYTHING: Final = Filter("everything", addresses=(0, MAX_ADDRESS - 1))
"""Holds all code."""


class FilterSet:
    """All filters of a session."""

    def __init__(
        self, include: Sequence[Filter], exclude: Sequence[Filter], find_symbol: SymbolFinder | None = None
    ) -> None:
        self.include, self.exclude = include, exclude
        self.later: list[tuple[Filter, bool]] = []
        """What was asked for while the target ran, in that order: whether what it holds is recorded from then on."""
        self._find_symbol = find_symbol or _find_symbol
        self._used: set[str] = set()
        self.warnings: list[str] = []

    @property
    def is_active(self) -> bool:
        """Whether there is any filter."""
        return bool(self.include or self.exclude or self.later)

    @property
    def is_included_by_default(self) -> bool:
        """Whether code that no filter holds is recorded."""
        return not self.include

    def unused(self) -> list[str]:
        """The filters that held nothing so far."""
        return [item.text for item in (*self.include, *self.exclude) if item.text not in self._used]

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        """All filters as people gave them: what is included, what is excluded."""
        later = [[item.text for item, is_included in self.later if is_included == wanted] for wanted in (True, False)]
        return [item.text for item in self.include] + later[0], [item.text for item in self.exclude] + later[1]

    def address_rows(self) -> list[FilterRow]:
        """Ranges of the filters that name addresses."""
        return [
            (*item.addresses, is_included)
            for item, is_included in self._ordered()
            if item.addresses is not None and self._note(item)
        ]

    def rows_for(self, mapping: CodeMapping) -> list[FilterRow]:
        """Ranges that the filters hold in a piece of executable memory, in the order in which they count.

        Address ranges that lie in it come again, since of several ranges the last counts.
        """
        return [row for item, is_included in self._ordered() for row in self.rows_of(item, is_included, mapping)]

    def _ordered(self) -> list[tuple[Filter, bool]]:
        """All filters in the order in which they count."""
        return [(item, True) for item in self.include] + [(item, False) for item in self.exclude] + self.later

    def rows_of(self, item: Filter, is_included: bool, mapping: CodeMapping) -> list[FilterRow]:
        """Ranges that one filter holds in a piece of executable memory."""
        if item.addresses is not None:
            start, end = max(item.addresses[0], mapping.start), min(item.addresses[1], mapping.end)
            return [(start, end, is_included)] if start < end else []
        if item.matches_image(mapping.path):
            return [(start, end, is_included) for start, end in self._ranges(item, mapping)]
        return []

    def _ranges(self, item: Filter, mapping: CodeMapping) -> list[tuple[int, int]]:
        if item.symbol is None:
            self._note(item)
            return [(mapping.start, mapping.end)]
        try:
            base = image_base(mapping)
            places = self._find_symbol(mapping.path, item.symbol)
        except (ClewError, OSError) as error:
            self.warnings.append(f"filter {item.text!r}: {error}")
            return []
        ranges = [
            (max(base + offset, mapping.start), min(base + offset + max(size, 1), mapping.end))
            for offset, size in places
        ]
        ranges = [(start, end) for start, end in ranges if start < end]
        if ranges:
            self._note(item)
        return ranges

    def _note(self, item: Filter) -> bool:
        self._used.add(item.text)
        return True


def parse_filter(text: str) -> Filter:
    """Parse one filter. Raises FilterError."""
    if not text or "\0" in text:
        raise FilterError(text, "empty; give an image (libc.so*), a symbol (libc.so.6!malloc) or addresses (0x10-0x20)")
    match = _RANGE.fullmatch(text)
    if match:
        start, end = int(match[1], 0), int(match[2], 0)
        if not start < end < MAX_ADDRESS:
            raise FilterError(text, "the second address has to be above the first, and below 2^64")
        return Filter(text, addresses=(start, end))
    image, separator, symbol = text.partition("!")
    if separator and not (image and symbol):
        raise FilterError(text, "a symbol is written IMAGE!SYMBOL, for example libc.so.6!malloc")
    if "/" in image and not image.startswith(("/", "*")):
        image = os.path.abspath(image)
    return Filter(text, image=image, symbol=symbol or None)


def parse_filters(texts: Iterable[str]) -> tuple[Filter, ...]:
    """Parse several. Raises FilterError."""
    return tuple(parse_filter(text) for text in texts)


def image_base(mapping: CodeMapping) -> int:
    """Address of the image's lowest loaded byte, from its file's program headers. Raises FilterError, OSError."""
    # The program may have put a FIFO in its place, whose other end nobody opens.
    descriptor = os.open(mapping.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        head = file.read(_HEAD_BYTES)
    if len(head) < 64 or not head.startswith(b"\x7fELF\x02\x01"):
        raise FilterError(mapping.path, "not a 64-bit ELF file")
    (table_offset,) = struct.unpack_from("<Q", head, 32)
    entry_bytes, count = struct.unpack_from("<HH", head, 54)
    if entry_bytes != 56 or table_offset + 56 * count > len(head):
        raise FilterError(mapping.path, "its program headers are not where they are expected")
    headers = [struct.unpack_from("<IIQQQQQQ", head, table_offset + 56 * index) for index in range(count)]
    loads = [header for header in headers if header[0] == _PT_LOAD]
    page_bytes = native_architecture().page_bytes
    # Segments may share a page of the file, as lld makes them: it is code that was mapped.
    for _, _, offset, address, _, in_file, _, _ in sorted(loads, key=lambda header: not header[1] & _PF_X):
        page_offset = offset // page_bytes * page_bytes
        if page_offset <= mapping.file_offset < offset + in_file:
            lowest = min(header[3] for header in loads) // page_bytes * page_bytes
            base: int = mapping.start - (address - offset + mapping.file_offset - lowest)
            return base
    raise FilterError(mapping.path, "no segment of it is mapped there")


def _find_symbol(path: str, symbol: str) -> list[tuple[int, int]]:
    # Late: symbols are read only where a filter names one, and reading them takes numpy.
    from clew.binary.symbols import load_symbols

    return [(int(offset), int(size)) for offset, size in load_symbols(Path(path)).find_by_name(symbol)]
