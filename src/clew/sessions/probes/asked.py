"""A probe as it is asked for in one process: what it wants, and the numbers by which its events are known.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

from clew.address import Pid
from clew.capture.compiler import asks_program
from clew.capture.machine import Machine
from clew.errors import CaptureError, UsageError
from clew.export.probes.event_types import EventKind
from clew.process.capture_table import CaptureRow
from clew.protocol._constants import CaptureAction, Change
from clew.sessions.aggregate_table import AggregateTable, AggregateWish
from clew.sessions.memory import Images
from clew.sessions.probes.backends import AUTO, BackendChoice
from clew.sessions.probes.event_forms import EventForm
from clew.sessions.probes.specs import ContextField, PlaceChange, ProbeSpec, Trigger
from clew.sessions.wanted import Wanted

__all__ = ["DURATION", "N_CHANGED", "N_NUMBERS", "AskedForm", "AskedProbe", "Asker", "check_spec", "wished"]

N_NUMBERS: Final = 3
"""Each probe has so many: of its events, or those of entries; of what is kept of calls; of events of returns."""
N_CHANGED: Final = 16
"""So many of the registers are general ones, the first."""
DURATION: Final = ContextField("duration", "duration")


def check_spec(spec: ProbeSpec) -> None:
    """Raises CaptureError where something that is wanted is no expression at all."""
    for one in (*spec.fields, *spec.return_fields):
        if one.text:
            asks_program(one.text)
    for text in (spec.condition, *wished(spec.wish), *_changed(spec.consequence)):
        if text is not None:
            asks_program(text)


def wished(wish: AggregateWish | None) -> list[str]:
    """What is taken to be added up: keys, then a value."""
    if wish is None:
        return []
    return wish.by if wish.value is None else [*wish.by, wish.value]


def _changed(consequence: Trigger | PlaceChange | None) -> list[str]:
    """What is taken to be carried out, but for the number of a register."""
    if not isinstance(consequence, PlaceChange):
        return []
    return [consequence.value] if consequence.kind == Change.REGISTER else [consequence.where, consequence.value]


class Asker:
    """Who wants probes in a process: by techniques as `choice` has them."""

    def __init__(self, choice: BackendChoice = AUTO) -> None:
        self.choice = choice
        self.remarks: list[str] = []
        """What is to be told people: what places are doubtful, and where no probe can be."""
        self.refused: list[str] = []
        """What of that is a place that can't be as it has to be."""

    def refuse(self, text: str) -> None:
        """A place can't be."""
        self.remarks.append(text)
        if self.choice.requires_jump:
            self.refused.append(text)

    def remark(self, text: str) -> None:
        """Tell something, once."""
        if text not in self.remarks:
            self.remarks.append(text)

    def raise_refused(self) -> None:
        """Raises UsageError where places can't be as they have to be, of those that were looked at since."""
        refused, self.refused = self.refused, []
        if refused:
            others = f" (and {len(refused) - 1} others)" if len(refused) > 1 else ""
            raise UsageError(f"{refused[0]}{others}")


class AskedForm:
    """What is taken at the places of one type of events."""

    def __init__(self, events: EventForm) -> None:
        self.events = events

    def form_at(self, pid: Pid, memory_pid: Pid, address: int, begins_at: int | None = None) -> bytes:
        """The packed form at an address of process `pid`, whose memory `memory_pid` shows, in a function that begins at
        `begins_at`, if it is where that returns. Raises CaptureError."""
        form = self.events.wanted.form_at(pid, memory_pid, address, begins_at)
        if form is None:
            raise CaptureError(f"{self.events.name}: something that it names is not loaded yet")
        return form.pack()


class AskedProbe:
    """`spec`, number `index` of a session. What names in it mean is found out when it is at a place: what they are of
    is loaded then. All forms raise CaptureError."""

    def __init__(
        self,
        spec: ProbeSpec,
        index: int,
        machine: Machine,
        images: Images,
        find_table: Callable[[AskedProbe], AggregateTable],
        asker: Asker,
    ) -> None:
        """`find_table` gives the table in which it adds up, which the process has then."""
        self.spec, self.index, self.find_table, self.asker = spec, index, find_table, asker
        self.number = index * N_NUMBERS + 1
        self.kept_number, self.return_number = self.number + 1, self.number + 2
        self.call_kind = index + 1
        self.missing = ""
        """Why it is nowhere yet."""
        self._machine, self._images = machine, images

    @property
    def has_backtrace(self) -> bool:
        """Whether its events have backtraces."""
        return any(one.backtrace for one in (*self.spec.fields, *self.spec.return_fields))

    @cached_property
    def form(self) -> AskedForm:
        """Of events at the place, or where the function is entered."""
        spec = self.spec
        if not spec.is_function:
            return self._make(spec.name, [*spec.fields], spec.condition, EventKind.POINT)
        parent = ContextField("parent_ip", f"*(u64 *)${self._machine.stack_pointer}", is_address=True)
        return self._make(spec.name, [parent, *spec.fields], spec.condition, EventKind.ENTRY)

    @cached_property
    def return_form(self) -> AskedForm:
        """Of events where the function returns."""
        fields = [DURATION, *self.spec.leaving_fields]
        return self._make(self.spec.name, fields, None, EventKind.RETURN, self.spec.condition)

    @cached_property
    def wanted_sum(self) -> Wanted:
        """What is added up."""
        spec = self.spec
        condition = None if spec.is_function else spec.condition
        return Wanted(
            wished(spec.wish),
            condition,
            self._machine,
            self._images,
            has_returned=spec.is_function,
            keeps_types=True,
            entry_condition=spec.condition if spec.is_function else None,
        )

    def sum_row(self, pc: int, pid: Pid, memory_pid: Pid, address: int, begins_at: int | None = None) -> CaptureRow:
        """The capture that adds up at a place. Raises UsageError, CaptureError."""
        form = self.wanted_sum.form_at(pid, memory_pid, address, begins_at)
        if form is None:
            raise CaptureError(f"{self.spec.name}: something that it names is not loaded yet")
        kind = self.call_kind if self.spec.is_function else 0
        table = self.find_table(self)
        return CaptureRow(pc, self.number, CaptureAction.AGGREGATE, form.pack(), table.shape, kind)

    @cached_property
    def _wanted_consequence(self) -> Wanted:
        """What says what happens at a place."""
        spec = self.spec
        texts = []
        if isinstance(spec.consequence, PlaceChange):
            kind, where, value = spec.consequence
            texts = [f"(u64)({text})" for text in (str(int(kind)), self._place_of(kind, where), value)]
        return Wanted(texts, spec.condition, self._machine, self._images, has_returned=spec.at_return, keeps_types=True)

    def _place_of(self, kind: Change, where: str) -> str:
        if kind != Change.REGISTER:
            return where
        names = self._machine.registers
        if where not in names[:N_CHANGED] or where == self._machine.stack_pointer:
            raise CaptureError(f"{where}: only general registers can be set, and the stack pointer not")
        return str(names.index(where))

    def consequence_row(
        self, pc: int, pid: Pid, memory_pid: Pid, address: int, begins_at: int | None = None
    ) -> CaptureRow:
        """The capture by which that happens. Raises UsageError, CaptureError."""
        form = self._wanted_consequence.form_at(pid, memory_pid, address, begins_at)
        if form is None:
            raise CaptureError(f"{self.spec.name}: something that it names is not loaded yet")
        action = CaptureAction.STOP if isinstance(self.spec.consequence, Trigger) else CaptureAction.CHANGE
        kind = self.call_kind if self.spec.at_return else 0
        return CaptureRow(pc, self.number, action, form.pack(), call_kind=kind)

    def kept_form_at(self, pid: Pid, memory_pid: Pid, begins_at: int, address: int) -> bytes:
        """The packed form of what is kept of calls, of those that are chosen, until they return: what is asked for of
        when they began. They begin at one address, and return at another. Raises CaptureError."""
        wanted = self.wanted_sum if self.spec.wish is not None else self._wanted_consequence
        if self.spec.has_events:
            wanted = self.return_form.events.wanted
        form = wanted.form_at(pid, memory_pid, address, begins_at)
        if form is None or form.entry is None:
            raise CaptureError(f"{self.spec.name}: something that it names is not loaded yet")
        return form.entry.pack()

    def forms(self) -> dict[int, EventForm]:
        """Its types of events, by their numbers."""
        if not self.spec.has_events:
            return {}
        found = {self.number: self.form.events}
        if self.spec.is_function:
            found[self.return_number] = self.return_form.events
        return found

    def _make(
        self,
        name: str,
        fields: list[ContextField],
        condition: str | None,
        kind: EventKind,
        entry_condition: str | None = None,
    ) -> AskedForm:
        machine, images = self._machine, self._images
        events = EventForm(name, fields, condition, machine, images, kind=kind, entry_condition=entry_condition)
        return AskedForm(events)
