"""What a session of probes does, whatever the technique, for who runs one from the command line.

Runs in the controller. Pure.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from clew.address import Pid
    from clew.export.probes.event_types import EventBatch
    from clew.sessions.aggregates import Aggregate
    from clew.sessions.probes.event_reader import EventReader
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["ProbingCommand", "ProbingSession"]


class ProbingCommand(Protocol):
    """A program that was started with probes in it."""

    @property
    def pid(self) -> Pid:
        """Its process."""

    @property
    def exit_status(self) -> int | None:
        """As a shell says how it ended: 128 and the number of a signal; None: it has not, or that is not known."""

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, after so many seconds at most. Raises ClewError."""


class ProbingSession(Protocol):
    """Probes in processes, and the events that come of them."""

    @property
    def left(self) -> list[str]:
        """What stays of probes that were taken out, for people."""

    @property
    def recorded(self) -> Path | None:
        """Where what was followed is recorded, once the session is closed; None: nothing was."""

    @property
    def is_recorder(self) -> bool:
        """Whether there are no events but those of snapshots."""

    @property
    def reader(self) -> EventReader:
        """What makes the events: it knows what addresses in them are called."""

    def snapshot(self) -> None:
        """Have the newest events of all threads read next, as they are now."""

    def attach(self, pid: Pid) -> object:
        """Probe a process that runs. Raises ClewError."""

    def start(self, command: Sequence[str], ignored: Sequence[signal.Signals] = ()) -> ProbingCommand:
        """Start a program, with the probes from its first instruction on; it ignores the signals `ignored`. Raises
        ClewError."""

    def wait(self, seconds: float) -> None:
        """Wait until there may be something to do, or for so long."""

    def read(self) -> EventBatch:
        """The events that have come since. Raises ClewError."""

    def catch_up(self) -> None:
        """Have all that has come by now be there to be read, whoever has it. Raises ClewError."""

    def sums(self) -> Sequence[tuple[ProbeSpec, Aggregate]]:
        """What is added up, as far as there was a place for it."""

    def take_remarks(self) -> list[str]:
        """What there is to tell people that was not told yet."""

    def missing(self) -> list[str]:
        """Why probes are in none of the processes, for people."""

    def close(self) -> None:
        """Take all probes out. Raises ClewError."""
