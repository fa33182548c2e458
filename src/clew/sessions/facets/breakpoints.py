"""What of a session is about places at which the whole process stops.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from clew.errors import ControlError

if TYPE_CHECKING:
    from clew.recording.control.commands import Control
    from clew.sessions.target import SessionTarget
    from clew.sessions.threads import SessionThread

__all__ = ["BreakpointsFacet"]

LOOK_SECONDS: Final = 0.002


class BreakpointsFacet:
    """Breakpoints: who comes to one stops, and with it all threads of the process, until `resume`."""

    _target: SessionTarget

    @property
    def state(self) -> str:
        """How the session stands."""
        raise NotImplementedError

    @property
    def threads(self) -> list[SessionThread]:
        """Its threads."""
        raise NotImplementedError

    def add_breakpoint(self, where: str | int) -> int:
        """Have all threads stop once one comes to an instruction; its address. At most 31 are possible.

        `where` is an address, `main`, `libc.so.6!malloc`, or either with a distance. Raises ControlError, UsageError.
        """
        address = self._target.find(where if isinstance(where, str) else hex(where))
        self._target.ask({"command": "break", "address": address})
        return address

    def remove_breakpoint(self, where: str | int) -> None:
        """No longer. Who stands there goes on with `resume`. Raises ControlError if there is none."""
        address = self._target.find(where if isinstance(where, str) else hex(where))
        self._target.ask({"command": "delete", "address": address})

    @property
    def breakpoints(self) -> list[int]:
        """The addresses of all of them."""

        def steps(control: Control) -> Iterator[list[int]]:
            yield list(control.processes.holdings.of(control.find({"pid": self._target.pid})).breakpoints)

        return self._target.run(steps)

    def wait_for_stop(self, timeout: float | None = None) -> SessionThread:
        """Wait until all threads are stopped: the thread for which they are, which came to a breakpoint or made a step.

        Raises TimeoutError after `timeout` seconds, ControlError where the process has ended.
        """

        def steps(control: Control) -> Iterator[int | None]:
            holding = control.processes.holdings.of(control.find({"pid": self._target.pid}))
            yield int(holding.chosen or 0) if holding.is_held and holding.is_settled else 0

        deadline = None if timeout is None else time.monotonic() + timeout
        while not (tid := self._target.run(steps)):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"process {self._target.pid} has not stopped within {timeout} seconds")
            time.sleep(LOOK_SECONDS)
        found = next((thread for thread in self.threads if thread.tid == tid), None)
        if found is None:
            raise ControlError("the thread has gone on meanwhile")
        return found
