"""The calls of execve under way in the processes of a recording.

Runs in the controller, in one thread. What is asked comes from the target and is checked: a thread counts only if it
maps the shared memory it speaks through.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from clew.address import Pid, Tid
from clew.dataclass import dataclass
from clew.process.executed import LOOK_SECONDS, Look, Verdict
from clew.process.execution import Ended, Execution
from clew.process.identity import is_ending, read_group
from clew.process.tasks import find_task
from clew.process.waiting import abandon
from clew.protocol._constants import FULL_WAIT_SECONDS
from clew.recording.following.followed import FollowedProcess

if TYPE_CHECKING:
    from clew.recording.drain.request import Request

__all__ = ["Executions"]

SOON_SECONDS: Final = 0.0002
SOON_FOR_SECONDS: Final = 0.1
LATER_SECONDS: Final = 0.002
LET_GO_SECONDS: Final = 1.0
MAX_TURN_SECONDS: Final = FULL_WAIT_SECONDS / 2


@dataclass
class _UnderWay:
    execution: Execution
    followed: FollowedProcess
    slot: int
    since: float
    failed_at: float = math.inf


class Executions:
    """Threads that were seized because they execute a program.

    `lose` is told, in lines for people, of programs that are not followed though they were to be.
    """

    def __init__(self, lose: Callable[[str], None]) -> None:
        self._lose = lose
        self._under_way: list[_UnderWay] = []
        self._looks: dict[tuple[FollowedProcess, int], Look] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def delay_seconds(self) -> float:
        """How long to wait at most before they are looked after again."""
        if not self._under_way and not self._looks:
            return math.inf
        since = max([one.since for one in self._under_way] + [look.since for look in self._looks.values()])
        return SOON_SECONDS if time.monotonic() - since < SOON_FOR_SECONDS else LATER_SECONDS

    def is_under_way(self, pid: Pid) -> bool:
        """Whether a thread of process `pid` executes a program."""
        return any(one.execution.pid == pid for one in self._under_way)

    def begin(self, followed: FollowedProcess, request: Request) -> int | None:
        """A thread asks before it executes: 1 if the new program will be followed, 0 if not, None: ask again.

        The request's arguments are execveat's: path, directory, flags.
        """
        try:
            tid = find_task(followed.shared, followed.pid, request.tid)
            if tid is None:
                return 0
            pid = read_group(tid)
        except ProcessLookupError:
            return 0
        except OSError as error:
            self._lose(f"process {followed.pid} may go on unfollowed: {error}")
            return 0
        others = [one.since for one in self._under_way if one.execution.pid == pid]
        if others:
            # One after the other: who is seized while another executes waits for that one, and we would for both.
            # Nor for long: the thread would take clew for gone.
            if time.monotonic() - min(others) < MAX_TURN_SECONDS:
                return None
            self._lose(f"process {followed.pid} may go on unfollowed: another thread of it executes a program")
            return 0
        verdict = self._look(followed, request, tid)
        if verdict is None:
            return None
        if not verdict.is_followed:
            if verdict.reason:
                self._lose(f"process {followed.pid} may go on unfollowed: {verdict.reason}")
            return 0
        try:
            self._under_way.append(_UnderWay(Execution(tid, pid), followed, request.slot, time.monotonic()))
        except OSError as error:
            if not is_ending(tid):
                self._lose(f"process {followed.pid} goes on unfollowed after execve: ptrace is not allowed ({error})")
            return 0
        return 1

    def _look(self, followed: FollowedProcess, request: Request, tid: Tid) -> Verdict | None:
        """What to make of the program that is to be executed; None: not known yet."""
        asked = (tid, *request.arguments[:3])
        key = (followed, request.slot)
        look = self._looks.get(key)
        if look is None or look.asked != asked:
            look = self._looks[key] = Look(tid, *request.arguments[:3])
        verdict = look.verdict
        if verdict is not None:
            del self._looks[key]
        return verdict

    def fail(self, followed: FollowedProcess, request: Request) -> int | None:
        """A thread's call has failed: 0 once it is let go, None: ask again."""
        for one in self._under_way:
            if one.followed is followed and one.slot == request.slot:
                one.failed_at = min(one.failed_at, time.monotonic())
                # A thread that can't be stopped now goes on as it is, and is let go when it can be.
                return None if time.monotonic() - one.failed_at < LET_GO_SECONDS else 0
        return 0

    def poll(self) -> list[tuple[Execution, FollowedProcess, Ended | None]]:
        """Those that are over, and whose they were: with a new program, stopped inside execve, or ended instead."""
        over: list[tuple[Execution, FollowedProcess, Ended | None]] = []
        for key, look in list(self._looks.items()):
            if time.monotonic() - look.since > 2 * LOOK_SECONDS:
                del self._looks[key]  # Who asked is gone.
        for one in list(self._under_way):
            outcome = one.execution.poll() if one.failed_at == math.inf else one.execution.let_go()
            if outcome is not False:
                self._under_way.remove(one)
                if isinstance(outcome, Ended) or one.failed_at == math.inf:
                    over.append((one.execution, one.followed, outcome if isinstance(outcome, Ended) else None))
        return over

    def give_up(self) -> None:
        """Let all of them go; what can't be stopped now when it stops."""
        until = time.monotonic() + LET_GO_SECONDS
        while self._under_way and time.monotonic() < until:
            self._under_way = [one for one in self._under_way if not one.execution.let_go()]
            time.sleep(SOON_SECONDS)
        for one in self._under_way:
            abandon(Pid(one.execution.tid))
