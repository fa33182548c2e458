"""Export of events to Perfetto: a track for each thread, with calls as slices and all else as instants.

Runs in the controller. The format is a sequence of TracePackets (perfetto.dev, "Synthetic TrackEvent"); the numbers
below are those of its .proto files. Events of a thread have to come in order, those of several may come in any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

from clew.export.probes.event_types import EventBatch, EventKind, Field, Loss, Shape
from clew.export.probes.open_calls import OpenCalls, Thread, function_of
from clew.export.probes.protobuf import bytes_field, double_field, integer_field
from clew.export.probes.rows import Event, TimeOrder
from clew.export.probes.value_text import MISSING
from clew.protocol._constants import CaptureType

__all__ = ["PerfettoWriter"]

_SEQUENCE: Final = 1
_REALTIME: Final = 1
_CATEGORY: Final = 1

_TRACE_PACKET: Final = 1
# TracePacket.
_CLOCK_SNAPSHOT, _TIMESTAMP, _SEQUENCE_ID, _TRACK_EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_CLOCK_ID, _DEFAULTS, _TRACK_DESCRIPTOR = 58, 59, 60
_CLEARED, _NEEDS_STATE = 1, 2
# InternedData.
_CATEGORIES, _EVENT_NAMES, _ANNOTATION_NAMES = 1, 2, 3
# TrackEvent.
_CATEGORY_IIDS, _ANNOTATIONS, _TYPE, _NAME_IID, _TRACK_UUID = 3, 4, 9, 10, 11
_BEGIN, _END, _INSTANT = 1, 2, 3


class PerfettoWriter:
    """Writes a trace to `file`. `processes` are names by number, which may be added to while events come."""

    def __init__(self, file: BinaryIO, processes: dict[int, bytes]) -> None:
        """Raises OSError."""
        self._file, self._processes = file, processes
        self._order = TimeOrder()
        self._open: dict[Thread, OpenCalls] = {}
        self._last_ns: dict[Thread, int] = {}
        self._tracks: set[int] = set()
        self._names: dict[tuple[int, str], int] = {}
        self._interned = b""
        """What is to be told with the next event."""
        self._has_begun = False

    def write(self, batch: EventBatch) -> None:
        """Write events. Raises OSError."""
        self._write(self._order.add(batch))

    def end_thread(self, pid: int, tid: int) -> None:
        """A thread is over: so are the calls that it had open. Raises OSError."""
        thread = pid, tid
        for _ in self._open.pop(thread, OpenCalls()).end():
            self._write_event(thread, self._last_ns[thread], _END)
        self._last_ns.pop(thread, None)

    def close(self) -> None:
        """Write what waited. Calls that are open stay so: their slices have no end. Raises OSError."""
        self._write(self._order.close())
        self._file.flush()

    def _write(self, found: Sequence[Event | Loss]) -> None:
        if found and not self._has_begun:
            self._begin(found[0].time_ns)
        for one in found:
            thread = one.pid, one.tid
            # A slice may not end before it begins.
            time = self._last_ns[thread] = max(one.time_ns, self._last_ns.get(thread, one.time_ns))
            if isinstance(one, Loss):
                self._add_track(one.pid, one.tid, b"")
                count = self._annotation("lost", integer_field(3, one.count))
                self._write_event(thread, time, _INSTANT, "events were lost", count)
                continue
            self._add_track(one.pid, one.tid, one.comm)
            self._write_one(one, thread, time)

    def _write_one(self, event: Event, thread: Thread, time: int) -> None:
        values = b"".join(self._annotations(event.type.values, event.values))
        calls = self._open.setdefault(thread, OpenCalls())
        if event.type.kind is EventKind.ENTRY:
            for _ in calls.enter(event):
                self._write_event(thread, time, _END)
            self._write_event(thread, time, _BEGIN, function_of(event.type), values)
            return
        over = calls.leave(event) if event.type.kind is EventKind.RETURN else []
        if not over:
            self._write_event(thread, time, _INSTANT, event.type.name, values)
            return
        # Those that were left within it end with it.
        for _ in over[:-1]:
            self._write_event(thread, time, _END)
        self._write_event(thread, time, _END, values=values)

    def _begin(self, time_ns: int) -> None:
        """The clock is CLOCK_REALTIME; names are told once, and known from then on."""
        clock = bytes_field(1, integer_field(1, _REALTIME) + integer_field(2, time_ns)) + integer_field(2, _REALTIME)
        self._write_packet(bytes_field(_CLOCK_SNAPSHOT, clock))
        category = bytes_field(_CATEGORIES, integer_field(1, _CATEGORY) + bytes_field(2, "probe"))
        state = integer_field(_FLAGS, _CLEARED) + bytes_field(_DEFAULTS, integer_field(_CLOCK_ID, _REALTIME))
        self._write_packet(state + bytes_field(_INTERNED, category))
        self._has_begun = True

    def _add_track(self, pid: int, tid: int, comm: bytes) -> None:
        track, process = _track(pid, tid), _track(pid, 0)
        if track in self._tracks:
            return
        if process not in self._tracks:
            self._tracks.add(process)
            name = bytes_field(6, _text(self._processes.get(pid, comm)))
            told = integer_field(1, process) + bytes_field(3, integer_field(1, pid) + name)
            self._write_packet(bytes_field(_TRACK_DESCRIPTOR, told))
        self._tracks.add(track)
        told = integer_field(1, pid) + integer_field(2, tid) + bytes_field(5, _text(comm))
        whole = integer_field(1, track) + integer_field(5, process) + bytes_field(4, told)
        self._write_packet(bytes_field(_TRACK_DESCRIPTOR, whole))

    def _write_event(self, thread: Thread, time: int, kind: int, name: str = "", values: bytes = b"") -> None:
        event = integer_field(_TYPE, kind) + integer_field(_TRACK_UUID, _track(*thread))
        if name:
            event += integer_field(_NAME_IID, self._intern(_EVENT_NAMES, name))
            event += integer_field(_CATEGORY_IIDS, _CATEGORY)
        event = bytes_field(_TRACK_EVENT, event + values)
        head = integer_field(_TIMESTAMP, time) + integer_field(_FLAGS, _NEEDS_STATE)
        interned, self._interned = self._interned, b""
        if interned:
            head += bytes_field(_INTERNED, interned)
        self._write_packet(head + event)

    def _write_packet(self, packet: bytes) -> None:
        self._file.write(bytes_field(_TRACE_PACKET, packet + integer_field(_SEQUENCE_ID, _SEQUENCE)))

    def _intern(self, kind: int, name: str) -> int:
        """The number of a name, which is told with the next event if it is new."""
        number = self._names.get((kind, name))
        if number is None:
            number = self._names[kind, name] = len(self._names) + 1
            self._interned += bytes_field(kind, integer_field(1, number) + bytes_field(2, name))
        return number

    def _annotations(self, fields: Sequence[Field], values: Sequence[Any]) -> Iterator[bytes]:
        for field, value in zip(fields, values, strict=True):
            yield self._annotation(field.name, _value(field, value))

    def _annotation(self, name: str, value: bytes) -> bytes:
        return bytes_field(_ANNOTATIONS, integer_field(1, self._intern(_ANNOTATION_NAMES, name)) + value)


def _track(pid: int, tid: int) -> int:
    """The number of a thread's track, or of a process' for 0."""
    return pid << 32 | tid


def _text(text: bytes) -> str:
    return text.split(b"\0")[0].decode(errors="backslashreplace")


def _value(field: Field, value: Any) -> bytes:
    """A value as a field of a DebugAnnotation."""
    if value is None:
        return bytes_field(6, MISSING)
    if field.type is Shape.POINTER:
        return integer_field(7, value)
    if field.type is Shape.BACKTRACE:
        return b"".join(bytes_field(12, integer_field(7, one)) for one in value)
    if field.type is Shape.REGISTERS:
        return b"".join(
            bytes_field(11, bytes_field(10, name) + integer_field(7, value[name])) for name in field.members
        )
    if field.type is Shape.BYTES:
        return bytes_field(6, value.hex())
    if field.type is CaptureType.TEXT:
        return bytes_field(6, value.decode(errors="backslashreplace"))
    if isinstance(value, float):
        return double_field(5, value)
    return integer_field(4 if value < 0 else 3, value)
