"""The one thread that owns a program with probes in it: begins, reads what comes, does what is asked.

Runs in the controller. A tracer is a thread to the kernel (ptrace(2)), so everything that is done to the program is
done here.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

from clew.address import Pid
from clew.dataclass import dataclass
from clew.errors import ControlError, TargetError
from clew.sessions.probes.probe_session import ProbeSession

if TYPE_CHECKING:
    from clew.export.probes.event_types import Loss
    from clew.process.stopped_process import StoppedProcess
    from clew.sessions.probes.backends import BackendChoice
    from clew.sessions.probes.event_reader import ReadEvents
    from clew.sessions.probes.probed_target import ProbedTarget

__all__ = ["Begun", "NativeWorker", "Take"]

T = TypeVar("T")
Take = Callable[[Sequence["ReadEvents"], Sequence["Loss"], int], None]
"""Is given events, what was lost, and up to which time, in nanoseconds since 1970, nothing more comes."""
POLL_SECONDS: Final = 0.02


@dataclass(frozen=True)
class Begun:
    """A process that is probed. `target` and `stopped`, if it is in front of its first instruction: it is a child."""

    pid: int
    pidfd: int
    target: ProbedTarget | None
    stopped: StoppedProcess | None


class NativeWorker:
    """Has probes in the process that `begin` makes; what comes of them `take` is given, in this thread, and `flush` is
    called behind the last of it before the process has ended, and before nothing more comes. Raises ClewError."""

    def __init__(
        self,
        begin: Callable[[ProbeSession], Begun],
        choice: BackendChoice,
        take: Take,
        flush: Callable[[], None],
    ) -> None:
        self._take, self._flush = take, flush
        self._queue: SimpleQueue[tuple[Callable[[ProbeSession], Any], Future[Any]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_over = False
        self._is_leaving = False
        self._is_running = False
        self._is_told = False
        """Somebody was told what went wrong."""
        self._session: ProbeSession | None = None
        self._started: Future[Begun] = Future()
        self.ended: Future[int | None] = Future()
        """How the process ended, as `subprocess` has it; None: it is not known, since it is no child."""
        self.over: Future[list[str]] = Future()
        """Nothing is probed any more; what stays, for people."""
        self._thread = threading.Thread(target=self._run, args=(begin, choice), name="clew-probes", daemon=True)
        self._thread.start()
        self.begun = self._started.result()
        self._pidfd = self.begun.pidfd

    def do(self, what: Callable[[ProbeSession], T]) -> T:
        """Have something done, and wait for it. Raises ControlError once nothing is probed any more, and ClewError."""
        future: Future[T] = Future()
        with self._lock:
            if self._is_over:
                raise ControlError("the session has ended")
            self._queue.put((what, future))
        return future.result()

    def ask(self, what: Callable[[ProbeSession], T]) -> T:
        """The same of what changes nothing: also once nothing is probed any more."""
        with contextlib.suppress(ControlError):
            return self.do(what)
        self.over.exception()
        assert self._session is not None
        return what(self._session)

    def read(self) -> None:
        """Have everything taken that has come by now. Raises ClewError."""
        with contextlib.suppress(ControlError):
            self.do(self._catch_up)

    def resume(self, _session: ProbeSession) -> None:
        """Let the process run, if it is in front of its first instruction still. To be done here."""
        if self.begun.target is not None and self.begun.stopped is not None and not self._is_running:
            self.begun.target.let_go()
            self.begun.stopped.detach()
        self._is_running = True

    @property
    def is_stopped(self) -> bool:
        """Whether the process did not begin yet."""
        return self.begun.stopped is not None and not self._is_running

    def wait(self, seconds: float) -> bool:
        """Whether the process has ended, or is left, after so many seconds at most. Raises what ended the work."""
        with contextlib.suppress(TimeoutError):
            self.ended.result(0 if self.over.done() else seconds)
        if self.over.done():
            self._is_told = True
            self.over.result()
            return True
        return self.ended.done()

    def kill(self) -> None:
        """End the process, unless it has ended, or the session is over."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def leave(self) -> None:
        """Take all probes out, and wait for that. Raises what went wrong meanwhile, if nobody was told yet."""
        self._is_leaving = True
        self._thread.join()
        if self._pidfd >= 0:
            pidfd, self._pidfd = self._pidfd, -1
            os.close(pidfd)
        failure = self.over.exception()
        if failure is not None and not self._is_told:
            self._is_told = True
            raise failure

    def _run(self, begin: Callable[[ProbeSession], Begun], choice: BackendChoice) -> None:
        try:
            session = self._session = ProbeSession([], choice)
        except BaseException as error:
            self._started.set_exception(error)
            return
        try:
            begun = begin(session)
        except BaseException as error:
            session.close()
            self._started.set_exception(error)
            return
        self._started.set_result(begun)
        failure: BaseException | None = None
        try:
            while not self._is_leaving:
                session.wait(POLL_SECONDS)
                self._round(session, begun)
        except BaseException as error:
            failure = error
        self._end(session, begun, failure)

    def _round(self, session: ProbeSession, begun: Begun) -> None:
        self._answer(session)
        follower = session.find_follower(Pid(begun.pid))
        has_ended = _has_ended(begun) and (follower is None or follower.has_ended())
        try:
            self._read(session)
        except TargetError:
            if not _has_ended(begun):
                raise
        if has_ended and not self.ended.done():
            self._flush()
            self.ended.set_result(_learn_end(begun) if follower is None else follower.exit_code)

    def _read(self, session: ProbeSession) -> None:
        now = time.time_ns()
        events = session.read_events()
        self._take(events, session.take_losses(), now)

    def _catch_up(self, session: ProbeSession) -> None:
        session.catch_up()
        self._read(session)

    def _answer(self, session: ProbeSession) -> None:
        with contextlib.suppress(Empty):
            while True:
                what, future = self._queue.get_nowait()
                try:
                    result = what(session)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)

    def _end(self, session: ProbeSession, begun: Begun, failure: BaseException | None) -> None:
        """Take the probes out, then what they have told, so that nothing is lost in between."""
        with self._lock:
            self._is_over = True
        try:
            self._answer(session)
            if failure is None:
                self.resume(session)
                session.remove_all()
                self._round(session, begun)
        except BaseException as error:
            failure = error
        try:
            session.close()
            self._flush()
        except BaseException as error:
            failure = failure or error
        if failure is not None:
            self.over.set_exception(failure)
        else:
            self.over.set_result(session.left)


def _has_ended(begun: Begun) -> bool:
    return bool(select.select([begun.pidfd], [], [], 0)[0])


def _learn_end(begun: Begun) -> int | None:
    if begun.stopped is None:
        return None
    try:
        return os.waitstatus_to_exitcode(os.waitpid(begun.pid, 0)[1])
    except ChildProcessError:
        # Somebody else has waited for it.
        return None
