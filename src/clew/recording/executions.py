"""The calls of execve under way in the processes of a recording.

Runs in the controller, in one thread. What is asked comes from the target and is checked: a thread counts only if it
maps the shared memory it speaks through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.errors import ClewError
from clew.process.execution import Ended, Execution, find_executed
from clew.process.identity import read_group
from clew.process.tasks import find_task
from clew.recording.followed import FollowedProcess

if TYPE_CHECKING:
    from clew.recording.drain import Request

__all__ = ["Executions"]


@dataclass(frozen=True)
class _UnderWay:
    execution: Execution
    followed: FollowedProcess
    slot: int


class Executions:
    """Threads that were seized because they execute a program. `warn` takes lines for people."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._under_way: list[_UnderWay] = []

    def __len__(self) -> int:
        return len(self._under_way)

    def is_under_way(self, pid: Pid) -> bool:
        """Whether a thread of process `pid` executes a program."""
        return any(one.execution.pid == pid for one in self._under_way)

    def begin(self, followed: FollowedProcess, request: Request) -> int | None:
        """A thread asks before it executes: 1 if the new program will be followed, 0 if not, None: ask again.

        The request's arguments are execveat's: path, directory, flags.
        """
        tid = find_task(followed.shared, followed.pid, request.tid)
        if tid is None:
            return 0
        try:
            pid = read_group(tid)
        except OSError:
            return 0
        if self.is_under_way(pid):
            # One after the other: who is seized while another executes waits for that one, and we would for both.
            return None
        try:
            find_executed(tid, *request.arguments[:3])
        except ClewError as error:
            if "no such" not in error.message:
                self._warn(f"process {followed.pid} may go on unfollowed: {error.message}")
            return 0
        except (OSError, OverflowError):
            return 0
        try:
            self._under_way.append(_UnderWay(Execution(tid, pid), followed, request.slot))
        except OSError as error:
            self._warn(f"process {followed.pid} goes on unfollowed after execve: ptrace is not allowed ({error})")
            return 0
        return 1

    def fail(self, followed: FollowedProcess, request: Request) -> None:
        """A thread's call has failed: let it go."""
        for one in list(self._under_way):
            if one.followed is followed and one.slot == request.slot:
                self._under_way.remove(one)
                one.execution.give_up()

    def poll(self) -> list[tuple[Execution, FollowedProcess, Ended | None]]:
        """Those that are over, and whose they were: with a new program, stopped inside execve, or ended instead."""
        over: list[tuple[Execution, FollowedProcess, Ended | None]] = []
        for one in list(self._under_way):
            outcome = one.execution.poll()
            if outcome is not False:
                self._under_way.remove(one)
                over.append((one.execution, one.followed, outcome if isinstance(outcome, Ended) else None))
        return over

    def give_up(self) -> None:
        """Let all of them go."""
        for one in self._under_way:
            one.execution.give_up()
        self._under_way.clear()
