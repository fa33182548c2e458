"""What a session does with a process with its probes in it, whoever has that.

Runs in the controller, in the thread that owns the session. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from clew.address import Pid
    from clew.process.aggregate_tables import AggregateTables
    from clew.process.maps import Mapping
    from clew.sessions.capture_sink import CaptureSink
    from clew.sessions.probes.asked import AskedProbe, Asker
    from clew.sessions.probes.probe_sites import ArmedProbe
    from clew.sessions.probes.waiting import Waiting

__all__ = ["Rings", "Target"]


class Rings(Protocol):
    """What its threads wrote."""

    processes: set[int]

    def drain(self, sink: CaptureSink) -> int:
        """Hand over what they wrote; how much."""

    def drain_newest(self, sink: CaptureSink, most_bytes: int) -> None:
        """Hand over the newest, so many bytes of each thread."""

    def make_room(self) -> None:
        """Let go of what a flight recorder does not need."""

    def free_slots(self) -> None:
        """Have the slots of threads that are gone be others'."""

    def first_name(self, tid: int) -> bytes:
        """What a thread was called when it came to a probe first; empty where that is not known."""

    def take_lost(self) -> int:
        """How many events were lost since this was asked last."""


class Target(Protocol):
    """A process, and forks' children of it. Methods raise ClewError."""

    pid: Pid
    asker: Asker
    origins: frozenset[Pid]
    has_own_numbers: bool
    takes_events: bool
    probes: dict[int, AskedProbe]
    place_names: dict[int, dict[int, str]]
    mappings: list[Mapping]

    @property
    def rings(self) -> Rings:
        """What its threads wrote."""

    @property
    def armed(self) -> Sequence[ArmedProbe]:
        """What is probed now."""

    @property
    def found(self) -> Sequence[AskedProbe]:
        """Probes of which there is a place."""

    @property
    def missing(self) -> dict[str, str]:
        """Why probes are nowhere."""

    @property
    def remarks(self) -> list[str]:
        """What is to be told people."""

    @property
    def tables(self) -> Sequence[AggregateTables]:
        """What is added up in it."""

    def change(self, do: Callable[[], object]) -> None:
        """Have `do` change the probes, if there is something to change still."""

    def add(self, probes: Iterable[AskedProbe]) -> None:
        """Have these probes, too."""

    def remove(self, indices: Iterable[int]) -> list[AskedProbe]:
        """Have the probes of these indices nowhere; those that there were."""

    def answer(self) -> list[Waiting]:
        """See to what happened; threads that wait for something else."""

    def reply(self, slot: int) -> None:
        """Let a thread go on that waits."""

    def has_ended(self, seconds: float = 0) -> bool:
        """Whether it is no more, in so many seconds at most."""

    def shares_with(self, pid: Pid) -> bool:
        """Whether a process is a forks' child of it, or theirs, that has the probes."""

    def leave(self) -> tuple[list[str], list[Pid]]:
        """Have no probe there any more; what stays, for people, and forks' children that had some."""

    def close(self) -> list[str]:
        """Leave, and let go."""

    def release(self) -> None:
        """Let go of what is kept of it."""
