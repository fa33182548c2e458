"""Signals to clew itself while it records: none of them may cost the trace.

Runs in the controller's main thread. A terminal sends SIGINT, SIGQUIT and SIGHUP to the target too, which decides for
itself; clew goes on until the target has ended and the trace is whole. SIGTERM reaches clew alone: it is handed on.
What any of them means when the target has ended, and its descendants have not, is the session's to say. All others that
would end or stop clew are ignored: who sends them to the whole process group means the program. Where job control stops
the program, clew stops with it, as whoever waits for the program is to see.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from clew.address import Pid

__all__ = ["JOB_CONTROL", "InterruptGuard", "LeaveGuard"]

_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
JOB_CONTROL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""What stops a process that does nothing about it."""

_HARMLESS = (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
_NOT_IGNORED = (*_FROM_TERMINAL, signal.SIGTERM, *_HARMLESS, signal.SIGKILL, signal.SIGSTOP)


class InterruptGuard:
    """While `held`: signals of the terminal are counted and otherwise nothing; SIGTERM goes to `target_pidfd`.

    Until `commit` there is no target that could decide: they raise KeyboardInterrupt. A second SIGTERM sets
    `wants_to_leave`: the trace is finished without waiting for the target, which goes on as if it had never been
    recorded.
    """

    def __init__(self) -> None:
        self.is_committed = False
        self.interrupts = 0
        self.terminations = 0
        self.target_pidfd: int | None = None
        self.set_aside: set[signal.Signals] = set()
        """Signals that are ignored natively, and not here while the guard is held."""
        self.muted: set[int] = set()
        """Signals that are not ignored natively, and are here while the guard is held."""
        self._taken: set[signal.Signals] = set()

    @property
    def n_stop_requests(self) -> int:
        """How many signals came: each asks clew to stop recording."""
        return self.interrupts + self.terminations

    @property
    def wants_to_leave(self) -> bool:
        return self.terminations > 1

    @property
    def ways_out(self) -> list[str]:
        """What people can do to have clew told: a shell starts its background jobs with SIGINT ignored."""
        ways = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: f"SIGTERM to clew (kill {os.getpid()})"}
        return [way for number, way in ways.items() if number in self._taken]

    def commit(self) -> None:
        """The target is about to be: from now on signals are its business."""
        self.is_committed = True

    def follow(self, target_pidfd: int) -> None:
        """From now on SIGTERM goes to the target; one that came while it was started goes there, too."""
        # A descriptor of its own: the target's next program is followed by another one.
        self.target_pidfd = os.dup(target_pidfd)
        if self.terminations:
            self._hand_on()

    def stop_with(self, pid: Pid) -> None:
        """Stop like child `pid`, if job control has stopped it; comes back once this process is continued.

        What stops the child alone is not for this process, which would not be continued with it.
        """
        if not self.muted.issuperset(JOB_CONTROL):
            return
        with contextlib.suppress(ChildProcessError):
            # Looked at first: the stop of a tracee is for who traces it, and would be taken from there.
            seen = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
            if seen is None or seen.si_code != os.CLD_STOPPED:
                return
            stopped = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
            if stopped is not None and stopped.si_status in JOB_CONTROL:
                signal.signal(stopped.si_status, signal.SIG_DFL)
                os.kill(os.getpid(), stopped.si_status)
                signal.signal(stopped.si_status, signal.SIG_IGN)

    def leave(self) -> None:
        """From now on SIGTERM goes nowhere."""
        pidfd, self.target_pidfd = self.target_pidfd, None
        if pidfd is not None:
            os.close(pidfd)

    @contextlib.contextmanager
    def held(self) -> Iterator[InterruptGuard]:
        """Take the signals; give them back at the end. Outside the main thread nothing is done."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        replaced: dict[int, Any] = {}
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            # Whoever ignores it never learns how a child ended.
            replaced[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.set_aside.add(signal.SIGCHLD)
        for number in (*_FROM_TERMINAL, signal.SIGTERM):
            # Ignored from the start (nohup, a shell's background job) stays ignored, in the target too.
            if signal.getsignal(number) is not signal.SIG_IGN:
                replaced[number] = signal.signal(number, self._on_signal)
                self._taken.add(number)
        for muted in self._to_mute():
            replaced[muted] = signal.signal(muted, signal.SIG_IGN)
            self.muted.add(muted)
        try:
            yield self
        finally:
            self._taken.clear()
            self.muted.clear()
            for taken, handler in replaced.items():
                signal.signal(taken, handler if handler is not None else signal.SIG_DFL)

    def _to_mute(self) -> list[int]:
        """Also those of faults: of a fault of its own a process learns nevertheless (kernel/signal.c)."""
        numbers = signal.valid_signals() - set(_NOT_IGNORED)
        return [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self.is_committed:
            raise KeyboardInterrupt
        if number != signal.SIGTERM:
            self.interrupts += 1
            return
        self.terminations += 1
        self._hand_on()

    def _hand_on(self) -> None:
        if self.target_pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.target_pidfd, signal.SIGTERM)


class LeaveGuard(InterruptGuard):
    """While `held`: any signal that would end clew means that it is to detach, and write the trace."""

    @property
    def wants_to_leave(self) -> bool:
        return self.n_stop_requests > 0

    def follow(self, target_pidfd: int) -> None:
        """The target has no part in signals to clew."""

    def _to_mute(self) -> list[int]:
        """Who stops clew means clew: it has a job of its own."""
        return [number for number in super()._to_mute() if number not in JOB_CONTROL]
