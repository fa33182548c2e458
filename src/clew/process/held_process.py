"""A running process held by ptrace: all its threads, those included that it makes meanwhile.

Runs in the controller. Threads stop where they are; signals that come to them first are delivered as ever. What is done
with a held process is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from clew.address import Pid, Tid
from clew.dataclass import dataclass
from clew.errors import AttachError, TargetGoneError
from clew.process import ptrace
from clew.process.attachable import explain_refusal
from clew.process.identity import has_exited, is_traced_here, iter_threads
from clew.process.thread_state import make_disturbed_call_again
from clew.process.waiting import abandon, explain_wait, is_runnable, reclaim

__all__ = ["HeldProcess", "HeldThread", "Stop"]

POLL_SECONDS: Final = 0.0002
LET_GO_SECONDS: Final = 2.0
BUSY_SECONDS: Final = 20.0
"""A thread stops when it runs next, which may take seconds where many wait for a processor."""

_OPTIONS: Final = ptrace.OPTION_TRACECLONE | ptrace.OPTION_TRACEEXEC | ptrace.OPTION_TRACESYSGOOD


@dataclass
class HeldThread:
    """One thread. `stop_signal` is what it has stopped for: a signal that is not delivered yet, or 0."""

    tid: Tid
    is_stopped: bool = False
    stop_signal: int = 0


@dataclass(frozen=True)
class Stop:
    """`tid` has stopped: in front of `signal_number`, or, where that is 0, because it was interrupted or is new."""

    tid: Tid
    signal_number: int


class HeldProcess:
    """The threads of process `pid`, seized as they are found. Leave it by `let_go`, always."""

    def __init__(self, pid: Pid) -> None:
        self.pid = pid
        self.threads: dict[Tid, HeldThread] = {}
        self.has_executed = False
        """It became another program while it was held."""
        self.wait_status: int | None = None
        """How the process ended, if it did and this process was told: as its tracer, or as its parent."""
        self._strangers: set[Pid] = set()

    def stop_all(
        self,
        timeout_seconds: float,
        *,
        is_given_up: Callable[[], bool] = lambda: False,
        on_wait: Callable[[], object] = lambda: None,
    ) -> None:
        """Seize and stop every thread. `on_wait` is called while there is nothing to do.

        Raises AttachError if one can't be stopped in time, or `is_given_up` says so; TargetGoneError if none is left.
        A thread that only waits for a processor gets more time.
        """
        deadline = time.monotonic() + timeout_seconds
        busy_deadline = deadline + BUSY_SECONDS
        while not self.has_executed:
            n_new = self._seize_new()
            for stop in self.poll():
                if stop.signal_number:
                    # Delivered as ever; the thread stops at its handler's first instruction.
                    self.interrupt(stop.tid)
                    self.resume(stop.tid, stop.signal_number)
            if not self.threads:
                raise TargetGoneError(self.pid, f"process {self.pid}: ended while its threads were stopped")
            running = [thread.tid for thread in self.threads.values() if not thread.is_stopped]
            if not running and not n_new and not self._seize_new():
                return
            if is_given_up():
                raise AttachError(self.pid, f"process {self.pid}: let go, as told")
            now = time.monotonic()
            if running and now > deadline and (now > busy_deadline or not is_runnable(running[0])):
                reason = explain_wait(running[0])
                raise AttachError(
                    self.pid,
                    f"process {self.pid}: thread {running[0]} can't be stopped: {reason}; try again later",
                )
            on_wait()
            time.sleep(POLL_SECONDS)

    def poll(self) -> list[Stop]:
        """Learn what happened to the threads that run: those that stopped are told once. Never waits."""
        self._release_strangers()
        return [
            stop for thread in list(self.threads.values()) if not thread.is_stopped for stop in self._poll_one(thread)
        ]

    def resume(self, tid: Tid, signal_number: int = 0) -> None:
        """Let a stopped thread run, delivering `signal_number` if it is not 0."""
        thread = self.threads[tid]
        thread.is_stopped, thread.stop_signal = False, 0
        with _gone_ignored():
            ptrace.cont(tid, signal_number)

    def step(self, tid: Tid, signal_number: int = 0) -> None:
        """Let a stopped thread execute one instruction, delivering `signal_number` if it is not 0: `Stop` has SIGTRAP
        then."""
        thread = self.threads[tid]
        thread.is_stopped, thread.stop_signal = False, 0
        with _gone_ignored():
            ptrace.step(tid, signal_number)

    def resume_to_syscall(self, tid: Tid) -> None:
        """Let a stopped thread run until it enters or leaves a system call: `Stop` has SYSCALL_STOP_SIGNAL then."""
        thread = self.threads[tid]
        thread.is_stopped, thread.stop_signal = False, 0
        with _gone_ignored():
            ptrace.resume_to_syscall(tid)

    def interrupt(self, tid: Tid) -> None:
        """Make a thread stop soon; one that is stopped stops again once it was resumed."""
        with _gone_ignored():
            ptrace.interrupt(tid)

    def let_go(self) -> None:
        """Let every thread run on without a tracer, from the registers it has now."""
        deadline = time.monotonic() + LET_GO_SECONDS
        for thread in list(self.threads.values()):
            if not thread.is_stopped:
                self.interrupt(thread.tid)
        while self.threads or self._strangers:
            for thread in [thread for thread in self.threads.values() if thread.is_stopped]:
                try:
                    if thread.stop_signal == 0 and not self.has_executed:
                        make_disturbed_call_again(thread.tid)
                    ptrace.detach(thread.tid, thread.stop_signal)
                except OSError as error:
                    if error.errno != errno.ESRCH:
                        raise
                    # Killed meanwhile, and not gone before its tracer has seen it; or it runs after all.
                    thread.is_stopped = False
                    self.interrupt(thread.tid)
                else:
                    del self.threads[thread.tid]
            self.poll()
            if time.monotonic() > deadline:
                self._abandon_all()
                return
            if not all(thread.is_stopped for thread in self.threads.values()):
                time.sleep(POLL_SECONDS)

    def _abandon_all(self) -> None:
        """What can't be stopped now is let go when it stops, or this process ends."""
        for thread in self.threads.values():
            tid = thread.tid
            abandon(tid, (lambda: None) if self.has_executed else functools.partial(make_disturbed_call_again, tid))
        for stranger in self._strangers:
            abandon(stranger)
        self.threads.clear()
        self._strangers.clear()

    def _seize_new(self) -> int:
        """Seize and interrupt the threads that are not held yet; how many."""
        n_new = 0
        for tid in self._iter_tasks():
            if tid in self.threads:
                continue
            try:
                if not reclaim(tid):
                    ptrace.seize(tid, _OPTIONS)
            except OSError as error:
                if error.errno == errno.ESRCH or has_exited(f"{self.pid}/task/{tid}"):
                    continue
                if is_traced_here(tid):
                    # One that is held has made it, which is not told yet: it stops by itself.
                    self.threads[tid] = HeldThread(tid)
                    n_new += 1
                    continue
                raise AttachError(self.pid, explain_refusal(self.pid, error)) from error
            self.threads[tid] = HeldThread(tid)
            self.interrupt(tid)
            n_new += 1
        return n_new

    def _iter_tasks(self) -> Iterator[Tid]:
        try:
            return iter_threads(self.pid)
        except OSError as error:
            raise TargetGoneError(self.pid, f"process {self.pid}: ended while its threads were stopped") from error

    def _poll_one(self, thread: HeldThread) -> Iterator[Stop]:
        tid = thread.tid
        try:
            status = ptrace.try_wait(tid)
        except ChildProcessError:
            # It executed another program, and goes on by the process's id.
            del self.threads[tid]
            if Tid(self.pid) not in self.threads and is_traced_here(self.pid):
                # The first thread had ended long before, and was never held.
                self.threads[Tid(self.pid)] = HeldThread(Tid(self.pid))
            return
        if status is None:
            return
        if not os.WIFSTOPPED(status):
            del self.threads[tid]
            if tid == Tid(self.pid):
                self.wait_status = status
            return
        thread.is_stopped, event = True, status >> 16
        if event == ptrace.EVENT_CLONE:
            self._add_clone(tid)
            # Any stop takes back that it was interrupted.
            self.interrupt(tid)
            self.resume(tid)
        elif event == ptrace.EVENT_EXEC:
            self.has_executed = True
            self.threads = {Tid(self.pid): HeldThread(Tid(self.pid), is_stopped=True)}
        elif event == 0:
            number = os.WSTOPSIG(status)
            thread.stop_signal = 0 if number == ptrace.SYSCALL_STOP_SIGNAL else number
            yield Stop(tid, number)
        else:
            yield Stop(tid, 0)

    def _add_clone(self, parent: Tid) -> None:
        try:
            child = Tid(ptrace.get_event_message(parent))
        except OSError:
            return
        # It is traced from its first instruction, and stops there by itself.
        if os.path.exists(f"/proc/{self.pid}/task/{child}"):
            self.threads.setdefault(child, HeldThread(child))
        elif child not in self.threads:
            self._strangers.add(Pid(child))

    def _release_strangers(self) -> None:
        """Let go of processes, which the kernel takes for threads where their end is told by no SIGCHLD; and of threads
        that ended at once.
        """
        for stranger in list(self._strangers):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                status = ptrace.try_wait(stranger)
                if status is None:
                    continue
                if os.WIFSTOPPED(status):
                    ptrace.detach(stranger, 0 if status >> 16 else os.WSTOPSIG(status))
            self._strangers.discard(stranger)


class _gone_ignored:  # noqa: N801
    """Leaves out that a thread is gone: it was killed, and is told by `poll`."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        return isinstance(error, OSError) and error.errno == errno.ESRCH
