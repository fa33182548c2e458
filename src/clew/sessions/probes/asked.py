"""A probe as a session asks for it: what it wants, and the numbers by which its events are known.

Runs in the controller.
"""

from __future__ import annotations

from clew.address import Pid
from clew.capture.compiler import compile_capture
from clew.capture.machine import Machine
from clew.errors import CaptureError
from clew.export.probes.event_types import EventKind
from clew.sessions.memory import Images
from clew.sessions.probes.event_forms import EventForm
from clew.sessions.probes.specs import ContextField, ProbeSpec

__all__ = ["AskedForm", "AskedProbe"]

_PARENT = ContextField("parent_ip", "*(u64 *)$rsp", is_address=True)
_DURATION = ContextField("duration", "duration")


class AskedForm:
    """What is taken at the places of one type of events."""

    def __init__(self, events: EventForm) -> None:
        self.events = events

    def form_at(self, pid: Pid, memory_pid: Pid, address: int) -> bytes:
        """The packed form at an address of process `pid`, whose memory `memory_pid` shows. Raises CaptureError."""
        form = self.events.wanted.form_at(pid, memory_pid, address)
        if form is None:
            raise CaptureError(f"{self.events.name}: something that it names is not loaded yet")
        return form.pack()


class AskedProbe:
    """`spec`, whose events have numbers from `number` on. Raises CaptureError."""

    N_NUMBERS = 3

    def __init__(self, spec: ProbeSpec, number: int, machine: Machine, images: Images) -> None:
        self.spec, self.number = spec, number
        self.kept_number, self.return_number = number + 1, number + 2
        self.call_kind = 1 + number // self.N_NUMBERS
        self.missing = ""
        """Why it is nowhere yet."""
        self.return_form: AskedForm | None = None
        if not spec.is_function:
            self.form = AskedForm(EventForm(spec.name, spec.fields, spec.condition, machine, images))
            self.kept_form = b""
            return
        entry = EventForm(
            f"{spec.name}_entry", [_PARENT, *spec.fields], spec.condition, machine, images, kind=EventKind.ENTRY
        )
        leaving = EventForm(
            f"{spec.name}_exit", [_DURATION, *spec.return_fields], None, machine, images, kind=EventKind.RETURN
        )
        self.form, self.return_form = AskedForm(entry), AskedForm(leaving)
        self.kept_form = compile_capture([], machine, spec.condition).pack()

    def forms(self) -> dict[int, EventForm]:
        """Its types of events, by their numbers."""
        found = {self.number: self.form.events}
        if self.return_form is not None:
            found[self.return_number] = self.return_form.events
        return found
