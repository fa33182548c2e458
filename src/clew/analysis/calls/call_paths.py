"""Calls with the same calls around them taken together: a tree of names, with how many there are and how long they
took.

Runs in the controller.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clew.analysis.calls.call_nesting import CallNesting
from clew.analysis.tables.arrays import Array

__all__ = ["PATH_SORTS", "CallPaths"]

PATH_SORTS: Final = ("order", "calls", "total", "own", "name")
_WORD_BITS: Final = 34
"""Of a key: a name and a kind."""


class CallPaths:
    """By path, an index: `parent` (i64, -1 for those of a thread itself), `thread`, `kind` and `name` as CallRows have
    them, `calls`, `failed`, `total` and `own` (i64, ns), `injected` (u8, bits of what was done to any of its calls),
    `first` (the index of its first call), and `n_within`: how many paths it is the parent of."""

    def __init__(self, nesting: CallNesting, kept: Array) -> None:
        """Of the calls `kept` (bool), which has all that are around one of them."""
        rows = nesting.rows
        self._nesting = nesting
        chosen = np.flatnonzero(kept)
        by_depth = chosen[np.argsort(nesting.depth[chosen], kind="stable")]
        borders = np.flatnonzero(np.diff(nesting.depth[by_depth], prepend=-1, append=-1))
        path = np.full(len(rows) + 1, -1, np.int64)
        parents, firsts, n = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            calls = by_depth[start:end]
            above = path[nesting.parent[calls]]
            # Within a parent all are of its thread.
            whose = np.where(above < 0, rows.thread[calls], above).astype(np.int64)
            keys = (whose << _WORD_BITS) | (rows.name[calls].astype(np.int64) << 2) | np.minimum(rows.kind[calls], 3)
            _, first, which = np.unique(keys, return_index=True, return_inverse=True)
            path[calls] = n + which
            parents.append(above[first])
            firsts.append(calls[first])
            n += len(first)
        self.parent, self.first = np.concatenate(parents), np.concatenate(firsts)
        self.thread, self.kind, self.name = (column[self.first] for column in (rows.thread, rows.kind, rows.name))
        of = path[chosen]
        self.calls = np.bincount(of, minlength=n)
        self.failed = np.bincount(of[rows.failed[chosen]], minlength=n)
        self.total, self.own = (
            np.bincount(of, weights=column[chosen], minlength=n).astype(np.int64)
            for column in (nesting.took, nesting.own)
        )
        self.injected = np.zeros(n, np.uint8)
        if rows.injected is not None:
            np.bitwise_or.at(self.injected, of, rows.injected[chosen])
        self.n_within = np.bincount(self.parent[self.parent >= 0], minlength=n)

    def __len__(self) -> int:
        return len(self.parent)

    def within(self, path: int) -> Array:
        """Paths (i64) that one is the parent of."""
        return np.flatnonzero(self.parent == path)

    def of_thread(self, thread: int) -> Array:
        """Paths (i64) of a thread, an index of `tids`, that have no parent."""
        return np.flatnonzero((self.parent < 0) & (self.thread == thread))

    def sort(self, paths: Array, sort: str, *, descending: bool) -> Array:
        """The same sorted, one of PATH_SORTS; equal ones in the order of their first calls."""
        paths = paths[np.argsort(self.first[paths], kind="stable")]
        if sort == "order":
            return paths[::-1] if descending else paths
        if sort == "name":
            names = [*self._nesting.rows.names, ""]
            told = [names[name] for name in self.name[paths].tolist()]
            places = sorted(range(len(told)), key=lambda place: told[place], reverse=descending)
            return paths[places]
        by = {"calls": self.calls, "total": self.total, "own": self.own}[sort][paths]
        return paths[np.argsort(-by if descending else by, kind="stable")]
