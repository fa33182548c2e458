"""Which rows of a table are meant: ranges of them.

Runs in the controller. A process' rows are together in every table that clew writes, so there are few ranges; where
that is not so, there are as many as it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from clew.dataclass import dataclass
from clew.store.columns import Array

__all__ = ["RowRanges"]

_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True)
class RowRanges:
    """Rows from each of `first` up to `last` of the same index, both i64. They rise, and do not overlap or touch."""

    first: Array
    last: Array

    @classmethod
    def join(cls, first: Sequence[Array], last: Sequence[Array]) -> RowRanges:
        """The rows of ranges in any order that do not overlap."""
        firsts, lasts = np.concatenate([_NONE, *first]), np.concatenate([_NONE, *last])
        order = np.argsort(firsts)
        firsts, lasts = firsts[order], lasts[order]
        touches = firsts[1:] == lasts[:-1]
        return cls(
            firsts[np.concatenate(([True], ~touches))[: len(firsts)]],
            lasts[np.concatenate((~touches, [True]))[: len(lasts)]],
        )

    def __len__(self) -> int:
        """How many rows there are."""
        return int((self.last - self.first).sum())

    def within(self, first: int, last: int) -> RowRanges:
        """Those of the rows that lie from `first` up to `last`."""
        start, stop = np.searchsorted(self.last, first, "right"), np.searchsorted(self.first, last)
        return RowRanges(np.maximum(self.first[start:stop], first), np.minimum(self.last[start:stop], last))

    def rows(self) -> Array:
        """All rows, one by one."""
        lengths = self.last - self.first
        before = np.cumsum(lengths) - lengths
        rows: Array = np.arange(lengths.sum()) + np.repeat(self.first - before, lengths)
        return rows

    def locate(self, index: Array) -> Array:
        """Of each of the rows its number, by its index among them; -1 stays."""
        ends = np.cumsum(self.last - self.first)
        if not len(ends):
            return np.full(len(index), -1)
        at = np.minimum(np.searchsorted(ends, index, "right"), len(ends) - 1)
        return np.where(index < 0, -1, index - ends[at] + self.last[at])
