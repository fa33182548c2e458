"""Traces for Perfetto are read by Perfetto's own declarations of the format."""

from __future__ import annotations

import io
from typing import Any

import pytest

from clew.export.probes.event_types import EventBatch, EventType, Field, Loss, Shape
from clew.export.probes.perfetto import PerfettoWriter
from clew.export.probes.protobuf import bytes_field, double_field, integer_field, varint
from clew.protocol._constants import CaptureType
from tests.unit.export.probes.made_events import START_NS, calls_of, to_table

perfetto_trace = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
    reason="Perfetto's declarations are not installed: traces for it were not read (pip install perfetto protobuf)",
)

ENTRY, RETURN = calls_of("parse")
INNER, INNER_RETURN = calls_of("inner")


def written(*batches: EventBatch, end: tuple[int, int] | None = None) -> Any:
    file = io.BytesIO()
    writer = PerfettoWriter(file, {4711: b"the program"})
    for batch in batches:
        writer.write(batch)
    if end:
        writer.end_thread(*end)
    writer.close()
    trace = perfetto_trace.Trace()
    trace.ParseFromString(file.getvalue())
    return trace


def row(event_type: EventType, time: int, *values: Any, tid: int = 4711) -> tuple[EventType, Any]:
    return event_type, to_table(event_type, [(time, time, 4711, tid, b"main", 0, *values)])


def told(trace: Any) -> list[tuple[int, int, str, dict[str, Any]]]:
    """What events say, with the names that they have by number: time, type, name, annotations."""
    names: dict[str, dict[int, str]] = {"event_names": {}, "debug_annotation_names": {}}
    found = []
    for packet in trace.packet:
        for kind, known in names.items():
            known |= {one.iid: one.name for one in getattr(packet.interned_data, kind)}
        if packet.HasField("track_event"):
            event = packet.track_event
            annotations = {names["debug_annotation_names"][one.name_iid]: plain(one) for one in event.debug_annotations}
            name = names["event_names"][event.name_iid] if event.name_iid else ""
            found.append((packet.timestamp - START_NS, event.type, name, annotations))
    return found


def plain(one: Any) -> Any:
    if one.array_values:
        return [plain(value) for value in one.array_values]
    if one.dict_entries:
        return {entry.name: plain(entry) for entry in one.dict_entries}
    kind = one.WhichOneof("value")
    return None if kind is None else (kind, getattr(one, kind))


def test_calls_are_slices() -> None:
    trace = written(EventBatch([row(ENTRY, 10, 1), row(RETURN, 30, 1), row(RETURN, 40, 9)]))
    begin, end, instant = perfetto_trace.TrackEvent.Type.values()[1:4]
    assert told(trace) == [
        (10, begin, "parse", {"call": ("uint_value", 1)}),
        (30, end, "", {"call": ("uint_value", 1)}),
        # Nobody told of its entry.
        (40, instant, "parse:return", {"call": ("uint_value", 9)}),
    ]


def test_calls_that_are_left_end_with_the_one_outside() -> None:
    batch = EventBatch([row(ENTRY, 10, 1), row(INNER, 20, 2), row(INNER, 30, 3), row(RETURN, 40, 1)])
    assert [(time, kind) for time, kind, _, _ in told(written(batch))] == [
        (10, 1), (20, 1), (30, 1), (40, 2), (40, 2), (40, 2)
    ]  # fmt: skip
    over = written(EventBatch([row(ENTRY, 10, 1), row(INNER, 20, 2)]), end=(4711, 4711))
    assert [(time, kind) for time, kind, _, _ in told(over)] == [(10, 1), (20, 1), (20, 2), (20, 2)]


def test_threads_are_tracks_of_their_process() -> None:
    trace = written(EventBatch([row(ENTRY, 10, 1), row(ENTRY, 20, 1, tid=4712)]))
    tracks = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    process, *threads = tracks
    assert (process.process.pid, process.process.process_name) == (4711, "the program")
    assert [(one.thread.pid, one.thread.tid, one.thread.thread_name) for one in threads] == [
        (4711, 4711, "main"),
        (4711, 4712, "main"),
    ]
    assert {one.parent_uuid for one in threads} == {process.uuid}
    used = [packet.track_event.track_uuid for packet in trace.packet if packet.HasField("track_event")]
    assert used == [one.uuid for one in threads]


def test_names_are_told_before_they_are_used_and_the_clock_is_real_time() -> None:
    trace = written(EventBatch([row(ENTRY, 10, 1), row(INNER, 20, 1)]))
    snapshot = trace.packet[0].clock_snapshot
    assert snapshot.primary_trace_clock == 1
    assert [(one.clock_id, one.timestamp) for one in snapshot.clocks] == [(1, START_NS + 10)]
    first, *others = [packet for packet in trace.packet if packet.sequence_flags]
    assert first.sequence_flags == perfetto_trace.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    assert first.trace_packet_defaults.timestamp_clock_id == 1
    assert {one.sequence_flags for one in others} == {perfetto_trace.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE}
    assert len({packet.trusted_packet_sequence_id for packet in trace.packet}) == 1
    names = [one.name for packet in trace.packet for one in packet.interned_data.event_names]
    assert names == ["parse", "inner"]


def test_values_of_all_types() -> None:
    fields = (
        Field("i", CaptureType.I64),
        Field("u", CaptureType.U64),
        Field("f", CaptureType.F32),
        Field("s", CaptureType.TEXT),
        Field("b", Shape.BYTES),
        Field("p", Shape.POINTER),
        Field("r", Shape.REGISTERS, ("rax", "rbx")),
        Field("t", Shape.BACKTRACE),
        Field("m", CaptureType.U8),
    )
    one = EventType("one", fields)
    top = (1 << 64) - 1
    values = -(1 << 63), top, -0.5, b"a\xff\xc3\xa9", b"\0a", top, {"rax": 0, "rbx": top}, [1, top], None
    [(_, _, name, found)] = told(written(EventBatch([row(one, 10, *values)])))
    assert name == "one"
    assert found == {
        "i": ("int_value", -(1 << 63)),
        "u": ("uint_value", top),
        "f": ("double_value", -0.5),
        "s": ("string_value", "a\\xffé"),
        "b": ("string_value", "0061"),
        "p": ("pointer_value", top),
        "r": {"rax": ("pointer_value", 0), "rbx": ("pointer_value", top)},
        "t": [("pointer_value", 1), ("pointer_value", top)],
        "m": ("string_value", "<missing>"),
    }


def test_losses_are_instants() -> None:
    batch = EventBatch([], [Loss(START_NS + 5, 4711, 4711, 7)])
    assert told(written(batch)) == [(5, 3, "events were lost", {"lost": ("uint_value", 7)})]


def test_a_trace_without_events_is_one() -> None:
    assert len(written().packet) == 0


def test_messages_are_encoded_as_protocol_buffers_say() -> None:
    # The examples of protobuf.dev.
    assert varint(150) == bytes.fromhex("9601")
    assert integer_field(1, 150) == bytes.fromhex("089601")
    assert bytes_field(2, "testing") == bytes.fromhex("120774657374696e67")
    assert varint(-2) == bytes.fromhex("feffffffffffffffff01")
    assert double_field(1, 1.0) == bytes.fromhex("09000000000000f03f")
