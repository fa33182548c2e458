"""Processes that are about to execute a program which is to be probed from its first instruction on.

Runs in the controller, in the thread that owns the session. Whoever started such a process goes on to be its parent: of
terminals, signals and ends nothing is changed.
"""

from __future__ import annotations

import signal

from clew.address import Pid, Tid
from clew.errors import ClewError
from clew.process.launch import native_mask
from clew.sessions.probes.executions import begin_following, follow_execution
from clew.sessions.probes.probe_session import ProbeSession

__all__ = ["Arrivals"]


class Arrivals:
    """Of the session `probes`."""

    def __init__(self, probes: ProbeSession) -> None:
        self._probes = probes
        self._waiting: list[tuple[Pid, int]] = []

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do."""
        return bool(self._waiting)

    def begin(self, pid: Pid, mask: list[int]) -> bool:
        """Trace a process that waits for the answer to this, and then executes a program; it has blocked all signals
        until then, and is given those of `mask`. Whether that is possible."""
        if not begin_following(Tid(pid)):
            return False
        self._waiting.append((pid, native_mask(pid, [one for one in mask if one in signal.valid_signals()])))
        return True

    def advance(self) -> list[str]:
        """Follow those that have their answers into their programs; what went wrong, for people."""
        failures = []
        waiting, self._waiting = self._waiting, []
        for pid, mask in waiting:
            process = follow_execution(pid, Tid(pid), mask)
            if process is None:
                continue
            try:
                self._probes.enter(process)
            except ClewError as error:
                failures.append(f"process {pid}: its program runs without probes: {error.message}")
            finally:
                process.detach()
        return failures
