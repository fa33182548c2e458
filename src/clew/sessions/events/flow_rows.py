"""Rows of events as a walk writes them, and of a path's events up to a place.

Runs in the controller, in the thread that makes events.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.binary.flow_walk import FlowWalk
from clew.protocol.codec import Stop

__all__ = ["copy_rows", "count_before", "fill"]

Array = npt.NDArray[Any]


def fill(walk: FlowWalk, rows: Array) -> tuple[int, Stop]:
    """Read on until there is no more, or hardly any room; how many events, and why there are no more."""
    n_rows, goes_on, stop = 0, True, Stop.ASKED
    while goes_on:
        n, stop = walk.read(rows[n_rows:])
        n_rows += n
        # Accesses come in pieces, and each ends a reading.
        goes_on = stop == Stop.ASKED and n > 0 and len(rows) - n_rows > len(rows) // 4
    return n_rows, stop


def copy_rows(rows: Array) -> Array:
    """Of its own memory. As bytes: numpy copies fields one by one."""
    copied: Array = rows.view(np.uint8).copy().view(rows.dtype)
    return copied


def count_before(records: Array, place: tuple[int, int]) -> int:
    """How many of a path's events, which are in its order, lie before a place of it."""
    before = records["surprise_bytes"] < place[0]
    before |= (records["surprise_bytes"] == place[0]) & (records["decisions"] < place[1])
    return int(before.sum())
