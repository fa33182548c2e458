"""Room for events that is used again when nobody has any of it any more.

Runs in the controller, in the thread that makes events. New memory costs more than what is written to it: the kernel
fills each page with zeros first.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["BATCH_EVENTS", "RowPool"]

Array = npt.NDArray[Any]

BATCH_EVENTS: Final = 1 << 13
"""So many events are in a batch at most: few enough that a processor's cache holds them."""
MOST_KEPT: Final = 16

_UNUSED: Final = 3
"""References to an array that only the pool has: its list's, the loop's, and that of who asks."""


class RowPool:
    """Arrays of BATCH_EVENTS rows of a dtype. What of them is handed out, and all views of that, refer to the array
    itself."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self.dtype = dtype
        self._kept: list[Array] = []

    def take(self) -> Array:
        """An array that nobody else has, of its dtype; what is in it is of no moment."""
        for rows in self._kept:
            if sys.getrefcount(rows) <= _UNUSED:
                return rows
        rows = np.empty(BATCH_EVENTS, self.dtype)
        if len(self._kept) < MOST_KEPT:
            self._kept.append(rows)
        return rows
