"""Rows of a path's stream as they come, in pieces: what is in one is of whole blocks, but for the last one.

Pure. Nothing is copied that need not be: there is a lot of it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RowStream"]

Array = npt.NDArray[Any]


class RowStream:
    """What of a stream of rows of `dtype` has come, and was not let go of; some may be missing."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._dtype = dtype
        self._pieces: deque[Array] = deque()
        self._is_open = False
        """The last piece may end in the middle of a block."""
        self.start = self.end = 0
        """What is kept, in bytes of the stream."""
        self.limit: int | None = None
        """What lies behind it is not to be read yet."""

    def add(self, start: int, data: bytes | memoryview, *, is_open: bool = False) -> None:
        """A piece that begins at byte `start`, and is of whole blocks unless it `is_open`; of what was there before the
        rest counts. Before what is missing nothing is kept."""
        if start > self.end:
            self._pieces.clear()
            self.start = self.end = start
        size = self._dtype.itemsize
        further = memoryview(data)[max(self.end - start, 0) :]
        rows = np.frombuffer(further, self._dtype, len(further) // size)
        was_open, self._is_open = self._is_open, is_open
        if len(rows):
            if was_open and self._pieces:
                rows = np.concatenate([self._pieces.pop(), rows])
            self._pieces.append(rows)
            self.end = max(self.end, start + len(data) // size * size)

    def let_go(self, end: int) -> None:
        """Nobody asks for what lies before byte `end` any more."""
        size = self._dtype.itemsize
        while self._pieces and self.start < end:
            n_rows = min(len(self._pieces[0]), (end - self.start) // size)
            self.start += n_rows * size
            self._pieces[0] = self._pieces[0][n_rows:]
            if len(self._pieces[0]):
                break
            self._pieces.popleft()
        self.start = max(self.start, min(end, self.end))

    @property
    def rows(self) -> Array:
        """The first piece, of its dtype."""
        piece = self._pieces[0] if self._pieces else np.zeros(0, self._dtype)
        return piece if self.limit is None else piece[: self._n_before_limit]

    @property
    def has_more(self) -> bool:
        """Whether others follow."""
        return len(self._pieces) > 1 and (self.limit is None or self._n_before_limit > len(self._pieces[0]))

    @property
    def is_any(self) -> bool:
        """Whether there is anything to be read."""
        return self.start < (self.end if self.limit is None else min(self.limit, self.end))

    @property
    def _n_before_limit(self) -> int:
        """Rows up to the limit."""
        return max((self.limit or 0) - self.start, 0) // self._dtype.itemsize
