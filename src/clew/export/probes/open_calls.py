"""The calls that are open in a thread, by the entries and returns that are told of it.

Pure. A call may be left without a return: by an exception, by longjmp, by the end of its thread. That shows when a call
outside of it returns. And returns may come whose entry nobody told.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from clew.export.probes.event_types import EventBatch, EventKind, EventType
from clew.export.probes.rows import Event, list_by_thread

__all__ = ["CallEnd", "CallStep", "CallSteps", "OpenCalls", "Thread", "function_of"]

Thread = tuple[int, int]
"""Its process' number and its own."""
_Call = tuple[str, int | None]
"""The function, and the number that the thread gave the call; None if it has none."""

MAX_OPEN: Final = 1 << 16
"""In a thread. More are open only where calls are left again and again, and nothing outside of them returns."""


class CallEnd(Enum):
    """How a call ended: it returned; it was left, which shows later than it happens; nobody saw an end."""

    RETURNED = "returned"
    LEFT = "left"
    OPEN = "open"


class CallStep(NamedTuple):
    """A call begins (`end` is None) or is over. Steps of a thread are nested: what began last is over first."""

    thread: Thread
    time_ns: int
    function: str
    end: CallEnd | None


def function_of(event_type: EventType) -> str:
    """What a call is called whose entries or returns are of a type."""
    return event_type.function or event_type.name


class OpenCalls:
    """Of one thread."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._n_open: dict[_Call, int] = {}
        """How often a call is open: what is not is not looked for."""

    def enter(self, event: Event) -> list[str]:
        """A call begins. The functions of what is over by that, the innermost first: nearly always nothing."""
        over = self.end() if len(self._calls) >= MAX_OPEN else []
        call = _call_of(event)
        self._calls.append(call)
        self._n_open[call] = self._n_open.get(call, 0) + 1
        return over

    def leave(self, event: Event) -> list[str]:
        """A call returns. The functions of what is over by that, the innermost first: last is the call itself, the
        others were left. Empty if nobody told of its entry."""
        call = _call_of(event)
        if call not in self._n_open:
            return []
        over = [self._take()]
        while over[-1] != call:
            over.append(self._take())
        return [function for function, _ in over]

    def end(self) -> list[str]:
        """Nothing more comes. The functions of what was open, the innermost first."""
        over = [function for function, _ in reversed(self._calls)]
        self._calls, self._n_open = [], {}
        return over

    def _take(self) -> _Call:
        call = self._calls.pop()
        self._n_open[call] -= 1
        if not self._n_open[call]:
            del self._n_open[call]
        return call


class CallSteps:
    """Makes steps of the events of all threads: for writers to which order between threads means nothing."""

    def __init__(self) -> None:
        self._open: dict[Thread, OpenCalls] = {}
        self._last_ns: dict[Thread, int] = {}
        self.n_unmatched = 0
        """Returns whose entry nobody told."""

    def add(self, batch: EventBatch) -> Iterator[CallStep]:
        """The steps that events are. Raises ValueError if a table is not of its type."""
        for event in list_by_thread(batch):
            if event.type.kind is EventKind.POINT:
                continue
            thread = event.pid, event.tid
            calls = self._open.setdefault(thread, OpenCalls())
            time = self._last_ns[thread] = max(event.time_ns, self._last_ns.get(thread, event.time_ns))
            if event.type.kind is EventKind.ENTRY:
                over = calls.enter(event)
                yield from (CallStep(thread, time, function, CallEnd.LEFT) for function in over)
                yield CallStep(thread, time, function_of(event.type), None)
                continue
            over = calls.leave(event)
            self.n_unmatched += not over
            yield from (CallStep(thread, time, function, CallEnd.LEFT) for function in over[:-1])
            yield from (CallStep(thread, time, function, CallEnd.RETURNED) for function in over[-1:])

    def end_thread(self, pid: int, tid: int) -> Iterator[CallStep]:
        """Nothing more comes of a thread."""
        thread = pid, tid
        calls = self._open.pop(thread, None)
        if calls is not None:
            time = self._last_ns.pop(thread)
            yield from (CallStep(thread, time, function, CallEnd.OPEN) for function in calls.end())

    def close(self) -> Iterator[CallStep]:
        """Nothing more comes at all."""
        for thread in [*self._open]:
            yield from self.end_thread(*thread)


def _call_of(event: Event) -> _Call:
    function, name = function_of(event.type), event.type.call
    if not name:
        return function, None
    value = next((value for one, value in zip(event.type.fields, event.fields, strict=True) if one.name == name), None)
    return function, value
