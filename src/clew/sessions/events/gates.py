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

__all__ = ["NO_GATES", "Asked", "Gates", "Places", "parse_gates"]

Array = npt.NDArray[Any]

Places = str | int | Iterable[str | int]


@dataclass(frozen=True)
class Gates:
    """`opens` and `closes` are sorted addresses (u64) of instructions; `are_more_to_open`: others may come, of what is
    not loaded yet."""

    opens: Array
    closes: Array
    are_more_to_open: bool = False

    @property
    def is_open_at_first(self) -> bool:
        """Whether events are told of a thread that came to none of them."""
        return not len(self.opens) and not self.are_more_to_open

    def add(self, opens: Iterable[int], closes: Iterable[int]) -> Gates:
        """These and others."""
        more_opens, more_closes = (np.array(sorted(more), np.uint64) for more in (opens, closes))
        return Gates(np.union1d(self.opens, more_opens), np.union1d(self.closes, more_closes), self.are_more_to_open)

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


@dataclass(frozen=True)
class Asked:
    """What people ask for: gates that are known, and the names of others that are not loaded yet."""

    gates: Gates
    opens_later: list[str]
    closes_later: list[str]


def parse_gates(activate: Places | None, deactivate: Places | None, find: Callable[[str], int | None]) -> Asked:
    """Of addresses, or names that `find` knows: None of what may be loaded later. Raises UsageError, and what `find`
    raises."""
    (opens, opens_later), (closes, closes_later) = (_parse(places, find) for places in (activate, deactivate))
    both = np.intersect1d(opens, closes)
    if len(both):
        raise UsageError(f"{int(both[0]):#x}: events can't be told and not told from the same instruction on")
    return Asked(Gates(opens, closes, bool(opens_later)), opens_later, closes_later)


def _parse(places: Places | None, find: Callable[[str], int | None]) -> tuple[Array, list[str]]:
    if places is None:
        return NO_GATES.opens, []
    given = [places] if isinstance(places, str | int) else list(places)
    found, later = set(), []
    for place in given:
        address = find(place) if isinstance(place, str) else place
        if address is not None:
            found.add(address)
        else:
            later.append(str(place))
    if not given:
        raise UsageError("there is no place: give None for none")
    for address in found:
        if not 0 <= address < 1 << 64:
            raise UsageError(f"{address!r}: no address")
    return np.array(sorted(found), np.uint64), later
