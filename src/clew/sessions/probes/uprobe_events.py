"""Events of uprobes: what was asked for is worked out of the registers that the kernel tells, here.

Runs in the controller, in one thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from clew.address import Pid
from clew.capture.interpreter import Value, interpret
from clew.dataclass import replace
from clew.errors import CaptureError
from clew.export.probes.event_types import EventKind
from clew.process.processors.chosen import native_processor
from clew.protocol._constants import CaptureContext, CaptureOperation
from clew.sessions.probes.asked import DURATION
from clew.sessions.probes.backtraces import StackPieces
from clew.sessions.probes.event_forms import EventForm
from clew.sessions.probes.specs import ContextField
from clew.sessions.wanted import Wanted
from clew.store.arrow_types import ARROW_TYPES

if TYPE_CHECKING:
    from clew.capture.form import Form
    from clew.capture.machine import Machine
    from clew.export.probes.event_types import EventType
    from clew.process.perf_uprobes import UprobeHit
    from clew.sessions.memory import Images
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["UprobeEvents", "check_texts"]

_Op = CaptureOperation
_OF_MEMORY: Final = (_Op.LOAD, _Op.STRING, _Op.WORDS, _Op.BYTES)
_UNKNOWN: Final = (_Op.VECTOR, _Op.DESCRIPTOR_PATH, _Op.KEPT)
_KNOWN: Final = (
    *(CaptureContext.TID, CaptureContext.PID, CaptureContext.COMM, CaptureContext.TIME, CaptureContext.CPU),
    CaptureContext.DURATION,
)
_WORD_BYTES: Final = 8


class _Site(NamedTuple):
    """Where a uprobe is: what is taken there (`form`), and what events are called."""

    probe: int
    events: EventForm
    form: Form
    kind: EventKind
    address: int
    name: str


class _Call(NamedTuple):
    """One that has begun, and is told when it returns."""

    probe: int
    stack_pointer: int
    time_ns: int
    pc: int


class _Row(NamedTuple):
    hit: UprobeHit
    sequence: int
    comm: bytes
    pc: int
    values: tuple[Value, ...]


class UprobeEvents:
    """Of one session."""

    def __init__(self, images: Images) -> None:
        self._images = images
        self._sites: list[_Site] = []
        """By their keys."""
        self._forms: dict[tuple[int, EventKind], EventForm] = {}
        self._open: dict[tuple[int, int], list[_Call]] = {}
        """By process and thread."""
        self._sequences: dict[tuple[int, int], int] = {}
        self._comms: dict[int, bytes] = {}
        definition = native_processor().definition
        self._stack_pointer = definition.held_registers.index(definition.stack_pointer)
        self._pc = definition.held_registers.index(definition.program_counter)

    def meet(self, pid: Pid) -> None:
        """Note what a process is called, while it is there."""
        with contextlib.suppress(OSError):
            self._comms[pid] = Path(f"/proc/{pid}/comm").read_bytes().rstrip(b"\n")

    def add(
        self, probe: int, spec: ProbeSpec, machine: Machine, pid: Pid, address: int, name: str
    ) -> list[tuple[int, bool]]:
        """A place of a probe; by which keys its hits are to come, and whether these are of returns. Raises
        CaptureError."""
        kinds = [EventKind.ENTRY, EventKind.RETURN] if spec.is_function else [EventKind.POINT]
        sites = []
        for kind in kinds:
            if (probe, kind) not in self._forms:
                self._forms[probe, kind] = self._make_form(spec, machine, kind)
            events = self._forms[probe, kind]
            form = events.wanted.form_at(pid, pid, address)
            if form is None:
                raise CaptureError(f"{spec.name}: something that it names is not loaded yet")
            sites.append(_Site(probe, events, form, kind, address, name))
        first = len(self._sites)
        self._sites += sites
        return [(key, kind == EventKind.RETURN) for key, kind in enumerate(kinds, first)]

    def _make_form(self, spec: ProbeSpec, machine: Machine, kind: EventKind) -> EventForm:
        fields: list[ContextField] = [*spec.fields]
        if kind == EventKind.ENTRY:
            fields.insert(0, ContextField("parent_ip", f"*(u64 *)${machine.stack_pointer}", is_address=True))
        if kind == EventKind.RETURN:
            fields = [DURATION, *spec.leaving_fields]
        # Returns are told of the calls that were chosen as they began.
        condition = None if kind == EventKind.RETURN else spec.condition
        return EventForm(spec.name, fields, condition, machine, self._images, kind=kind)

    def make(self, hits: Sequence[UprobeHit]) -> list[tuple[EventType, pa.Table]]:
        """The events of hits, each thread's in its order."""
        rows: dict[tuple[int, str, int], tuple[EventForm, list[_Row]]] = {}
        for hit in hits:
            site = self._sites[hit.key]
            row = self._to_row(site, hit)
            if row is not None:
                rows.setdefault((id(site.events), site.name, hit.pid), (site.events, []))[1].append(row)
        tables = []
        for (_, name, pid), (events, own) in rows.items():
            tables.append((events.type_of(name), _to_table(events, own, pid)))
        return tables

    def _to_row(self, site: _Site, hit: UprobeHit) -> _Row | None:
        """The event of a hit; None: there is none."""
        thread, pc, duration = (hit.pid, hit.tid), site.address, None
        calls = self._open.setdefault(thread, [])
        stack_pointer = 0 if hit.registers is None else hit.registers[self._stack_pointer]
        if site.kind == EventKind.RETURN:
            call = _take_call(calls, site.probe, stack_pointer - _WORD_BYTES)
            if call is None:
                return None
            pc, duration = call.pc, hit.time_ns - call.time_ns
        elif hit.registers is not None:
            pc = hit.registers[self._pc]
        comm = self._name(hit)
        values = interpret(site.form, _HitPlace(hit, comm, self._stack_pointer, duration))
        if values is None:
            return None
        if site.kind == EventKind.ENTRY:
            # What was left by a longer way than a return.
            while calls and calls[-1].stack_pointer < stack_pointer:
                calls.pop()
            calls.append(_Call(site.probe, stack_pointer, hit.time_ns, pc))
        sequence = self._sequences.get(thread, 0)
        self._sequences[thread] = sequence + 1
        return _Row(hit, sequence, comm, pc, values)

    def _name(self, hit: UprobeHit) -> bytes:
        try:
            self._comms[hit.tid] = Path(f"/proc/{hit.pid}/task/{hit.tid}/comm").read_bytes().rstrip(b"\n")
        except OSError:
            # It is gone: it was called so when it was seen last, or as its process.
            self._comms.setdefault(hit.tid, self._comms.get(hit.pid, b""))
        return self._comms[hit.tid]


class _HitPlace:
    """A hit, as forms of captures ask about it. `duration` is that of the call that returns, if one does."""

    def __init__(self, hit: UprobeHit, comm: bytes, stack_pointer: int, duration: int | None) -> None:
        self._hit, self._stack_pointer = hit, stack_pointer
        self._known: dict[CaptureContext, Value] = {
            CaptureContext.TID: hit.tid,
            CaptureContext.PID: hit.pid,
            CaptureContext.COMM: comm,
            CaptureContext.TIME: hit.time_ns,
            CaptureContext.CPU: hit.cpu,
            CaptureContext.DURATION: duration,
        }

    def register(self, number: int) -> int | None:
        return None if self._hit.registers is None else self._hit.registers[number]

    def vector(self, number: int) -> int | None:
        return None

    def context(self, what: CaptureContext) -> Value:
        return self._known.get(what)

    def kept(self, field: int) -> Value:
        return None

    def descriptor_path(self, descriptor: int) -> bytes | None:
        return None

    def read(self, address: int, size_bytes: int) -> bytes:
        """The word that the stack pointer leads to; nothing else."""
        if self._hit.word is None or address != self.register(self._stack_pointer):
            return b""
        return self._hit.word.to_bytes(_WORD_BYTES, "little")[:size_bytes]


def _take_call(calls: list[_Call], probe: int, stack_pointer: int) -> _Call | None:
    """The call of a probe whose frame was there: the last one, where one goes on as another."""
    for index in range(len(calls) - 1, -1, -1):
        if calls[index].stack_pointer == stack_pointer and calls[index].probe == probe:
            return calls.pop(index)
    return None


def _to_table(events: EventForm, rows: Sequence[_Row], pid: int) -> pa.Table:
    kinds = events.wanted.kinds()
    columns = [pa.array([row.values[index] for row in rows], ARROW_TYPES[kind]) for index, kind in enumerate(kinds)]
    place = [
        pa.array([row.hit.time_ns for row in rows], pa.int64()),
        pa.array([row.sequence for row in rows], pa.uint64()),
        pa.array([pid] * len(rows), pa.uint32()),
        pa.array([row.hit.tid for row in rows], pa.uint32()),
        pa.array([row.comm for row in rows], pa.binary()),
    ]
    return events.make_table(place, pa.array([row.pc for row in rows], pa.uint64()), columns, pid, _no_frames)


def check_texts(spec: ProbeSpec, machine: Machine, images: Images, pid: Pid | None = None, address: int = 0) -> None:
    """Raises CaptureError where a uprobe can't have what is asked for, at an address of process `pid`; without one, as
    far as it means the same everywhere."""
    if spec.wish is not None:
        raise CaptureError(f"{spec.where}: uprobes add nothing up: another backend does")
    if any(one.backtrace for one in (*spec.fields, *spec.return_fields)):
        raise CaptureError(f"{spec.where}: a uprobe takes registers, and no backtrace")
    texts = [one.text for one in (*spec.fields, *spec.return_fields) if one.text]
    texts += [] if spec.condition is None else [spec.condition]
    for text in texts:
        # Where symbols are is no matter of what is asked for.
        somewhere = machine if pid is not None else replace(machine, find_symbol=lambda name: 1)
        wanted = Wanted([text], None, somewhere, images, has_returned=True)
        if wanted.is_placed and pid is None:
            continue
        form = wanted.form_at(pid or Pid(0), pid or Pid(0), address)
        if form is not None:
            _check(text, form)


def _check(text: str, form: Form) -> None:
    for one in form.instructions:
        if one.operation in _OF_MEMORY:
            raise CaptureError(f"{text}: a uprobe takes registers, and what is worked out of them: no memory")
        is_unknown = one.operation in _UNKNOWN
        if is_unknown or (one.operation == _Op.CONTEXT and CaptureContext(one.immediate) not in _KNOWN):
            raise CaptureError(f"{text}: a uprobe takes registers, and what is worked out of them")


def _no_frames(pid: int, registers: dict[str, int], pieces: StackPieces, is_place: bool) -> list[int]:
    return []
