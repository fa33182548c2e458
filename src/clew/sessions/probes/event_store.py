"""Keeps events of probes until somebody takes them.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.export.probes.event_types import EventType
    from clew.sessions.probes.event_reader import ReadEvents

__all__ = ["EventStore"]


class EventStore:
    """Of one session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[int, list[tuple[EventType, pa.Table]]] = {}
        self._counts: dict[int, int] = {}

    def put(self, events: Iterable[ReadEvents], *, is_kept: bool = True) -> None:
        """Count these, and keep them."""
        with self._lock:
            for probe, kind, table in events:
                self._counts[probe] = self._counts.get(probe, 0) + table.num_rows
                if is_kept:
                    self._kept.setdefault(probe, []).append((kind, table))

    def take(self, index: int) -> list[tuple[EventType, pa.Table]]:
        """The events of a probe."""
        with self._lock:
            return self._kept.pop(index, [])

    def take_all(self) -> list[tuple[EventType, pa.Table]]:
        """Those of all probes."""
        with self._lock:
            kept, self._kept = self._kept, {}
        return [one for some in kept.values() for one in some]

    def take_events(self) -> list[ReadEvents]:
        """Those of all probes, each with its number."""
        from clew.sessions.probes.event_reader import ReadEvents

        with self._lock:
            kept, self._kept = self._kept, {}
        return [ReadEvents(index, kind, table) for index, some in kept.items() for kind, table in some]

    def count(self, index: int) -> int:
        """How many there ever were of a probe."""
        with self._lock:
            return self._counts.get(index, 0)
