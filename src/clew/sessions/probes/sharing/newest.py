"""The newest captures of each thread, where a flight recorder's rings are read for others as well.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.protocol._constants import RECORD_BYTES
from clew.protocol._generated import CAPTURE_RECORD
from clew.sessions.capture_sink import Captured

__all__ = ["NewestCaptures"]

Array = npt.NDArray[Any]
_SLACK: Final = 2
"""So many times as much is kept as is wanted, before what is older is let go."""


class NewestCaptures:
    """`most_bytes` of each thread, as its ring would have them."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: list[tuple[int, Captured]] = []
        self._n_bytes: dict[tuple[int, int], int] = {}

    def add(self, captured: Iterable[tuple[int, Captured]]) -> None:
        """Have these as well, by the numbers of what was captured."""
        self._count(captured)
        if any(n > _SLACK * self._most_bytes for n in self._n_bytes.values()):
            self._trim()

    def take(self) -> list[tuple[int, Captured]]:
        """The newest, none of them again."""
        self._trim()
        kept, self._kept = self._kept, []
        self._n_bytes.clear()
        return kept

    def _trim(self) -> None:
        if not self._kept:
            return
        sizes = [len(one.heads) for _, one in self._kept]
        heads = [_heads(one) for _, one in self._kept]
        tsc = np.concatenate([own["tsc"] for own in heads])
        tids = np.concatenate([own["tid"] for own in heads]).astype(np.uint64)
        pids = np.repeat(np.array([one.pid for _, one in self._kept], np.uint64), sizes)
        each = np.repeat(np.array([_bytes_each(one) for _, one in self._kept], np.int64), sizes)
        threads = pids << np.uint64(32) | tids
        # From the newest on, thread by thread: how many bytes are there up to each.
        order = np.lexsort((~tsc, threads))
        sums = np.cumsum(each[order])
        starts = np.flatnonzero(np.append(True, threads[order][1:] != threads[order][:-1]))
        before = np.repeat((sums - each[order])[starts], np.diff(np.append(starts, len(order))))
        is_kept = np.zeros(len(order), bool)
        is_kept[order] = sums - before <= self._most_bytes
        self._n_bytes.clear()
        kept = []
        for (number, one), mask in zip(self._kept, np.split(is_kept, np.cumsum(sizes)[:-1]), strict=True):
            if mask.any():
                kept.append((number, Captured(one.pid, one.heads[mask], one.payloads[mask])))
        self._kept = []
        self._count(kept)

    def _count(self, captured: Iterable[tuple[int, Captured]]) -> None:
        for number, one in captured:
            self._kept.append((number, one))
            tids, counts = np.unique(_heads(one)["tid"], return_counts=True)
            for tid, n in zip(tids.tolist(), counts.tolist(), strict=True):
                key = one.pid, tid
                self._n_bytes[key] = self._n_bytes.get(key, 0) + n * _bytes_each(one)


def _heads(captured: Captured) -> Array:
    # What was told lies anywhere in what came.
    return np.ascontiguousarray(captured.heads).view(CAPTURE_RECORD)[:, 0]


def _bytes_each(captured: Captured) -> int:
    return RECORD_BYTES + int(captured.payloads.shape[1])
