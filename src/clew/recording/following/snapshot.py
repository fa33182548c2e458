"""Counters kept while the target runs: what is left of them if clew is killed together with it.

Runs in the controller. A snapshot is a journal of its own beside the main one, replaced as a whole by the next.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from clew.errors import OutputError
from clew.recording.following.followed import FollowedProcess
from clew.recording.journal.sink import SnapshotJournal
from clew.recording.journal.writer import JournalWriter

__all__ = ["SNAPSHOT_NAME", "Snapshots"]

SNAPSHOT_NAME: Final = "counters.journal"
INTERVAL_SECONDS: Final = 1.0
MAX_SHARE: Final = 0.02
"""The part of the time that may go into snapshots: large ones are rarer."""


class Snapshots:
    """Snapshots of a recording in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / SNAPSHOT_NAME
        self._unfinished = directory / f".{SNAPSHOT_NAME}.unfinished"
        self._due_at = time.monotonic() + INTERVAL_SECONDS

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() >= self._due_at

    def write(self, processes: Iterable[FollowedProcess]) -> None:
        """Write one, to be published when the rings were emptied once more. Without room for it there is none."""
        start = time.monotonic()
        with contextlib.suppress(OSError, OutputError):
            self._unfinished.unlink(missing_ok=True)
            with JournalWriter(self._unfinished) as journal:
                for process in processes:
                    _keep(process, SnapshotJournal(journal, process.journal))
                is_whole = journal.failure is None
            if is_whole:
                os.replace(self._unfinished, self._path)
            else:
                self._unfinished.unlink()
        now = time.monotonic()
        self._due_at = now + max(INTERVAL_SECONDS, (now - start) / MAX_SHARE)

    def remove(self) -> None:
        """The trace is whole without them."""
        for path in (self._path, self._unfinished):
            path.unlink(missing_ok=True)


def _keep(process: FollowedProcess, journal: SnapshotJournal) -> None:
    process.attempt(lambda drain: drain.snapshot(journal))
    process.attempt(lambda drain: drain.poll())
