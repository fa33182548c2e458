"""Tables of a live picture whose rows keep their numbers, and know when they last changed.

Runs in the controller. Pure. Whoever has all rows as they were at some number of the sequence needs those that changed
since, whatever came between: so nothing is kept of what was sent, a slow reader gets one change instead of many, and
what a table takes is bounded by how many different rows there ever were.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clew.store.columns import Array

__all__ = ["LiveRows", "match_rows"]


class LiveRows:
    """Rows told apart by the columns `keys`, numbered in the order in which they came.

    `columns` has a column of each name, and `is_gone` tells which rows are there no more; a row that comes back has its
    number again. `fixed` are names of columns that stay as they were when a row came.
    """

    def __init__(self, dtypes: Mapping[str, str], keys: tuple[str, ...], fixed: tuple[str, ...] = ()) -> None:
        self._keys, self._fixed = keys, fixed
        self.columns: dict[str, Array] = {name: np.zeros(0, dtype) for name, dtype in dtypes.items()}
        self.is_gone: Array = np.zeros(0, bool)
        self.changed: Array = np.zeros(0, np.int64)
        self.counts: Array = np.zeros(0, np.float64)
        """A number of each row that changes more often than the others."""
        self.counted: Array = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.is_gone)

    def number(self, rows: Mapping[str, Array]) -> Array:
        """The numbers that `rows`, of which the keys matter, have, or would have when they were taken."""
        keys = [rows[name].astype(self.columns[name].dtype) for name in self._keys]
        number = match_rows([self.columns[name] for name in self._keys], keys)
        added = np.flatnonzero(number < 0)
        number[added] = len(self) + np.arange(len(added))
        return number

    def update(self, rows: Mapping[str, Array], sequence: int) -> Array:
        """Take `rows` for all that there are now; the numbers of these. What is not among them is gone."""
        new = {name: rows[name].astype(column.dtype) for name, column in self.columns.items()}
        number = self.number(new)
        added = np.flatnonzero(number >= len(self))
        is_gone = np.ones(len(self) + len(added), bool)
        is_gone[number] = False
        changed = np.append(self.changed, np.full(len(added), sequence))
        changed[: len(self)][self.is_gone != is_gone[: len(self)]] = sequence
        old = np.flatnonzero(number < len(self))
        for name, column in self.columns.items():
            grown = np.concatenate([column, new[name][added]])
            if name not in self._fixed:
                differs = grown[number[old]] != new[name][old]
                changed[number[old[differs]]] = sequence
                grown[number] = new[name]
            self.columns[name] = grown
        self.counts = np.append(self.counts, np.zeros(len(added)))
        self.counted = np.append(self.counted, np.zeros(len(added), np.int64))
        self.is_gone, self.changed = is_gone, changed
        return number

    def count(self, number: Array, counts: Array, sequence: int) -> None:
        """The counts of the rows `number`; all others have none."""
        now = np.zeros(len(self))
        now[number] = counts
        self.counted[now != self.counts] = sequence
        self.counts = now

    def find_changed(self, since: int) -> Array:
        """The rows (numbers) that changed after number `since` of the sequence."""
        return np.flatnonzero(self.changed > since)

    def find_counted(self, since: int) -> Array:
        """The rows whose counts did."""
        return np.flatnonzero(self.counted > since)


def match_rows(known: list[Array], wanted: list[Array]) -> Array:
    """For each of the different rows `wanted`, in columns, the row of `known` that is equal; -1 where there is none."""
    n_known, n_wanted = len(known[0]), len(wanted[0])
    found = np.full(n_wanted, -1)
    columns = [np.concatenate(pair) for pair in zip(known, wanted, strict=True)]
    order = np.lexsort(columns[::-1])
    same = np.ones(max(n_known + n_wanted - 1, 0), bool)
    for column in columns:
        in_order = column[order]
        same &= in_order[1:] == in_order[:-1]
    # The sort is stable: of two equal rows the known one is in front.
    at = np.flatnonzero(same)
    found[order[at + 1] - n_known] = order[at]
    return found
