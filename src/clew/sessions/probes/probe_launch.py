"""Starts a program with probes in it, and learns how it ends.

Runs in the controller.
"""

from __future__ import annotations

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


class Entering(Protocol):
    """What puts probes into a program that is stopped before its first instruction."""

    def enter(self, process: StoppedProcess) -> object:
        """Have them there; the process stays stopped. Raises ClewError."""


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
        self.status: int | None = None

    @property
    def exit_status(self) -> int | None:
        """As a shell says how it ended: 128 and the number of a signal; None: it has not."""
        if self.status is None:
            return None
        return os.waitstatus_to_exitcode(self.status) if os.WIFEXITED(self.status) else 128 + os.WTERMSIG(self.status)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, after so many seconds at most; its wait status is `status` then."""
        if self.status is None and select.select([self._pidfd], [], [], seconds)[0]:
            _, self.status = os.waitpid(self.pid, 0)
            os.close(self._pidfd)
        return self.status is not None
