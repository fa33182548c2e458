"""Takes what threads wrote out of the rings: all of it, or, for a flight recorder, the newest when that is asked for.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from clew.sessions.probes.probed_target import ProbedTarget
from clew.sessions.probes.sharing.newest import NewestCaptures

if TYPE_CHECKING:
    from clew.sessions.capture_sink import Captured, CaptureSink
    from clew.sessions.probes.target import Target

__all__ = ["Draining"]


class Draining:
    """Of one session, a flight recorder with `newest_bytes`. `forms` are those of its events by their numbers;
    `has_guests` says whether others are to be told what comes of a process."""

    def __init__(
        self,
        sink: CaptureSink,
        newest_bytes: int,
        forms: Mapping[int, object],
        has_guests: Callable[[ProbedTarget], bool],
    ) -> None:
        self._sink, self._newest_bytes, self._forms, self._has_guests = sink, newest_bytes, forms, has_guests
        self._newest: NewestCaptures | None = None
        """What a flight recorder has that has guests, or had some: these are told everything, which is read then."""
        self._due: list[tuple[int, Captured]] = []

    def drain(self, target: Target) -> None:
        """Have in the sink what a process has come to by now; of a flight recorder nothing of its own."""
        if not self._newest_bytes:
            if target.rings.drain(self._sink):
                target.rings.free_slots()
        elif isinstance(target, ProbedTarget) and (self._newest is not None or self._has_guests(target)):
            self._newest = self._newest or NewestCaptures(self._newest_bytes)
            target.rings.drain_overwritten(self._sink)
            target.rings.free_slots()
            numbers = sorted(self._forms)
            taken = zip(numbers, self._sink.take_together(numbers), strict=True)
            self._newest.add((number, one) for number, some in taken for one in some)
        else:
            target.rings.make_room()

    def drain_last(self, target: Target) -> None:
        """Have in the sink what a process came to, which is about to be let go of; of a flight recorder the newest."""
        if not self._newest_bytes or (self._newest is not None and isinstance(target, ProbedTarget)):
            self.drain(target)
        else:
            target.rings.drain_newest(self._sink, self._newest_bytes)

    def snapshot(self, targets: Iterable[Target]) -> None:
        """Have the newest of all threads ready to be read."""
        for target in targets:
            self.drain_last(target)
        if self._newest is not None:
            self._due += self._newest.take()

    def give_due(self) -> None:
        """Have in the sink what snapshots were of."""
        due, self._due = self._due, []
        self._sink.put(due)
