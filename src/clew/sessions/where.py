"""What people call a function: an address, a symbol, or one of an image's, each with a distance if they like.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

from clew.binary.thread_locals import find_data_symbol
from clew.errors import BinaryError, ControlError, UsageError
from clew.protocol._constants import CALL_PLACES, RING_OPERATIONS
from clew.recording.control.places import parse_place
from clew.sessions.memory import bias_of

if TYPE_CHECKING:
    from clew.process.maps import Mapping
    from clew.sessions.memory import Images

__all__ = ["NOWHERE", "Where", "parse_where", "place_of_call", "ring_operation"]


class Where(NamedTuple):
    """A function that is meant: at an address, or of that name, in the images of a name or in all of them.

    `offset` is how far behind its start. With `image_offset` it is there in the image of that path, whatever its name.
    """

    text: str
    address: int | None
    image: str
    symbol: str
    offset: int
    image_offset: int | None = None

    @property
    def is_system_call(self) -> bool:
        """Whether it is a system call, which is made from anywhere."""
        return self.address is not None and self.address >= CALL_PLACES

    @property
    def is_ring_operation(self) -> bool:
        """Whether it is an operation of io_uring, which is a system call of its own here."""
        return self.address is not None and self.address >= CALL_PLACES + RING_OPERATIONS

    def find_in(self, images: Images, mappings: list[Mapping]) -> set[int]:
        """The addresses of it that lie in some mappings."""
        if self.address is not None and self.is_system_call:
            return {self.address}
        if self.address is not None:
            return {self.address} if any(one.start <= self.address < one.end for one in mappings) else set()
        found = set()
        for image in images.in_mappings(mappings, has_vdso=self.image_offset is not None):
            if self.image_offset is not None:
                place = image.base + self.image_offset
                found |= {place} if self.image == image.path and image.start <= place < image.end else set()
                continue
            symbols = images.symbols(image) if self.image in ("", image.name, image.path) else None
            if symbols is not None:
                places = (image.base + int(place) + self.offset for place, _ in symbols.find_by_name(self.symbol))
                found |= {place for place in places if image.start <= place < image.end}
        return found

    def find_data_in(self, images: Images, mappings: list[Mapping]) -> set[int]:
        """The addresses of variables that are called so, of images in some mappings."""
        found = set()
        for image in images.in_mappings(mappings) if self.address is None else ():
            elf = images.elf(image) if self.image in ("", image.name, image.path) else None
            with contextlib.suppress(BinaryError):
                symbol = None if elf is None else find_data_symbol(elf, self.symbol, is_thread_local=False)
                if elf is not None and symbol is not None:
                    found.add(bias_of(image, elf) + symbol.value + self.offset)
        return found


_SYSTEM_CALL: Final = "syscall:"
MAX_SYSTEM_CALLS: Final = 512
"""Numbers are below that: the runtime looks no further."""

NOWHERE: Final = Where("", None, "\0", "", 0)
"""Nothing, for no image has such a name."""


def _number_of(name: str) -> int:
    """That of a system call, by its name or as text."""
    from clew.process.processors.chosen import native_processor

    number = int(name) if name.isdecimal() else native_processor().architecture.find_call(name)
    if number is None or number >= MAX_SYSTEM_CALLS:
        raise UsageError(f"{name!r}: no system call is called so")
    return number


def place_of_call(number: int) -> Where:
    """The system calls of a number."""
    return Where(f"{_SYSTEM_CALL}{number}", CALL_PLACES + number, "", "", 0)


def ring_operation(opcode: int) -> Where:
    """The operations of io_uring of an opcode."""
    return Where(f"io_uring:{opcode}", CALL_PLACES + RING_OPERATIONS + opcode, "", "", 0)


def parse_where(where: str | int) -> Where:
    """`0x401136` or a number, `main`, `libc.so.6!malloc`, `main+0x10`, `syscall:openat`. Raises UsageError."""
    text = f"{where:#x}" if isinstance(where, int) else where.strip()
    if text.startswith(_SYSTEM_CALL):
        return Where(text, CALL_PLACES + _number_of(text.removeprefix(_SYSTEM_CALL)), "", "", 0)
    try:
        place = parse_place(text)
    except ControlError as error:
        raise UsageError(error.message) from error
    if isinstance(place, int):
        return Where(text, place, "", "", 0)
    image, _, symbol = place[0].rpartition("!")
    return Where(text, None, image, symbol, place[1])
