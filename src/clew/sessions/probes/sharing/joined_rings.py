"""What a session was told of events in a process that another session has: in place of rings, which that one reads.

Runs in the controller, in the thread that owns the session. What is told is not believed: sizes are those of records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from clew.errors import UsageError
from clew.protocol._constants import RECORD_BYTES
from clew.sessions.capture_sink import Captured, CaptureSink
from clew.sessions.probes.sharing.newest import NewestCaptures

__all__ = ["JoinedRings"]

_MAX_PID: Final = 1 << 32


class JoinedRings:
    """Of one owner. With `newest_bytes` only the newest are kept, so many bytes of each thread."""

    def __init__(self, newest_bytes: int) -> None:
        self._came: list[tuple[int, Captured]] = []
        self._newest = NewestCaptures(newest_bytes) if newest_bytes else None
        self._names: dict[int, bytes] = {}
        self.processes: set[int] = set()
        """Those whose events came from here."""
        self._n_lost = 0

    def take_told(self, told: dict[str, Any], data: bytes) -> None:
        """What a message of events has. Raises UsageError where it does not hold together."""
        pid, parts, names = told.get("pid"), told.get("parts"), told.get("names")
        if type(pid) is not int or not 0 < pid < _MAX_PID or not isinstance(parts, list) or not isinstance(names, list):
            raise UsageError("events are told by what they do not have")
        at = 0
        for part in parts:
            if not isinstance(part, list) or len(part) != 3 or any(type(one) is not int or one < 0 for one in part):
                raise UsageError("records are told by what they do not have")
            number, n, width = part
            if len(data) - at < n * (RECORD_BYTES + width):
                raise UsageError("there are fewer records than are told")
            heads = np.frombuffer(data, np.uint8, n * RECORD_BYTES, at).reshape(n, RECORD_BYTES)
            at += n * RECORD_BYTES
            payloads = np.frombuffer(data, np.uint8, n * width, at).reshape(n, width)
            at += n * width
            self._came.append((number, Captured(pid, heads, payloads)))
        for one in names:
            if isinstance(one, list) and len(one) == 2 and type(one[0]) is int and isinstance(one[1], str):
                self._names.setdefault(one[0], one[1].encode("latin-1", "replace"))
        self.processes.add(pid)

    def take(self, captured: Iterable[tuple[int, Captured]]) -> None:
        """What nobody tells any more, by its numbers."""
        self._came += captured

    def drain(self, sink: CaptureSink) -> int:
        """Hand over what came; how much."""
        came, self._came = self._came, []
        sink.put(came)
        return len(came)

    def make_room(self) -> None:
        """Keep the newest of what came."""
        assert self._newest is not None
        came, self._came = self._came, []
        self._newest.add(came)

    def drain_newest(self, sink: CaptureSink, _most_bytes: int) -> None:
        """Hand over the newest records."""
        assert self._newest is not None
        self.make_room()
        sink.put(self._newest.take())

    def free_slots(self) -> None:
        """The owner does."""

    def first_name(self, tid: int) -> bytes:
        """What a thread was called when it came to a probe first; empty where that is not known."""
        return self._names.get(tid, b"")

    def lose(self, count: int) -> None:
        """So many more events were lost."""
        self._n_lost += count

    def take_lost(self) -> int:
        """How many events were lost since this was asked last."""
        lost, self._n_lost = self._n_lost, 0
        return lost

    def close(self) -> None:
        """Nothing is kept open."""
