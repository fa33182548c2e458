"""Places in code that were found: what they are, and where in a file.

Runs in the controller.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from clew.address import FileOffset, ImageOffset
from clew.binary.demangle import demangle
from clew.dataclass import dataclass

__all__ = ["ImagePlace", "PlaceKind", "Resolution", "UsdtArgument", "UsdtProbe"]


class PlaceKind(Enum):
    """What a place is.

    CHOOSER is code that chooses the function that was meant (IFUNC), and is called once: no probe of calls belongs
    there.
    """

    ENTRY = "entry"
    OFFSET = "offset"
    LINE = "line"
    INLINED = "inlined"
    USDT = "usdt"
    CHOOSER = "chooser"


@dataclass(frozen=True)
class UsdtArgument:
    """An argument of a static probe: `operand` is the assembler's, `type` one of captures'.

    `expression` is captures' for its value; None where there is none, and `reason` says why.
    """

    operand: str
    type: str
    expression: str | None
    reason: str


@dataclass(frozen=True)
class UsdtProbe:
    """A static probe at a place. `semaphore` is the link address of 16 bits that count who wants it, None: none is."""

    provider: str
    name: str
    semaphore: int | None
    arguments: tuple[UsdtArgument, ...]


class ImagePlace(NamedTuple):
    """A place in the code of the file `image`.

    `address` is its link address, `offset` counts from the lowest page that is loaded, `file_offset` from the file's
    start (as uprobes do). `symbol` is the function that it is in, as the file has it, and `distance` how far behind its
    start; empty where none is known. `aliases` are other names of that function. `source` is a line (`a.c:42`) or a
    source file, where what was asked tells it.
    """

    image: str
    kind: PlaceKind
    address: int
    offset: ImageOffset
    file_offset: FileOffset
    symbol: str
    distance: int
    aliases: tuple[str, ...] = ()
    source: str = ""
    usdt: UsdtProbe | None = None
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called, for people: `ns::f(int)+0x10`; the address where no function is known."""
        if not self.symbol:
            return f"{self.address:#x}"
        return demangle(self.symbol) + (f"+{self.distance:#x}" if self.distance else "")


@dataclass(frozen=True)
class Resolution:
    """What was found for a place that was written: by address, each address once.

    `warnings` are of the whole. Where nothing was found, `missing` says why, and what may have been meant.
    """

    places: tuple[ImagePlace, ...]
    warnings: tuple[str, ...] = ()
    missing: str = ""
