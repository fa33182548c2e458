"""Addresses of code from which on a thread's events are told, and others from which on they are not.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.protocol.codec import Gate

__all__ = ["NO_GATES", "Gates", "Places", "parse_gates"]

Array = npt.NDArray[Any]

Places = str | int | Iterable[str | int]


@dataclass(frozen=True)
class Gates:
    """`opens` and `closes` are sorted addresses (u64) of instructions."""

    opens: Array
    closes: Array

    @property
    def is_open_at_first(self) -> bool:
        """Whether events are told of a thread that came to none of them."""
        return not len(self.opens)

    @property
    def places(self) -> Array:
        """All of them (u64)."""
        return np.concatenate([self.opens, self.closes])

    def at(self, starts: Array) -> Array:
        """What each block that begins at one of `starts` (u64) is: a `Gate` (u8)."""
        found = np.full(len(starts), Gate.NONE, np.uint8)
        found[np.isin(starts, self.opens)] = Gate.OPENS
        found[np.isin(starts, self.closes)] = Gate.CLOSES
        return found


NO_GATES: Final = Gates(np.zeros(0, np.uint64), np.zeros(0, np.uint64))


def parse_gates(activate: Places | None, deactivate: Places | None, find: Callable[[str], int]) -> Gates:
    """What people ask for: addresses, or names that `find` knows. Raises UsageError, and what `find` raises."""
    opens, closes = (_parse(places, find) for places in (activate, deactivate))
    both = np.intersect1d(opens, closes)
    if len(both):
        raise UsageError(f"{int(both[0]):#x}: events can't be told and not told from the same instruction on")
    return Gates(opens, closes)


def _parse(places: Places | None, find: Callable[[str], int]) -> Array:
    if places is None:
        return NO_GATES.opens
    given = [places] if isinstance(places, str | int) else list(places)
    found = {find(place) if isinstance(place, str) else place for place in given}
    if not found:
        raise UsageError("there is no place: give None for none")
    for address in found:
        if not 0 <= address < 1 << 64:
            raise UsageError(f"{address!r}: no address")
    return np.array(sorted(found), np.uint64)
