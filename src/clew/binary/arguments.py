"""Where a function's arguments and its result are, by their types: what a platform's calling convention says.

Runs in the controller. Which convention that is, an architecture says (`Architecture.place_arguments`).
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.binary.debug_types import DebugType
from clew.binary.variable_places import Place
from clew.dataclass import dataclass

__all__ = ["Signature", "Signed"]


@dataclass(frozen=True)
class Signature:
    """The types of a function's parameters, in their order, and of its result; `by_reference` says of which parameters
    the function is given the address, though it has another type."""

    parameters: Sequence[DebugType]
    by_reference: Sequence[bool]
    result: DebugType


@dataclass(frozen=True)
class Signed:
    """Of each parameter where it is when the function begins, or why that is not known; likewise of the result, when it
    has returned."""

    parameters: list[Place | str]
    result: Place | str
