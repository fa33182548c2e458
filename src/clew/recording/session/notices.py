"""What people are told while a recording goes on: that only descendants still run, that the disk is full.

Runs in the controller. How it is printed is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clew.address import Pid
from clew.recording.following.processes import Processes
from clew.recording.journal.writer import JournalWriter
from clew.recording.session.interrupts import InterruptGuard

__all__ = ["Descendants", "JournalRoom"]

TELL_AFTER_SECONDS: Final = 1.0


class Descendants:
    """Those of process `pid`, which may go on when it has ended. `tell` gets lines for people."""

    def __init__(self, processes: Processes, pid: Pid, guard: InterruptGuard, tell: Callable[[str], None]) -> None:
        self._processes, self._pid, self._guard, self._tell = processes, pid, guard, tell
        self._alone_since: float | None = None
        self._n_stop_requests = 0
        self._is_told = False

    @property
    def are_interrupted(self) -> bool:
        """Whether a signal came when the program itself had ended, and only descendants still ran."""
        return self._alone_since is not None and self._guard.n_stop_requests > self._n_stop_requests

    def look(self, now: float) -> None:
        """Tell people, some time after the program itself ended, that its descendants are recorded still."""
        is_kept = self._processes.is_kept(self._pid)
        if (not is_kept and self._processes.is_running(self._pid)) or not len(self._processes):
            return
        if self._alone_since is None:
            self._alone_since, self._n_stop_requests = now, self._guard.n_stop_requests
        elif now - self._alone_since > TELL_AFTER_SECONDS and not self._is_told:
            ways = self._guard.ways_out
            until = f", until {' or '.join(ways)}" if ways else ""
            beside = "; Ctrl-C reaches those of the terminal, too" if "Ctrl-C" in ways else ""
            if is_kept:
                self._tell(f"the program has ended; whoever traces it has not let it go, and is waited for{until}")
            else:
                self._tell(f"the program has ended; descendants of it still run and are recorded{until}{beside}")
            self._is_told = True


class JournalRoom:
    """Whether a journal finds room on the disk. `tell` gets lines for people."""

    def __init__(self, journal: JournalWriter, tell: Callable[[str], None]) -> None:
        self._journal, self._tell = journal, tell
        self._is_full_told = False

    def look(self) -> None:
        """Try again to write what found no room, and tell people while they can still help it."""
        if self._journal.failure is None:
            return
        if not self._is_full_told:
            self._tell(f"{self._full_line()}; what comes is kept in memory meanwhile: free some space")
            self._is_full_told = True
        if self._journal.retry():
            self._tell(f"{self._journal.path}: there is room again")
            self._is_full_told = False

    @property
    def warnings(self) -> list[str]:
        """Lines for people, at the end."""
        if self._journal.failure is None:
            return []
        return [f"{self._full_line()}; what came later was kept in memory as far as it fitted"]

    def _full_line(self) -> str:
        assert self._journal.failure is not None
        return f"{self._journal.path}: {self._journal.failure.strerror}"
