"""What a capture may ask about the program at a place: its variables and its types. Pure: who knows them implements it.

Runs in the controller.
"""

from __future__ import annotations

from typing import Protocol

from clew.binary.debug_types import DebugType
from clew.binary.variable_places import Place
from clew.capture.types import CType
from clew.dataclass import dataclass

__all__ = ["Known", "Scope"]


@dataclass(frozen=True)
class Known:
    """A variable: its type, and where it is. `registers` are the names of general registers by DWARF's numbers."""

    type: DebugType | CType
    place: Place
    registers: tuple[str, ...]


class Scope(Protocol):
    """The names at one place. Each method raises CaptureError, with why it is not known, or BinaryError."""

    def find_variable(self, name: str) -> Known:
        """A variable, parameter, or global of the unit."""

    def find_thread_local(self, image: str, name: str) -> Known:
        """The thread's own instance of a variable, of the image of that name if one is given."""

    def find_type(self, name: str) -> DebugType | None:
        """`struct NAME`, `enum NAME`, or the name of another type."""
