"""Events of probes in processes that a session follows: captures in front of instructions, in translated code.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final

from clew.errors import CaptureError, UsageError
from clew.export.probes.event_types import EventKind
from clew.sessions.aggregates import Aggregate
from clew.sessions.place_probe import Wish
from clew.sessions.probes.asked import DURATION, check_spec, wished
from clew.sessions.probes.event_forms import EventForm
from clew.sessions.probes.event_reader import CapturedOf, EventReader, ReadEvents
from clew.sessions.probes.event_store import EventStore
from clew.sessions.probes.located import Located, LocatedProbes, Part
from clew.sessions.probes.place_names import name_of_place
from clew.sessions.probes.probe import ProbePlace
from clew.sessions.probes.specs import ContextField
from clew.sessions.wanted import Wanted

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.address import Pid
    from clew.export.probes.event_types import EventType
    from clew.probing.locations.in_process import ProcessPlace, ProcessPlaces
    from clew.recording.following.followed import FollowedProcess
    from clew.sessions.aggregate_table import AggregateRoom, AggregateTable
    from clew.sessions.call_probes import Callback, CallProbe, CallProbes
    from clew.sessions.capture_sink import CaptureSink
    from clew.sessions.probes.specs import ProbeSpec
    from clew.sessions.target import SessionTarget

__all__ = ["FollowedProbes"]

_ENGINE: Final = "engine"


class FollowedProbes:
    """Of one session, whose captures `sink` takes, and whose tables have `room`. `wait` waits for its end, so many
    seconds at most."""

    def __init__(
        self,
        target: SessionTarget,
        probes: CallProbes,
        sink: CaptureSink,
        room: AggregateRoom,
        wait: Callable[[float], bool],
        reader: EventReader | None = None,
    ) -> None:
        """`reader` makes the events, if it made such of the same threads before."""
        self._target, self._probes, self._sink, self._room, self._wait = target, probes, sink, room, wait
        self._located = LocatedProbes(target, probes, self._meet, self._note_place)
        self.reader = reader or EventReader(target.images, lambda: ())
        self._reading = threading.Lock()
        self._store = EventStore()
        self._specs: list[ProbeSpec] = []
        self._of_spec: list[Located] = []
        self._forms: list[list[EventForm]] = []
        """By index, as the two before."""
        self._by_number: dict[int, tuple[int, EventForm]] = {}
        """By what captures are known by: the index, and what is captured."""
        self._names: dict[int, dict[int, str]] = {}
        self._sums: dict[int, tuple[AggregateTable, Aggregate]] = {}

    def know(self, pid: Pid, places: ProcessPlaces, opened: contextlib.ExitStack) -> None:
        """Take over what is known of the files of a process; `opened` lets go of that."""
        self._located.know(pid, places, opened)

    def add(self, specs: Sequence[ProbeSpec]) -> list[int]:
        """Have these probes, too, from now on; their indices. Raises CaptureError, UsageError, ControlError."""
        made: list[tuple[ProbeSpec, list[EventForm], Located]] = []
        first = len(self._specs)
        for spec in specs:
            check_spec(spec)
            forms = self._make_forms(spec) if spec.wish is None else []
            parts = self._make_parts(spec, forms, first + len(made))
            located = Located(spec.where, parts, is_function=spec.is_function, with_inlined=spec.with_inlined)
            made.append((spec, forms, located))
        for spec, forms, located in made:
            self._specs.append(spec)
            self._forms.append(forms)
            self._of_spec.append(located)
        self._located.arm([located for *_, located in made], self._watch)
        return list(range(first, len(self._specs)))

    def call_at(
        self, where: str, callback: Callback, capture: Sequence[str], condition: str | None, *, with_inlined: bool
    ) -> CallProbe:
        """Have threads wait at a place for a callback. Raises the same."""
        wanted = Wanted(capture, condition, self._target.machine(), self._target.images)
        located = Located(where, [Part(wanted, Wish.CALL, "point")], is_function=False, with_inlined=with_inlined)
        probes: list[CallProbe] = []

        def note(one: Located) -> None:
            probes.append(self._probes.note(one.numbers[0], where, callback, wanted.texts))

        self._located.arm([located], note)
        return probes[0]

    def _make_forms(self, spec: ProbeSpec) -> list[EventForm]:
        machine, images = self._target.machine(), self._target.images
        if not spec.is_function:
            return [EventForm(spec.name, spec.fields, spec.condition, machine, images)]
        parent = ContextField("parent_ip", f"*(u64 *)${machine.stack_pointer}", is_address=True)
        entry = EventForm(spec.name, [parent, *spec.fields], spec.condition, machine, images, kind=EventKind.ENTRY)
        # Returns are told of the calls whose entries are.
        chosen = None if spec.condition is None else f"entry({spec.condition})"
        leaving = [DURATION, *spec.leaving_fields]
        return [entry, EventForm(spec.name, leaving, chosen, machine, images, kind=EventKind.RETURN)]

    def _make_parts(self, spec: ProbeSpec, forms: Sequence[EventForm], index: int) -> list[Part]:
        if spec.wish is None:
            roles = ["entry", "return"] if spec.is_function else ["point"]
            return [Part(form.wanted, Wish.LOG, role) for form, role in zip(forms, roles, strict=True)]
        chosen = f"entry({spec.condition})" if spec.is_function and spec.condition is not None else spec.condition
        machine, images, wish = self._target.machine(), self._target.images, spec.wish
        taken = wished(wish)
        wanted = Wanted(taken, chosen, machine, images, has_returned=spec.is_function, keeps_types=True)

        def make_table() -> AggregateTable:
            if index not in self._sums:
                table = self._room.make(wish, wanted.kinds())
                self._sums[index] = table, Aggregate(table, spec.where, wish, lambda: self.remove(index))
            return self._sums[index][0]

        return [Part(wanted, Wish.AGGREGATE, "return" if spec.is_function else "point", make_table)]

    def sums(self) -> list[tuple[ProbeSpec, Aggregate]]:
        """What is added up. It can be read when all is over, too."""
        return [(self._specs[index], found) for index, (_, found) in sorted(self._sums.items())]

    def _watch(self, located: Located) -> None:
        index = self._of_spec.index(located)
        if self._specs[index].wish is not None:
            return
        for number, form in zip(located.numbers, self._forms[index], strict=True):
            self._sink.watch(number)
            self._by_number[number] = index, form

    def _meet(self, followed: FollowedProcess) -> None:
        with contextlib.suppress(OSError):
            self.reader.meet(followed.memory_pid)
            self.reader.look_at_images(followed.memory_pid)

    def _note_place(self, located: Located, place: ProcessPlace) -> None:
        # One with a callback has no events.
        for index, one in enumerate(self._of_spec):
            name = name_of_place(self._specs[index], place) if one is located else ""
            if name:
                self._names.setdefault(index, {})[place.address] = name

    def read(self) -> None:
        """Have the events that have come by now be there to take. Raises ClewError."""
        with self._reading:
            self._target.flush(self._sink.clock)
            numbers = sorted(self._by_number)
            taken = zip(numbers, self._sink.take_together(numbers), strict=True)
            captured = [
                CapturedOf(index, form, one, self._names.get(index, {}))
                for number, some in taken
                for index, form in [self._by_number[number]]
                for one in some
            ]
            self._store.put(self.reader.read(captured, copy(self._sink.clock)))

    def take(self, index: int) -> list[tuple[EventType, pa.Table]]:
        """The events of a probe that were not taken yet, among them all that have been made by now."""
        self.read()
        return self._store.take(index)

    def take_all(self) -> list[tuple[EventType, pa.Table]]:
        """The same of all probes."""
        self.read()
        return self._store.take_all()

    def take_events(self) -> list[ReadEvents]:
        """The same, each with the number of its probe."""
        self.read()
        return self._store.take_events()

    def numbers_of_returns(self) -> dict[int, int]:
        """By what captures of returns are known by: the number of the probe."""
        return {one.numbers[-1]: index for index, one in enumerate(self._of_spec) if one.is_function and one.numbers}

    def types(self, index: int) -> list[EventType]:
        """Of which types its events are, as far as that is known."""
        found = []
        for form in self._forms[index]:
            with contextlib.suppress(CaptureError):
                found.append(form.type_of(self._specs[index].name))
        return found

    def places(self, index: int) -> list[ProbePlace]:
        """Where it is."""
        return [
            ProbePlace(int(followed.pid), int(place.address), place.name, part.role, _ENGINE, _ENGINE, "", None)
            for followed, place in self._of_spec[index].places
            for part in self._of_spec[index].parts
        ]

    def count(self, index: int) -> int:
        """How many events came of it."""
        self.read()
        return self._store.count(index)

    def missing(self, index: int) -> str:
        """Why it is nowhere."""
        return self._of_spec[index].missing

    def remarks(self) -> list[str]:
        """What there is to tell people of places."""
        return list(dict.fromkeys(text for one in self._of_spec for text in (*one.warnings, *one.refusals)))

    def remove(self, index: int) -> None:
        """Have it nowhere any more. Raises ControlError."""
        self._located.disarm(self._of_spec[index])

    def enable(self, index: int) -> None:
        """Have it again where it was. Raises the same as `add`."""
        if not self._of_spec[index].numbers:
            self._located.arm([self._of_spec[index]], self._watch)

    def wait_for_end(self, seconds: float) -> bool:
        """Whether nothing more will come, after so many seconds at most."""
        return self._wait(seconds)

    def close(self) -> None:
        """Have the last events, while the names of what is loaded are known still."""
        with contextlib.suppress(UsageError):
            self.read()
        self._located.close()
