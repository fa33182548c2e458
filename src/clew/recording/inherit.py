"""What a fork's child takes over from its parent: the records of the code that it found in its copy of the cache.

Runs in the controller, after the targets ended. Works on whole records; what else is in them is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import (
    DYNAMIC_EDGE_RECORD,
    FRAGMENT_RECORD,
    INVALIDATE_RECORD,
    ExitKind,
    Mode,
    RecordKind,
)

__all__ = ["Announced"]

Array = npt.NDArray[Any]

_PLACES = (RecordKind.IMAGE, RecordKind.UNMAP)


class Announced:
    """The records of a process, shape (n, 64), looked through once for all its children."""

    def __init__(self, records: npt.NDArray[np.uint8]) -> None:
        self._records = records
        head = records[:, :4].copy().view("<u2")
        kind = head[:, 0]
        # All of these have their time stamp at the same place.
        self._tsc = records[:, 24:32].copy().view("<u8")[:, 0]
        position = np.arange(len(records))
        owner = np.where(kind == RecordKind.CONTINUATION, 0, position)
        self._owner = np.maximum.accumulate(owner) if len(records) else owner
        self._is_place = np.isin(kind, _PLACES)
        self._fragment_at = np.flatnonzero(kind == RecordKind.FRAGMENT)
        self._edge_at = np.flatnonzero(kind == RecordKind.DYNAMIC_EDGE)
        self._invalidate_at = np.flatnonzero(kind == RecordKind.INVALIDATE)
        fragments = records[self._fragment_at].reshape(-1).view(FRAGMENT_RECORD)
        edges = records[self._edge_at].reshape(-1).view(DYNAMIC_EDGE_RECORD)
        invalidates = records[self._invalidate_at].reshape(-1).view(INVALIDATE_RECORD)
        self._counter = fragments["counter_index"].astype(np.int64)
        self._edge_counter = edges["counter_index"].astype(np.int64)
        self._app_pc = fragments["app_pc"].copy()
        calls = np.isin(fragments["exit_kind"], (ExitKind.CALL, ExitKind.INDIRECT_CALL))
        self._call = np.flatnonzero(calls)
        self._return_point = (fragments["app_pc"] + fragments["size_bytes"])[calls]
        self._fragments = _Places(fragments["fragment_id"])
        self._source = self._fragments.find(edges["source_fragment_id"])
        self._invalidated = self._fragments.find(invalidates["fragment_id"])

    def find_inherited(
        self,
        before_tsc: int,
        mode: Mode,
        counters: Sequence[npt.NDArray[np.uint64]],
        own: npt.NDArray[np.uint8],
    ) -> npt.NDArray[np.uint8]:
        """Those that say something of a child, with their continuations.

        They are of before the fork, `before_tsc`, and of code that the child's threads, which left `counters`, ran;
        `own` are the records that it wrote itself. In `coverage` the child tells of its code itself.
        """
        kept = self._is_place.copy()
        if mode is not Mode.COVERAGE:
            self._choose_executed(kept, _add_up(counters), own)
        kept &= self._tsc < before_tsc
        inherited: npt.NDArray[np.uint8] = self._records[kept[self._owner]]
        return inherited

    def find_before(self, tsc: int) -> npt.NDArray[np.uint8]:
        """All that a child forked at a time stamp found, for the children that it had itself."""
        kept = self._is_place.copy()
        for at in (self._edge_at, self._fragment_at, self._invalidate_at):
            kept[at] = True
        kept &= self._tsc < tsc
        found: npt.NDArray[np.uint8] = self._records[kept[self._owner]]
        return found

    def _choose_executed(self, kept: Array, total: Array, own: npt.NDArray[np.uint8]) -> None:
        """Mark what is of code that ran, or of calls that ended in it: a child returns from what its parent called."""
        was_taken = _has_counted(total, self._edge_counter)
        has_run = _has_counted(total, self._counter) | _has_counted(total, self._counter + 1)
        kind = own[:, :2].copy().view("<u2")[:, 0]
        found = own[kind == RecordKind.DYNAMIC_EDGE].reshape(-1).view(DYNAMIC_EDGE_RECORD)["source_fragment_id"]
        source = np.concatenate([self._source[was_taken], self._fragments.find(found)])
        has_run[source[source >= 0]] = True
        starts = own[kind == RecordKind.FRAGMENT].reshape(-1).view(FRAGMENT_RECORD)["app_pc"]
        resumed = np.isin(self._return_point, np.concatenate([self._app_pc[has_run], starts]))
        has_run[self._call[resumed]] = True
        kept[self._edge_at] = was_taken
        kept[self._fragment_at] = has_run
        kept[self._invalidate_at] = (self._invalidated >= 0) & has_run[self._invalidated] if len(has_run) else False


class _Places:
    """Where numbers are in an array."""

    def __init__(self, numbers: Array) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._order]

    def find(self, wanted: Array) -> Array:
        """Indices, -1 where there is none."""
        if not len(self._sorted):
            return np.full(len(wanted), -1)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        return np.where(self._sorted[at] == wanted, self._order[at], -1)


def _has_counted(total: Array, index: Array) -> Array:
    """Whether the counter at each index counted something."""
    inside = index < len(total)
    counted: Array = inside & total[np.where(inside, index, 0)] if len(total) else np.zeros(len(index), bool)
    return counted


def _add_up(counters: Sequence[npt.NDArray[np.uint64]]) -> Array:
    """Which counters any of the threads incremented."""
    total = np.zeros(max((len(values) for values in counters), default=0), bool)
    for values in counters:
        total[: len(values)] |= values > 0
    return total
