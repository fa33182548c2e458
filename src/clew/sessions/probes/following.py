"""Who follows a process on whose own code had probes, as a session of probes knows it.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from clew.address import Pid
    from clew.sessions.memory import Images
    from clew.sessions.probes.event_reader import EventReader, ReadEvents
    from clew.sessions.probes.probe import ProbePlace
    from clew.sessions.probes.specs import ProbeSpec, RecordWish
    from clew.sessions.probes.waiting import Waiting

__all__ = ["Follower", "Following"]


class Following(Protocol):
    """Follows one process on, with the probes that it had."""

    pid: Pid
    has_taken_out: bool
    """The probes are in the program's own code no more."""
    left: list[str]
    """What stays of those, for people."""
    recorded: Path | None
    """The trace, once it is written."""
    wait_status: int | None
    """How the process ended while it was held, which its parent is not told any more."""
    held_seconds: float
    """For how long its threads were held."""

    def begin(self) -> None:
        """Follow it. Raises ClewError: `has_taken_out` says whether the probes of before are there still."""

    @property
    def is_following(self) -> bool:
        """Whether it ever followed the process."""

    @property
    def exit_code(self) -> int | None:
        """How the process ended, as `subprocess` has it; None: it has not, or that is not known."""

    def has_ended(self) -> bool:
        """Whether the process has ended, or is left."""

    def read_events(self) -> list[ReadEvents]:
        """The events that have come since. Raises ClewError."""

    def enable(self, index: int, spec: ProbeSpec) -> None:
        """Have one more probe, or one again, in the process. What can't be is told. Raises ControlError."""

    def remove(self, index: int) -> None:
        """Have a probe there no more. Raises ControlError."""

    def places(self, index: int) -> list[ProbePlace]:
        """Where a probe is."""

    def take_remarks(self) -> list[str]:
        """What there is to tell people that was not told yet."""

    def close(self) -> list[str]:
        """Leave what is followed, and have the trace written; what there is to tell people of it. Raises ClewError."""


class Follower(Protocol):
    """Who can do so."""

    def prepare(self) -> None:
        """Make ready what takes its time, before threads are held for it."""

    def follow(
        self,
        wish: RecordWish,
        waiting: Waiting,
        specs: Sequence[tuple[int, ProbeSpec]],
        reader: EventReader,
        images: Images,
    ) -> Following:
        """What will follow the process of a thread that waits at a place, with the probes `specs`, by their indices."""
