"""Writes a path's file anew, frame by frame, with time to make it small.

Runs in the controller. Knows frames, not what is in them.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from clew.store.path_frames import LEVEL, Frame, FrameKind, compress, encode_frame
from clew.store.path_index import PathFacts, PathIndex, encode_index, list_frames

__all__ = ["THOROUGH_LEVEL", "PathRewriter"]

THOROUGH_LEVEL: Final = 19
"""Of zstd: nobody waits."""


class PathRewriter:
    """Writes the file at `path`, which must not be in use. Leaving the context closes it. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "wb")  # noqa: SIM115 - closed with the context
        self._frames: list[Frame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, kind: FrameKind, start: int, size: int, content: bytes) -> None:
        """Append a frame."""
        payloads = [compress(content, level) for level in (LEVEL, THOROUGH_LEVEL)]
        payload = min(payloads, key=len)
        offset = self._file.tell()
        self._file.write(encode_frame(kind, start, size, payload, len(content)))
        self._frames.append(Frame(kind, start, size, len(payload), len(content), offset))

    def finish(self, facts: PathFacts, places: npt.NDArray[np.void]) -> int:
        """Make the file whole, and safe on the disk; its size."""
        index = PathIndex(facts, list_frames(self._frames), places)
        self._file.write(encode_index(index, self._file.tell(), THOROUGH_LEVEL))
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()
