"""What is done to a followed process from outside while it runs: its threads are made to come to the dispatcher, or the
runtime is taken out of it, or one task of it goes on natively.

Runs in the controller, in its one thread. Meanwhile the rings are emptied, so that no thread waits for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from clew.address import Pid, Tid
from clew.errors import AttachError
from clew.process.identity import read_stat
from clew.protocol._constants import ReleaseReason
from clew.recording.following.executions import Executions
from clew.recording.following.followed import FollowedProcess
from clew.recording.following.roster import Roster

__all__ = ["Interventions"]

EXECUTION_POLL_SECONDS: Final = 0.0002
BRING_IN_SECONDS: Final = 2.0
LET_GO_SECONDS: Final = 0.5


class Interventions:
    """`poll` waits up to so many seconds and takes what is there, of all processes."""

    def __init__(self, roster: Roster, executions: Executions, poll: Callable[[float], object]) -> None:
        self._roster, self._executions, self._poll = roster, executions, poll
        self.being_left: FollowedProcess | None = None
        """Whose end and failures are for the intervention to tell, which is under way."""

    def detach(
        self,
        followed: FollowedProcess,
        patience_seconds: float,
        is_given_up: Callable[[], bool],
        reason: ReleaseReason,
    ) -> float:
        """As `Processes.detach`."""
        # Of most recordings nobody is left, and no thread is stopped.
        from clew.process.detach import detach

        self._await_execution(followed, patience_seconds, is_given_up)
        if followed not in self._roster.live:
            return 0.0
        if followed.has_ended:
            sharer = f"process {followed.memory_pid}: shares its memory with process {followed.pid}, which has ended"
            raise AttachError(followed.memory_pid, sharer)
        self.being_left = followed
        followed.shared.set_status_ticket("detach_reason", reason)
        try:
            departure = detach(
                followed.pid,
                followed.shared,
                followed.plan,
                patience_seconds=patience_seconds,
                on_wait=self._drain_all,
                is_given_up=is_given_up,
                find_running=lambda: [] if followed.drain is None else followed.drain.find_running(),
            )
        finally:
            self.being_left = None
        if departure.wait_status is not None:
            self._roster.exits.note_told(followed.pid, departure.wait_status)
        if departure.has_ended:
            self._roster.note_end(followed)
        elif reason != ReleaseReason.DETACH:
            followed.is_released = True
        else:
            self._roster.exits.note_left(followed.pid)
            self._roster.finish(followed)
        return departure.seconds

    def bring_in(self, followed: FollowedProcess) -> None:
        """Have all threads come to the dispatcher. Raises TargetError."""
        from clew.process.bring_in import bring_in

        self._await_execution(followed, BRING_IN_SECONDS)
        if followed not in self._roster.live:
            return
        self.being_left = followed
        try:
            status = bring_in(followed.memory_pid, followed.plan, on_wait=self._drain_all)
        finally:
            self.being_left = None
        if status is not None:
            self._roster.exits.note_told(followed.pid, status)
        if not read_stat(followed.pid) and followed in self._roster.live:
            self._roster.note_end(followed)

    def distrust(self, followed: FollowedProcess) -> None:
        """Have all code of one count as writable before its threads execute anything more. Raises TargetError."""
        followed.shared.distrust()
        self.bring_in(followed)

    def let_task_go(self, sharer: FollowedProcess, pid: Pid) -> None:
        """Have task `pid`, which shares the memory of a process, go on natively. Raises TargetError if it does not."""
        from clew.process.bring_in import bring_in, is_outside

        sharer.shared.release_task(sharer.number_of(Tid(pid)))
        try:
            bring_in(pid, sharer.plan, on_wait=self._drain_all)
            deadline = time.monotonic() + LET_GO_SECONDS
            while not is_outside(pid, sharer.plan):
                if time.monotonic() > deadline:
                    raise AttachError(pid, f"process {pid}: does not leave the runtime")
                self._poll(EXECUTION_POLL_SECONDS)
        finally:
            sharer.shared.release_task(0)

    def _await_execution(
        self, followed: FollowedProcess, patience_seconds: float, is_given_up: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until no thread of it is about to execute a program. Raises AttachError."""
        deadline = time.monotonic() + patience_seconds
        while self._executions.is_under_way(followed.pid):
            # The thread is held for that already.
            if time.monotonic() > deadline or is_given_up():
                raise AttachError(followed.pid, f"process {followed.pid}: is about to execute another program")
            self._poll(EXECUTION_POLL_SECONDS)

    def _drain_all(self) -> None:
        self._poll(0)
