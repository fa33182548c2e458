"""The processes of a journal, as it grows.

Runs in the controller, in whatever thread reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.journal.tail import JournalTail
from clew.recording.live.process import LiveProcess

__all__ = ["LiveProcesses"]


class LiveProcesses:
    """Of the journal at `path`. Raises OSError if there is none."""

    def __init__(self, path: Path) -> None:
        self._tail = JournalTail(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        self.by_number: dict[int, LiveProcess] = {}

    def find(self, number: int) -> LiveProcess:
        """The process of that number, which may begin with it."""
        process = self.by_number.get(number)
        if process is None:
            process = self.by_number[number] = LiveProcess(number, self.by_number)
        return process

    def iter_new(self) -> Iterator[tuple[LiveProcess, Frame]]:
        """What has come since, each with the process that has taken it.

        Raises OSError; ValueError, IndexError, KeyError or OverflowError for what does not fit.
        """
        for frame in self._tail.iter_new():
            # The session's own is of no process.
            if frame.kind != FrameKind.SESSION:
                process = self.find(frame.process)
                process.take(frame)
                yield process, frame

    def close(self) -> None:
        """Let go of the journal, and of what processes have in shared memory."""
        self._tail.close()
        for process in self.by_number.values():
            process.stop_reading()
