"""Events of one probe as a table: in the order of time, with each value once, whatever names the program has."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from clew.export.probes.event_types import PLACE, EventBatch, EventKind, EventType, Field, Shape
from clew.export.probes.rows import list_by_thread
from clew.protocol._constants import CaptureType
from clew.sessions.probes.event_tables import columns_of, join_tables, to_event

ENTRY = EventType(
    "f_entry",
    (
        Field("ip", Shape.POINTER, is_present=True),
        Field("n", CaptureType.I32),
        Field("pid", CaptureType.U32),
        Field("n", CaptureType.U64),
    ),
    kind=EventKind.ENTRY,
    function="f",
)
EXIT = EventType(
    "f_exit",
    (Field("ip", Shape.POINTER, is_present=True), Field("duration", CaptureType.U64), Field("n", CaptureType.TEXT)),
    kind=EventKind.RETURN,
    function="f",
)


def table_of(event_type: EventType, *rows: tuple[int, int, tuple[Any, ...]]) -> pa.Table:
    """Events, each with its time, its number and its values."""
    place = [(time_ns, sequence, 5, 6, b"name", None) for time_ns, sequence, _ in rows]
    columns = [*zip(*place, strict=True), *zip(*(values for *_, values in rows), strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, event_type.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=event_type.schema)


def test_events_of_two_types_are_one_table_by_time() -> None:
    entries = table_of(ENTRY, (10, 0, (16, -1, 5, 7)), (20, 1, (16, None, 5, 8)))
    exits = table_of(EXIT, (20, 2, (16, 3, b"text")), (15, 0, (16, 4, None)))
    joined = join_tables([(EXIT, exits), (ENTRY, entries)], [ENTRY, EXIT])
    assert joined["event"].to_pylist() == ["f_entry", "f_exit", "f_entry", "f_exit"]
    assert joined["time_ns"].to_pylist() == [10, 15, 20, 20]
    assert joined["n"].to_pylist() == [-1, None, None, None]
    assert joined["n (return)"].to_pylist() == [None, None, None, b"text"]
    assert joined["duration"].to_pylist() == [None, 4, None, 3]
    assert joined.column_names == ["event", *PLACE.names, "ip", "n", "duration", "n (return)"]


def test_without_events_it_has_its_columns() -> None:
    assert join_tables([], [ENTRY]).schema == columns_of([ENTRY])
    assert join_tables([], []).column_names == ["event", *PLACE.names]


def test_names_may_be_any_text() -> None:
    strange = EventType("\udcff\0<script>", ENTRY.fields[:1])
    [name] = join_tables([(strange, table_of(strange, (1, 0, (2,))))], [])["event"].to_pylist()
    assert name == "\\udcff\0<script>"


def test_an_event_has_what_was_asked_for_first() -> None:
    table = table_of(ENTRY, (10, 0, (16, -1, 5, 7)))
    [one] = [to_event(event) for event in list_by_thread(EventBatch([(ENTRY, table)]))]
    assert (one.name, one.kind, one.ip, one["n"], one.tid, one.cpu) == ("f_entry", "entry", 16, -1, 6, None)
