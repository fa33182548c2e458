"""The one thread that owns a session's target: it launches or attaches, follows, and does what other threads ask.

Runs in the controller. A tracer is a thread to the kernel (ptrace(2)), so everything that is done to the target from
outside is done here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from clew.address import Pid
from clew.recording.control.command_queue import CommandQueue, Do
from clew.recording.options.record_options import RecordOptions, RecordResult
from clew.recording.session.interrupts import InterruptGuard
from clew.recording.session.session import start_session
from clew.recording.session.target import Origin

__all__ = ["Worker"]

T = TypeVar("T")


class _Leave(InterruptGuard):
    """Told to `leave_all` the recording leaves what it follows. Signals are the caller's business; `held`, if there is
    one, is the guard by which that takes them in its main thread."""

    def __init__(self, held: InterruptGuard | None = None) -> None:
        super().__init__()
        self._is_leaving = False
        self._held = held
        if held is not None:
            self.set_aside, self.muted, self._taken = held.set_aside, held.muted, held._taken

    def leave_all(self) -> None:
        self._is_leaving = True

    @property
    def wants_to_leave(self) -> bool:
        return self._is_leaving or (self._held is not None and self._held.wants_to_leave)

    @property
    def n_stop_requests(self) -> int:
        return int(self._is_leaving) + (0 if self._held is None else self._held.n_stop_requests)

    def commit(self) -> None:
        if self._held is not None:
            self._held.commit()

    def follow(self, target_pidfd: int) -> None:
        if self._held is not None:
            self._held.follow(target_pidfd)

    def leave(self) -> None:
        if self._held is not None:
            self._held.leave()

    def stop_with(self, pid: Pid) -> None:
        """That is done in the thread that takes the signals."""


class Worker:
    """Follows what `make_origin` gives, from when it is made: then `pid` is followed. `guard` says what signals to this
    process mean for it, if they mean anything. Raises ClewError."""

    def __init__(
        self, make_origin: Callable[[], Origin], options: RecordOptions, guard: InterruptGuard | None = None
    ) -> None:
        self._queue = CommandQueue()
        self._guard = _Leave(guard)
        self._started: Future[Pid] = Future()
        self._ended: Future[RecordResult] = Future()
        self.is_following = True
        """Something is still followed; afterwards the trace is written."""
        self._n_asked = self._n_answered = 0
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._run, args=(make_origin, options), name="clew-session", daemon=True)
        self._thread.start()
        try:
            self.pid = self._started.result()
        except BaseException:
            self._guard.leave_all()
            raise

    @property
    def has_ended(self) -> bool:
        """Whether nothing is followed any more, and the trace is written."""
        return self._ended.done()

    def do(self, steps: Do[T]) -> T:
        """Have something done in the loop, and wait for it. Raises ClewError."""
        return self.post(steps).result()

    def post(self, steps: Do[T]) -> Future[T]:
        """Have something done in the loop."""
        with self._counting:
            self._n_asked += 1
        future = self._queue.ask(steps)
        future.add_done_callback(self._note_answer)
        return future

    @property
    def is_asked(self) -> bool:
        """Whether something is to be done: for most of it threads have to get on, whoever takes what they tell."""
        return self._n_asked > self._n_answered or self._guard.wants_to_leave

    def _note_answer(self, _: Future[Any]) -> None:
        with self._counting:
            self._n_answered += 1

    def leave(self) -> None:
        """Leave everything, which goes on natively. Comes back at once."""
        self._guard.leave_all()
        # Whoever sleeps in the loop wakes up for it.
        self._queue.ask(lambda _control: iter((True,)))

    def result(self, timeout: float | None = None) -> RecordResult:
        """How it went, once nothing is followed any more. Raises TimeoutError, ClewError."""
        result = self._ended.result(timeout)
        self._thread.join()
        return result

    def _run(self, make_origin: Callable[[], Origin], options: RecordOptions) -> None:
        try:
            session = start_session(make_origin(), options, self._guard, self._queue)
        except BaseException as error:
            self._queue.close()
            self._started.set_exception(error)
            return
        self._started.set_result(session.target.pid)
        try:
            session.wait()
            self.is_following = False
            self._ended.set_result(session.finish())
        except BaseException as error:
            self._queue.close()
            self._ended.set_exception(error)
