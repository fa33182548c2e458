"""What the session that has processes does for guests: other sessions, whose probes it has there.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from clew.address import Pid
    from clew.sessions.aggregate_table import AggregateRoom, AggregateTable
    from clew.sessions.capture_sink import CaptureSink
    from clew.sessions.probes.asked import AskedProbe, Asker
    from clew.sessions.probes.probed_target import ProbedTarget
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["Host"]


class Host(Protocol):
    """The session that has processes."""

    sink: CaptureSink

    @property
    def owned(self) -> Sequence[ProbedTarget]:
        """Those that it has itself."""

    @property
    def room(self) -> AggregateRoom:
        """Where there is room for tables, in all of them."""

    def take_index(self) -> int:
        """One that no probe has had, its own among them."""

    def make_probe(
        self,
        target: ProbedTarget,
        spec: ProbeSpec,
        index: int,
        find_table: Callable[[AskedProbe], AggregateTable],
        asker: Asker,
    ) -> AskedProbe:
        """A probe of somebody's in a process."""

    def drain(self, targets: Iterable[ProbedTarget]) -> None:
        """Have in the sink what these have come to by now."""

    def has(self, pid: Pid) -> bool:
        """Whether a process is probed here: it is nobody's guest."""
