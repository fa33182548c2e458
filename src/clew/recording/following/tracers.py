"""Threads of the recording that are about to trace another process of it, which is left first, so that its tracer finds
it in its own code; or to write to its memory, which has it look whether code changed. A task that shares a process'
memory, and is none of its threads, is left alone.

Runs in the controller, in its one thread. Who is meant is a number that the target gave; whether that may be traced or
written to the kernel decides.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from clew.address import Pid, Tid
from clew.dataclass import dataclass
from clew.errors import TargetError
from clew.process.identity import read_group, read_status_line
from clew.process.tasks import find_group_inside
from clew.protocol._constants import ReleaseReason, RequestKind
from clew.recording.following.followed import FollowedProcess

if TYPE_CHECKING:
    from clew.recording.drain.request import Request

__all__ = ["Tracers"]

WAIT_SECONDS: Final = 5.0
"""For a process that is stopped, is about to be born or to execute a program."""

LEAVE_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.0002


@dataclass
class _PendingRequest:
    """Of a thread of `tracer`: `what` it asks, `kind` and arguments. `reply`: what it is told, once known."""

    tracer: FollowedProcess
    what: tuple[int, ...]
    since: float
    reply: int | None = None

    @property
    def kind(self) -> int:
        return self.what[0]

    @property
    def number(self) -> int:
        """The task that is meant, as the tracer calls it."""
        return self.what[1]

    @property
    def is_late(self) -> bool:
        return time.monotonic() - self.since > WAIT_SECONDS


class Tracers:
    """Who wants to trace whom. `find` gives who is followed as a process, `is_coming` tells whether it is about to be,
    or to be another program, `is_held` whether it is stopped. `leave` takes the runtime out of it, `distrust` has all
    code of it count as writable, `let_go` has a task that shares its memory go on natively; all raise TargetError.
    `find_sharer` gives who has such a task. `warn` takes lines for people.
    """

    def __init__(
        self,
        find: Callable[[Pid], FollowedProcess | None],
        is_coming: Callable[[Pid], bool],
        is_held: Callable[[FollowedProcess], bool],
        leave: Callable[[FollowedProcess, float, ReleaseReason], None],
        distrust: Callable[[FollowedProcess], None],
        find_sharer: Callable[[Pid], FollowedProcess | None],
        let_go: Callable[[FollowedProcess, Pid], None],
        warn: Callable[[str], None],
    ) -> None:
        self._find = find
        self._is_coming = is_coming
        self._is_held = is_held
        self._leave = leave
        self._distrust = distrust
        self._find_sharer = find_sharer
        self._let_go = let_go
        self._warn = warn
        self._pending: dict[tuple[int, int], _PendingRequest] = {}

    @property
    def delay_seconds(self) -> float:
        """How long to wait at most before they are tended again."""
        return POLL_SECONDS if self._pending else math.inf

    def answer(self, tracer: FollowedProcess, request: Request) -> int | None:
        """What a thread is told that asks (RequestKind.TRACE, WRITE): 1 if it was done, 0 if not; None: later."""
        key, what = (tracer.number, request.slot), (request.kind, *request.arguments)
        pending = self._pending.get(key)
        if pending is None or pending.what != what:
            # Not here, in the middle of emptying the rings.
            self._pending[key] = _PendingRequest(tracer, what, time.monotonic())
            return None
        if pending.reply is not None:
            del self._pending[key]
        return pending.reply

    def advance(self) -> None:
        """Do what was asked while the rings were emptied."""
        for key, request in list(self._pending.items()):
            if request.tracer.has_ended:
                del self._pending[key]
            elif request.reply is None:
                self._settle(request)

    def _settle(self, request: _PendingRequest) -> None:
        pid = self._resolve(request)
        process = None if pid is None else self._find(pid)
        if pid is not None and self._is_coming(pid):
            request.reply = 0 if request.is_late else None
        elif pid is not None and process is None and request.kind == RequestKind.TRACE:
            self._settle_task(request, pid)
        elif pid is None or process is None or process is request.tracer or has_other_tracer(pid):
            # It is not followed, or the kernel will refuse.
            request.reply = 0
        elif request.kind == RequestKind.WRITE:
            self._try(request, lambda: self._distrust(process))
        elif request.what[2] == ReleaseReason.WRITTEN and not process.shared.status_u32("trusted_pages"):
            # Natively no more is written either.
            request.reply = 0
        elif request.is_late or not (self._is_held(process) or self._is_waiting(process)):
            # Who waits here itself does not come out of the runtime before it is told.
            reason = ReleaseReason.WRITTEN if request.what[2] == ReleaseReason.WRITTEN else ReleaseReason.TRACED
            self._try(request, lambda: self._leave(process, LEAVE_SECONDS, reason))

    def _settle_task(self, request: _PendingRequest, pid: Pid) -> None:
        sharer = None if has_other_tracer(pid) or request.what[2] == ReleaseReason.WRITTEN else self._find_sharer(pid)
        if sharer is None:
            request.reply = 0
        else:
            self._try(request, lambda: self._let_go(sharer, pid))

    def _try(self, request: _PendingRequest, do: Callable[[], None]) -> None:
        try:
            do()
            request.reply = 1
        except TargetError as error:
            if request.is_late:
                what = "may overwrite code of it" if request.kind == RequestKind.WRITE else "traces it"
                self._warn(f"{error.message}; process {request.tracer.pid} {what} with clew's runtime in it")
                request.reply = 0

    def _is_waiting(self, process: FollowedProcess) -> bool:
        return any(request.tracer is process for request in self._pending.values())

    def _resolve(self, request: _PendingRequest) -> Pid | None:
        """The process of the task that is meant."""
        try:
            if request.tracer.has_own_namespace:
                return find_group_inside(request.tracer.pid, request.number)
            return read_group(Tid(request.number))
        except OSError:
            return None


def has_other_tracer(pid: Pid) -> bool:
    """Whether a process is traced by anybody else."""
    return read_status_line(pid, "TracerPid") not in (None, "", "0", str(threading.get_native_id()))
