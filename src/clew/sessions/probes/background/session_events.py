"""The events of a session by their names: what each is of, and which probes it has had.

Runs in the controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from clew.errors import ControlError
from clew.sessions.probes.background.wishes import EventWish
from clew.sessions.probes.probe_sites import ArmedProbe

__all__ = ["SessionEvent", "SessionEvents", "describe_places"]


class SessionEvent:
    """What `wish` asks for. `indices` are those of its probes: a new one each time that what it takes changes."""

    def __init__(self, wish: EventWish, index: int) -> None:
        self.wish, self.indices, self.is_enabled = wish, [index], True

    @property
    def index(self) -> int:
        """Of the probe that it has now."""
        return self.indices[-1]

    def describe(self, n_events: Mapping[int, int]) -> dict[str, Any]:
        """What is told of it."""
        wish = self.wish
        return {
            "name": wish.name,
            "kind": "function" if wish.is_function else "probe",
            "where": wish.where,
            "pid": wish.pid or None,
            "path": wish.path or None,
            "contexts": list(wish.contexts),
            "returned": list(wish.returned),
            "filter": wish.condition,
            "inline": wish.with_inlined,
            "is_enabled": self.is_enabled,
            "events": sum(n_events[index] for index in self.indices),
        }


class SessionEvents:
    """All of a session's, in the order in which they came."""

    def __init__(self) -> None:
        self._events: dict[str, SessionEvent] = {}

    def __iter__(self) -> Iterator[SessionEvent]:
        return iter(self._events.values())

    def find(self, name: str) -> SessionEvent:
        """The one of that name. Raises ControlError."""
        if name not in self._events:
            known = ", ".join(self._events) or "none"
            raise ControlError(f"{name}: no such event; there is {known}")
        return self._events[name]

    def choose(self, name: str) -> list[SessionEvent]:
        """The one of that name, all without one. Raises ControlError if there is none."""
        if name:
            return [self.find(name)]
        if not self._events:
            raise ControlError("there are no events; `clew enable-event` makes one")
        return list(self._events.values())

    def has(self, name: str) -> bool:
        """Whether there is one of that name."""
        return name in self._events

    def add(self, event: SessionEvent) -> None:
        """Have one more. Names of its events may not be those of others."""
        self._events[event.wish.name] = event

    def remove(self, name: str) -> None:
        """Have it no more."""
        del self._events[name]


def describe_places(armed: Iterable[ArmedProbe]) -> dict[str, Any]:
    """Of an event at how many places it is, by which techniques, and why by no better ones."""
    places = list(armed)
    return {
        "places": len(places),
        "backends": dict(Counter(one.backend for one in places)),
        "techniques": dict(Counter(one.technique.name.lower() for one in places)),
        "reasons": dict(Counter(f"{one.backend}: {one.reason}" for one in places if one.reason)),
    }
