"""Where events of a program go that runs its own code: to who reads them, or to callbacks, in the order of time.

Runs in the controller: events come in the thread that owns the program, callbacks are called in one of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from clew.export.probes.event_types import EventBatch, EventType, Loss
from clew.export.probes.rows import Event, TimeOrder
from clew.sessions.delivery import Delivery
from clew.sessions.probes.event_reader import ReadEvents
from clew.sessions.probes.event_store import EventStore
from clew.sessions.probes.event_tables import ProbeEvent, to_event

__all__ = ["EventCallback", "NativeEvents"]

EventCallback = Callable[[ProbeEvent], object]


class NativeEvents:
    """Of one session."""

    def __init__(self) -> None:
        self.store = EventStore()
        self.n_lost = 0
        self.delivery: Delivery[Event | threading.Event] = Delivery(self._call, _let_go)
        self.flushed = threading.Event()
        """Callbacks were called with all that had come when that was asked for."""
        self._losses: list[Loss] = []
        self._lock = threading.Lock()
        self._callbacks: dict[int, EventCallback] = {}
        """By probe."""
        self._order = TimeOrder()
        self._called: dict[int, tuple[EventType, EventCallback]] = {}
        """By the identity of a type of events: those of two probes may be equal."""

    def call(self, probe: int, callback: EventCallback) -> None:
        """Have a probe's events handed to a callback, not kept. To be said where they come."""
        self._callbacks[probe] = callback

    def take(self, events: Sequence[ReadEvents], losses: Sequence[Loss], until_ns: int) -> None:
        """Events that have come; later ones are later than `until_ns`."""
        with self._lock:
            self._losses += losses
        self.n_lost += sum(one.count for one in losses)
        self.store.put(one for one in events if one.probe not in self._callbacks)
        if not self._callbacks:
            return
        called = [one for one in events if one.probe in self._callbacks]
        self.store.put(called, is_kept=False)
        for one in called:
            self._called[id(one.type)] = one.type, self._callbacks[one.probe]
        self._tell(self._order.add(EventBatch([(one.type, one.table) for one in called], (), until_ns)))

    def take_losses(self) -> list[Loss]:
        """What was lost since this was asked last."""
        with self._lock:
            losses, self._losses = self._losses, []
        return losses

    def flush(self) -> None:
        """Have everything handed on that has come. To be said where it comes."""
        self._tell(self._order.close())
        self.flushed = threading.Event()
        if self._callbacks:
            self.delivery.tell(self.flushed)
        else:
            self.flushed.set()

    def _tell(self, events: Sequence[Event | Loss]) -> None:
        for one in events:
            if isinstance(one, Event):
                self.delivery.tell(one)

    def _call(self, one: Event | threading.Event) -> None:
        if isinstance(one, threading.Event):
            one.set()
        else:
            self._called[id(one.type)][1](to_event(one))


def _let_go(one: Event | threading.Event) -> None:
    if isinstance(one, threading.Event):
        one.set()
