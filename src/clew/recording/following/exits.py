"""How the processes of a recording ended, and what processor time they took.

Runs in the controller. Children of this process are waited for here; of others the kernel is asked.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Iterable

from clew.address import Pid
from clew.process.identity import find_ended_children, read_cpu_seconds
from clew.recording.following.followed import read_status_of_ended

__all__ = ["Exits"]


class Exits:
    """Wait statuses, by process. `poll` is the caller's: what runs unfollowed is registered there until it ends."""

    def __init__(self, poll: select.poll) -> None:
        self._poll = poll
        self._awaited: dict[int, Pid] = {}
        self._told: dict[Pid, int] = {}
        self.status: dict[Pid, int | None] = {}
        """Wait status of the processes that ended; None where the kernel did not tell."""
        self._cpu_seconds = 0.0

    def __len__(self) -> int:
        """How many run unfollowed and are awaited."""
        return len(self._awaited)

    @property
    def cpu_seconds(self) -> float:
        """User and system time of the processes that were waited for here, were left, or run unfollowed."""
        return self._cpu_seconds + sum(read_cpu_seconds(pid) or 0.0 for pid in self._awaited.values())

    def is_awaited(self, pid: Pid) -> bool:
        """Whether process `pid` runs unfollowed and is awaited."""
        return pid in self._awaited.values()

    def wait_for(self, pid: Pid, pidfd: int) -> None:
        """Take the pidfd of a process that runs unfollowed. A child is awaited, as whoever started clew does."""
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            os.close(pidfd)
            return
        self._awaited[pidfd] = pid
        self._poll.register(pidfd, select.POLLIN)

    def note_ready(self, pidfds: Iterable[int]) -> None:
        """Those of the awaited have ended that are among `pidfds`."""
        for pidfd in pidfds:
            if pidfd in self._awaited:
                pid = self._awaited.pop(pidfd)
                self._poll.unregister(pidfd)
                os.close(pidfd)
                with contextlib.suppress(ChildProcessError):
                    self.status[pid] = self._collect(pid)

    def note_left(self, pid: Pid) -> None:
        """Process `pid` goes on by itself: what it used until now is the recording's."""
        self._cpu_seconds += read_cpu_seconds(pid) or 0.0

    def is_kept(self, pid: Pid) -> bool:
        """Whether `pid`, which has ended, is a child of this process that another tracer has not let go yet.

        The kernel tells a parent only after that (wait_consider_task in kernel/exit.c).
        """
        with contextlib.suppress(ChildProcessError):
            is_told = pid in self._told
            return not is_told and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False

    def note_told(self, pid: Pid, status: int) -> None:
        """What a tracer was told of the end of `pid`, which nobody is told again."""
        self._told[pid] = status

    def collect(self, pid: Pid, pidfd: int) -> int | None:
        """The wait status of a process that has ended; None if it is not known. Of one that is kept /proc tells it."""
        status: int | None = self._told.pop(pid, None)
        if status is None:
            with contextlib.suppress(ChildProcessError):
                status = self._collect(pid)
        if status is None:
            status = read_status_of_ended(pid, pidfd)
        self.status[pid] = status
        return status

    def bury_orphans(self, is_wanted: Callable[[Pid], bool]) -> None:
        """Wait for ended children that nobody wants to hear of: descendants whose parents are gone."""
        with contextlib.suppress(OSError):
            for pid in find_ended_children():
                if not is_wanted(pid) and not self.is_awaited(pid):
                    os.waitpid(pid, os.WNOHANG)

    def _collect(self, pid: Pid) -> int | None:
        """Wait for a child that has ended: its wait status. Raises ChildProcessError if it is another's."""
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if not found:
            return None
        self._cpu_seconds += usage.ru_utime + usage.ru_stime
        return status
