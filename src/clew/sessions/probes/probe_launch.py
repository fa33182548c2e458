"""Starts a program with probes in it, and learns how it ends.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from clew.address import Pid
from clew.process.launch import launch_stopped, original_environment
from clew.process.program import find_program

if TYPE_CHECKING:
    from clew.process.stopped_process import StoppedProcess

__all__ = ["ProbedCommand"]


class Follower(Protocol):
    """Who is told of the end of a process before its parent is."""

    @property
    def exit_code(self) -> int | None:
        """How it ended, as `subprocess` has it; None: it has not."""

    def has_ended(self) -> bool:
        """Whether it has ended, or is left."""


class Entering(Protocol):
    """What puts probes into a program that is stopped before its first instruction."""

    def enter(self, process: StoppedProcess) -> object:
        """Have them there; the process stays stopped. Raises ClewError."""

    def find_follower(self, pid: Pid) -> Follower | None:
        """Who follows a process, and is told how it ends; None: nobody."""


class ProbedCommand:
    """The program `command`, its first instruction behind the arming of the probes of `session`. It ignores the signals
    `ignored`, whatever is done with them here.

    Raises ClewError if it can't be started, or probed: it has not run then.
    """

    def __init__(self, session: Entering, command: Sequence[str], ignored: Sequence[signal.Signals] = ()) -> None:
        program = find_program(command[0])
        words = [os.fsencode(word) for word in command]
        with launch_stopped(program, words, original_environment(), ignored_signals=ignored) as process:
            self.pid: Pid = process.pid
            self._pidfd = os.pidfd_open(process.pid)
            session.enter(process)
            process.detach()
        self._find_follower = session.find_follower
        self._exit_code: int | None = None
        self._has_ended = False

    @property
    def exit_status(self) -> int | None:
        """As a shell says how it ended: 128 and the number of a signal; None: it has not, or that is not known."""
        code = self._exit_code
        return code if code is None or code >= 0 else 128 - code

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, after so many seconds at most."""
        follower = self._find_follower(self.pid)
        if follower is not None and not self._has_ended:
            has_ended = bool(select.select([self._pidfd], [], [], seconds)[0]) and follower.has_ended()
            if has_ended:
                self._end(follower.exit_code)
        elif not self._has_ended and select.select([self._pidfd], [], [], seconds)[0]:
            code = None
            # Who held it may have been told.
            with contextlib.suppress(ChildProcessError):
                code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            self._end(code)
        return self._has_ended

    def _end(self, code: int | None) -> None:
        self._exit_code, self._has_ended = code, True
        os.close(self._pidfd)
