"""Leaving all the processes of a recording that goes on without them: each becomes native again, wherever it is.

Runs in the controller. One process is left after the other, while the others run on: what they ask is answered
meanwhile. What is about to be born is waited for and left, too; what is about to execute a program leaves by that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from clew.address import Pid
from clew.dataclass import dataclass, field
from clew.errors import TargetError
from clew.recording.following.followed import FollowedProcess
from clew.recording.following.processes import Processes

__all__ = ["Left", "leave_all"]

PATIENCE_SECONDS: Final = (2.0, 5.0, 10.0)
"""How long each process is waited for, the first, second and last time: its threads are stopped meanwhile, and one that
waits for another to end must not keep that one from being left.
"""

POLL_SECONDS: Final = 0.001
MAX_SECONDS: Final = 60.0
"""Processes that multiply faster than they are left would keep clew for ever."""


@dataclass
class Left:
    """What became of the processes: for how long each was stopped that was left, and lines on those that stay."""

    seconds: dict[Pid, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def leave_all(processes: Processes, is_given_up: Callable[[], bool]) -> Left:
    """Take the runtime out of all `processes`, until `is_given_up` says so."""
    left = Left()
    processes.begin_leaving()
    end = time.monotonic() + MAX_SECONDS
    failed: dict[FollowedProcess, str] = {}
    for patience in PATIENCE_SECONDS:
        failed = _leave_once(processes, left, min(patience, end - time.monotonic()), end, is_given_up)
        if is_given_up() or time.monotonic() > end or not (failed or processes.n_unsettled):
            break
    for followed in processes.live:
        reason = failed.get(followed, f"process {followed.pid}: there was no time for it")
        left.failures.append(f"{reason}; the process goes on with clew's runtime in it")
    if processes.n_unsettled:
        left.failures.append("a process that was just being made goes on with clew's runtime in it")
    return left


def _leave_once(
    processes: Processes, left: Left, patience_seconds: float, end: float, is_given_up: Callable[[], bool]
) -> dict[FollowedProcess, str]:
    """Try to leave each process once, those that come meanwhile, too; those that could not be left, and why."""
    failed: dict[FollowedProcess, str] = {}
    settled_by = time.monotonic() + patience_seconds
    while not is_given_up() and time.monotonic() < end:
        # Who waits to trace another one does not come out of the runtime before that was left.
        processes.advance()
        waiting = [followed for followed in processes.live if followed not in failed]
        if waiting:
            followed = waiting[0]
            try:
                left.seconds[followed.pid] = processes.detach(followed, patience_seconds, is_given_up)
            except TargetError as error:
                failed[followed] = error.message
            settled_by = time.monotonic() + patience_seconds
        elif not processes.n_unsettled or time.monotonic() > settled_by:
            break
        else:
            processes.poll(POLL_SECONDS)
    return failed
