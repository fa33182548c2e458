"""Rankings of what ran most, made piece by piece.

Runs in the controller. Knows nothing of what is ranked: `clew.analysis.ranking.hottest` does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from clew.analysis.tables.arrays import Array, TraceArrays
from clew.store.columns import distinct
from clew.store.trace import Trace

__all__ = ["Ranking", "Row"]

Row = dict[str, Any]


class Ranking(ABC):
    """The `n` rows that are highest by `KEY`, a column of numbers.

    `add` every piece of a trace, each with whole processes, then ask once for `rows`. What is kept of a piece are the
    columns of its best rows; they are described at the end, when few are left.
    """

    KEY: ClassVar[str] = "instructions"
    LEAST: ClassVar[int] = 1
    """What `KEY` has to be for a row to be one."""
    TIES: ClassVar[tuple[str, ...]]
    """Columns by which equals are sorted, rising; no two rows have the same in all of them."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.total = 0
        """Instructions of all that was added."""
        self.image_rows: set[int] = set()
        """Images that code ran in, where the ranking takes note of them; rows of the whole trace."""
        self._whole: Trace | None = None
        self._kept: dict[str, Array] = {}

    def add(self, arrays: TraceArrays) -> None:
        """Take in a piece."""
        self._whole = arrays.trace.whole
        self.keep(self.collect(arrays))

    def keep(self, columns: dict[str, Array]) -> None:
        """Keep what is highest of `columns`, arrays of one length with KEY among them, and of what was kept before."""
        if self._kept:
            columns = {name: np.concatenate([self._kept[name], column]) for name, column in columns.items()}
        best = self.find_best(columns)
        self._kept = {name: column[best] for name, column in columns.items()}

    def find_best(self, columns: dict[str, Array]) -> Array:
        """Indices of the highest rows, the highest first."""
        values = columns[self.KEY]
        rows = np.flatnonzero(values >= self.LEAST)
        if len(rows) > 4 * self.n:
            # Only what reaches the n-th highest is to be sorted.
            rows = rows[values[rows] >= np.partition(values[rows], len(rows) - self.n)[len(rows) - self.n]]
        best: Array = rows[np.lexsort([*(columns[name][rows] for name in reversed(self.TIES)), -values[rows]])]
        return best[: self.n]

    def rows(self) -> list[Row]:
        """The ranking, the highest first."""
        if self._whole is None or not len(self._kept[self.KEY]):
            return []
        return self.describe(self._whole, {name: column.tolist() for name, column in self._kept.items()})

    def note_images(self, arrays: TraceArrays) -> None:
        """Take note of the images that code of a piece ran in."""
        images = distinct(arrays.block_image[arrays.block_executions > 0])
        self.image_rows.update(arrays.trace.whole_rows("images", images[images >= 0]).tolist())

    @abstractmethod
    def collect(self, arrays: TraceArrays) -> dict[str, Array]:
        """Columns of all rows of a piece; adds to `total`. What names rows of tables names those of the whole trace."""

    @abstractmethod
    def describe(self, trace: Trace, kept: dict[str, list[Any]]) -> list[Row]:
        """Rows for people and programs, of the columns kept."""

    def share(self, instructions: int) -> float:
        """A part of the total; of nothing 0."""
        return round(instructions / self.total, 6) if self.total else 0.0
