"""A probe as Python has it: where it is, and the events that come of it.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from clew.errors import UsageError
from clew.sessions.probes.event_tables import join_tables
from clew.sessions.probes.specs import ProbeSpec, parse_context

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.export.probes.event_types import EventType

__all__ = ["AtPlaces", "PlaceOwner", "Probe", "ProbeOwner", "ProbePlace", "read_spec"]

WAIT_SECONDS: Final = 0.05


class ProbePlace(NamedTuple):
    """Where a probe is, in process `pid`. `role` is `point`, `entry` or `return`. `backend` is how threads come from
    there to the probe: `jump`, `trap`, or `engine` in translated code; `technique` says it closer, `reason` why no
    better one was taken, empty: there is none. `cost_ns` is what an event with nothing but its time takes a thread that
    comes there so, as it was measured (`clew probe list --measure`); None: it was not since the machine was started."""

    pid: int
    address: int
    name: str
    role: str
    backend: str
    technique: str
    reason: str
    cost_ns: float | None


class PlaceOwner(Protocol):
    """Who has what a session has at places, by their indices."""

    def places(self, index: int) -> list[ProbePlace]:
        """Where it is."""

    def missing(self, index: int) -> str:
        """Why it is nowhere."""

    def remove(self, index: int) -> None:
        """Have it nowhere any more. Raises ClewError."""


class AtPlaces:
    """What is at places of a program. `where` is what was asked for."""

    def __init__(self, owner: PlaceOwner, index: int, where: str) -> None:
        self._at_owner, self._index = owner, index
        self.where = where

    @property
    def places(self) -> list[ProbePlace]:
        """Where it is now; nothing as long as nothing that is loaded has such a place."""
        return self._at_owner.places(self._index)

    @property
    def missing(self) -> str:
        """Why it is nowhere, for people; empty if it is somewhere."""
        return self._at_owner.missing(self._index)

    def remove(self) -> None:
        """Have it nowhere any more. What has come can still be read. Raises ClewError."""
        self._at_owner.remove(self._index)


class ProbeOwner(PlaceOwner, Protocol):
    """Who has a session's probes, by their indices."""

    def take(self, index: int) -> list[tuple[EventType, pa.Table]]:
        """The events of a probe that were not taken yet. Raises ClewError."""

    def types(self, index: int) -> list[EventType]:
        """Of which types its events are, as far as that is known."""

    def count(self, index: int) -> int:
        """How many events came of it."""

    def enable(self, index: int) -> None:
        """Have it again where it was. Raises ClewError."""

    def wait_for_end(self, seconds: float) -> bool:
        """Whether nothing more will come, after so many seconds at most. Raises what a callback raised."""


class Probe(AtPlaces):
    """What `session.probe` gives. `where` is what was asked for.

    Its events are read as tables, or iterated over as such until the process has ended. Columns are `event` (its name),
    `time_ns` (i64, since 1970), `sequence` (u64, rises within a thread over all events of the session), `pid`, `tid`
    (u32), `comm` (the thread's name, bytes), `cpu` (i32), `ip` (u64), and one for each thing that is captured, by what
    was written for it; null where that could not be had. Of functions there are `parent_ip` of entries, `duration` (in
    nanoseconds) of returns, and what is captured at either is null at the other. What is not read is kept.
    """

    def __init__(self, owner: ProbeOwner, index: int, where: str) -> None:
        super().__init__(owner, index, where)
        self._owner = owner

    @property
    def n_events(self) -> int:
        """How many events have come, read or not."""
        return self._owner.count(self._index)

    def read(self) -> pa.Table:
        """The events that were not read yet, by time: all that have come by now. Raises ClewError."""
        return join_tables(self._owner.take(self._index), self._owner.types(self._index))

    def __iter__(self) -> Iterator[pa.Table]:
        """Tables of events as they come, none of them empty, until the process has ended. Raises what a callback
        raised, and ClewError."""
        has_ended = False
        while not has_ended:
            has_ended = self._owner.wait_for_end(WAIT_SECONDS)
            table = self.read()
            if table.num_rows:
                yield table

    def enable(self) -> None:
        """Have it again where it was before it was removed. Raises ClewError."""
        self._owner.enable(self._index)

    def __repr__(self) -> str:
        return f"<probe at {self.where}>"


def read_spec(
    where: str | int,
    capture: str | Iterable[str],
    condition: str | None,
    *,
    is_function: bool,
    returned: str | Iterable[str] | None,
    with_inlined: bool,
    name: str | None,
) -> ProbeSpec:
    """What is asked of a probe; `returned` is `retval` unless given. Raises UsageError."""
    text = f"{where:#x}" if isinstance(where, int) else where
    if returned is not None and not is_function:
        raise UsageError(f"{text}: only functions return: function=True")
    leaving = _contexts("retval" if returned is None else returned) if is_function else []
    return ProbeSpec(
        name or text,
        text,
        is_function,
        tuple(one for context in _contexts(capture) for one in parse_context(context)),
        tuple(one for context in leaving for one in parse_context(context)),
        condition,
        with_inlined,
    )


def _contexts(texts: str | Iterable[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)
