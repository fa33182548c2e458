"""Takes the records of ordered paths out of what the rings bring (mode `full`), and writes them to the paths' files.

Runs in the controller, beside the target. Also notes how far paths have come that tell nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from clew.recording.raw.path_records import PathRecords
from clew.recording.raw.path_tail import find_position
from clew.store.path_frames import FOLDER_NAME, file_name
from clew.store.path_writer import PathWriter

__all__ = ["PathDrain"]

Array = npt.NDArray[Any]

MAX_SAMPLE_NS: Final = 1_000_000
"""A sample that took longer is none."""


class PathDrain(PathRecords):
    """The path of one thread; the records of its ring go through `take`."""

    def __init__(self, folder: Path, process: int, stream: int) -> None:
        self.writer = PathWriter(folder / FOLDER_NAME / file_name(process, stream))
        super().__init__(self.writer)
        self._is_told = True
        self._sampled = (0, 0)

    def take(self, data: Array) -> Array:
        """The records in `data`, shape (n, RECORD_BYTES), that are not of a path; those that are are written."""
        self._is_told = True
        return super().take(data)

    def sample(self, read_cells: Callable[[], bytes]) -> None:
        """Note how far the path has come, if it told nothing since the last time; `read_cells` reads its cells."""
        is_told, self._is_told = self._is_told, False
        if is_told:
            return
        before_ns = time.time_ns()
        position = find_position(read_cells(), read_cells())
        ns = time.time_ns()
        # Who was kept waiting meanwhile does not know when it was.
        if position is not None and position > self._sampled and ns - before_ns < MAX_SAMPLE_NS:
            self._sampled = position
            self.writer.add_sample(ns, *position)

    def save(self) -> None:
        """Write what waits; more comes."""
        self.writer.save()

    def finish(self) -> None:
        """The thread ended, or the process."""
        self.writer.close()
