"""What a recording is of: a program that is launched, or a process that clew attaches to.

Runs in the controller. Both are here as one interface: an `Origin` is what is asked for, and entering it makes a
`Target`, which has the runtime in it and is followed. To be imported for types only: protocols take long to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clew.address import Pid
from clew.recording.session.means import Means

__all__ = ["Origin", "Target"]


class Origin(Protocol):
    """What is to be recorded. Making one raises ClewError where it can be known that it can't be."""

    command: Sequence[str]
    """The program and its arguments, for the trace."""
    pause_seconds: float
    """How long it waits before its first instruction."""
    adopts_orphans: bool
    """Whether descendants whose parents end become children of this process."""

    def enter(self, means: Means) -> Target:
        """Put the runtime into it, and follow it. Raises ClewError, and leaves nothing behind then."""


class Target(Protocol):
    """The first process that is followed."""

    pid: Pid
    stopped_seconds: float
    """How long it was stopped while the runtime came in; 0 for one that did not run before."""
    farewell: str
    """What people are told in the trace when clew leaves it; may be empty."""

    def is_over(self, now: float) -> bool:
        """Whether clew is to leave all processes; `now` is the monotonic time."""

    @property
    def cpu_seconds(self) -> float | None:
        """User and system time of the processes, as far as it is the recording's; None if it is not known."""
