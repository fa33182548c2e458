"""What events are called of places that a pattern means.

Runs in the controller. Pure.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from clew.binary.demangle import demangle
from clew.probing.locations.syntax import NamePlace, parse_location

if TYPE_CHECKING:
    from clew.probing.locations.in_process import ProcessPlace
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["name_of_place"]


@lru_cache(1024)
def _may_be_pattern(text: str) -> bool:
    where = parse_location(text)
    return isinstance(where, NamePlace) and where.may_be_pattern


def name_of_place(spec: ProbeSpec, place: ProcessPlace) -> str:
    """The name of the function there, if it was found by a pattern that was not given a name of its own; else empty."""
    if spec.name != spec.where or not _may_be_pattern(spec.where):
        return ""
    return demangle(place.place.symbol) if place.place is not None and place.place.symbol else ""
