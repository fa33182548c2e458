"""Where something does not hold in a trace: how many places there are, and the first of them.

Runs in the controller. A trace is checked in pieces; what is found in each is put together here, so that it is the same
however the trace was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from clew.analysis.tables.arrays import Array, TraceArrays

__all__ = ["Places", "PlacesSoFar", "places_of_blocks", "places_of_edges", "places_of_rows"]

Key = tuple[int, ...]


@dataclass(frozen=True)
class Places:
    """Places of a piece: how many, and what is to be said of each, told apart and in the order of keys."""

    n: int = 0
    told: Iterable[tuple[Key, str]] = ()

    @classmethod
    def of(cls, told: Sequence[tuple[Key, str]]) -> Places:
        """Places that are all told."""
        return cls(len(told), told)


@dataclass
class PlacesSoFar:
    """Places of the pieces so far, of which the first few are kept."""

    max_examples: int
    n: int = 0
    _told: list[tuple[Key, str]] = field(default_factory=list)

    def add(self, places: Places) -> None:
        """Take in those of a piece."""
        self.n += places.n
        if places.n:
            self._told = sorted([*self._told, *islice(places.told, self.max_examples)])[: self.max_examples]

    @property
    def examples(self) -> list[str]:
        """The first few, in order."""
        return [text for _, text in self._told]


def places_of_rows(arrays: TraceArrays, table: str, wrong: Array, tell: Callable[[int, int], str]) -> Places:
    """The rows of a table where `wrong`; `tell` gets the number of the row in the piece, and in the whole trace."""
    rows = np.flatnonzero(wrong)
    whole = arrays.trace.whole_rows(table, rows)
    pairs = zip(_iter_numbers(rows), _iter_numbers(whole), strict=True)
    return Places(len(rows), (((in_whole,), tell(row, in_whole)) for row, in_whole in pairs))


def places_of_blocks(arrays: TraceArrays, wrong: Array, says: str) -> Places:
    """The blocks where `wrong`."""

    def tell(row: int, _: int) -> str:
        return f"block {arrays.block_id[row]} at {int(arrays.app_pc[row]):#x} (process {arrays.block_pid[row]}): {says}"

    return places_of_rows(arrays, "blocks", wrong, tell)


def places_of_edges(arrays: TraceArrays, wrong: Array, says: str) -> Places:
    """The edges where `wrong`."""
    return places_of_rows(arrays, "edges", wrong, lambda row, _: f"edge {arrays.edge_id[row]}: {says}")


def _iter_numbers(values: Array) -> Iterable[Any]:
    # Not `tolist`: there may be millions, of which a few are told.
    return map(int, values)
