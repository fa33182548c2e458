"""The system calls in which threads wait while their process is held: they stop behind them.

Runs in the controller, in its one thread. The kernel tells them, in /proc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from clew.address import Tid

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess

__all__ = ["HeldCalls"]


class HeldCalls:
    """Of the process `followed`. Threads are meant by the kernel's numbers.

    The kernel goes on by system call `restart_call` with some that a stop interrupted.
    """

    def __init__(self, followed: FollowedProcess, restart_call: int) -> None:
        self._followed = followed
        self._restart_call = restart_call
        self._before: dict[Tid, int] = {}
        """By thread the system call that it was in when it was stopped last."""

    def is_asleep(self, task: Tid) -> bool:
        """Whether a thread waits in a system call of the program's, or is gone."""
        return self._read(task) is not None

    def find(self, task: Tid) -> int | None:
        """The system call that a thread waits in: -1 if it is gone, None if it runs.

        `restart_call` where it is not known which.
        """
        call = self._read(task)
        return self._before.get(task, call) if call == self._restart_call else call

    def note(self, tasks: Iterable[Tid]) -> None:
        """Note what system calls the threads are in, before they are stopped."""
        known, self._before = self._before, {}
        for task in tasks:
            call = self._read(task)
            call = known.get(task) if call == self._restart_call else call
            if call is not None and call >= 0:
                self._before[task] = call

    def _read(self, task: Tid) -> int | None:
        """As the kernel tells it. What waits on the runtime's stack waits for this process."""
        try:
            with open(f"/proc/{self._followed.memory_pid}/task/{task}/syscall", "rb") as file:
                words = file.read(256).split()
            if len(words) < 3 or words[0] == b"running":
                return None
            return None if self._followed.plan.is_private(int(words[-2], 16)) else int(words[0])
        except (OSError, ValueError):
            return -1
