"""The bytes of a path's stream as they come, some of which may be missing.

Pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ByteStream"]

Array = npt.NDArray[Any]


class ByteStream:
    """What of a stream has come, and was not let go of: stretches of it, each with the byte that it begins at."""

    def __init__(self) -> None:
        self._stretches: list[tuple[int, list[Array]]] = [(0, [])]
        self.end = 0

    def add(self, start: int, data: bytes | memoryview) -> None:
        """A piece that begins at byte `start`; of what was there before the rest counts."""
        if start > self.end:
            # What lies between never comes.
            self._stretches.append((start, []))
            self.end = start
        further = np.frombuffer(bytes(data[max(self.end - start, 0) :]), np.uint8)
        if len(further):
            self._stretches[-1][1].append(further)
            self.end += len(further)

    def view(self, start: int, end: int | None) -> Array:
        """What is there from byte `start` on, up to `end`, u8, as far as nothing is missing; what lies before is let go
        of."""
        while len(self._stretches) > 1 and self._stretches[1][0] <= start:
            del self._stretches[0]
        first, pieces = self._stretches[0]
        data = pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.uint8), *pieces])
        data = data[max(start - first, 0) :]
        first = max(start, first)
        self._stretches[0] = first, [data]
        if first > start:
            return data[:0]
        return data if end is None else data[: max(end - start, 0)]
