"""The probes of a program that runs its own code, by their indices, for those who ask in any thread.

Runs in the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import CaptureError, UsageError
from clew.sessions.probes.hit_costs import HitCosts, find_costs
from clew.sessions.probes.probe import ProbePlace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from clew.export.probes.event_types import EventType
    from clew.sessions.aggregates import Aggregate
    from clew.sessions.probes.native_events import EventCallback, NativeEvents
    from clew.sessions.probes.native_worker import NativeWorker
    from clew.sessions.probes.probe_session import ProbeSession
    from clew.sessions.probes.probe_sites import ArmedProbe
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["NativeProbes"]


class NativeProbes:
    """Of the session that `worker` has, whose events come to `events`."""

    def __init__(self, worker: NativeWorker, events: NativeEvents) -> None:
        self._worker, self._events = worker, events
        self._types: dict[int, list[EventType]] = {}

    def add(self, spec: ProbeSpec, callback: EventCallback | None = None) -> int:
        """Have one more; its index. Raises CaptureError, UsageError, ControlError."""

        def add(session: ProbeSession) -> int:
            index = session.next_index
            if callback is not None:
                # Before any thread comes there.
                self._events.call(index, callback)
            before = set(_remarks(session))
            try:
                session.add([spec])
            except UsageError:
                # Nothing of it is anywhere.
                session.remove([index])
                raise
            refused = [text for text in _remarks(session) if text not in before and text.startswith(_refusal(spec))]
            if refused and not any(_armed(session, index)):
                session.remove([index])
                raise UsageError(refused[0])
            return index

        return self._worker.do(add)

    def take(self, index: int) -> list[tuple[EventType, pa.Table]]:
        """The events of a probe that were not taken yet, among them all that have come by now."""
        self._worker.read()
        return self._events.store.take(index)

    def types(self, index: int) -> list[EventType]:
        """Of which types its events are, as far as that is known."""
        if index not in self._types:
            found = self._worker.ask(lambda session: _types(session, index))
            if not found:
                return []
            self._types[index] = found
        return self._types[index]

    def places(self, index: int) -> list[ProbePlace]:
        """Where it is."""
        costs = find_costs()

        def find(session: ProbeSession) -> list[ProbePlace]:
            own = [_place(pid, one, costs) for pid, one in _armed(session, index)]
            return own + session.followed_places(index)

        return self._worker.ask(find)

    def count(self, index: int) -> int:
        """How many events came of it."""
        self._worker.read()
        return self._events.store.count(index)

    def missing(self, index: int) -> str:
        """Why it is nowhere."""

        def find(session: ProbeSession) -> str:
            reasons = [one.probes[index].missing for one in session.targets if index in one.probes]
            return next(filter(None, reasons), "")

        is_somewhere = bool(self.places(index))
        return "" if is_somewhere else self._worker.ask(find)

    def find_sum(self, index: int) -> Aggregate | None:
        """What is added up; None: there was no place for it yet."""
        return self._worker.ask(lambda session: session.find_sum(index))

    def remarks(self) -> list[str]:
        """What there is to tell people of places."""
        return self._worker.ask(lambda session: list(dict.fromkeys(_remarks(session))))

    def remove(self, index: int) -> None:
        """Have it nowhere any more. Raises ControlError, TargetError."""
        self.types(index)
        self._worker.do(lambda session: session.remove([index]))

    def enable(self, index: int) -> None:
        """Have it again where it was. Raises the same."""
        self._worker.do(lambda session: session.enable([index]))

    def wait_for_end(self, seconds: float) -> bool:
        """Whether nothing more will come of the process, and callbacks have been called with all that came, after so
        many seconds at most. Raises what a callback raised, and ClewError."""
        self._events.delivery.raise_failure()
        if not self._worker.wait(seconds) or not self._events.flushed.wait(seconds):
            return False
        self._events.delivery.raise_failure()
        return True


def _refusal(spec: ProbeSpec) -> str:
    return f"{spec.name}: no probe at "


def _remarks(session: ProbeSession) -> Iterator[str]:
    return (text for target in session.targets for text in target.remarks)


def _armed(session: ProbeSession, index: int) -> Iterator[tuple[int, ArmedProbe]]:
    """Where a probe is, each with the process."""
    return ((int(target.pid), one) for target in session.targets for one in target.armed if one.index == index)


def _place(pid: int, one: ArmedProbe, costs: HitCosts | None) -> ProbePlace:
    technique = one.technique.name.lower().replace("_", " ")
    cost_ns = None if costs is None else costs.of(one.backend)
    return ProbePlace(pid, one.address, one.place.name, one.role, one.backend, technique, one.reason, cost_ns)


def _types(session: ProbeSession, index: int) -> list[EventType]:
    asked = next((one.probes[index] for one in session.targets if index in one.probes), None)
    forms = session.found_forms(index) if asked is None else list(asked.forms().values())
    try:
        return [form.type_of(form.name) for form in forms]
    except CaptureError:
        # What it names is not loaded yet.
        return []
