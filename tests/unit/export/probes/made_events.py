"""Events made up: tables of rows, and any types with any values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from clew.export.probes.event_types import EventKind, EventType, Field, Shape
from clew.export.probes.identity import Clock, Host, ProcessIdentity
from clew.protocol._constants import CaptureType

START_NS = 1_795_940_499_000_000_000
HOST = Host("machine", Clock("06707ee1-f46b-48dd-9526-2232fdcf3be6", START_NS - 5_000_000_000))
PROCESS = ProcessIdentity(4711, b"prog", START_NS)

_BITS = {"8": 8, "16": 16, "32": 32, "64": 64}


def to_table(event_type: EventType, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """A table of rows: time behind START_NS, sequence, pid, tid, comm, cpu, contexts, fields."""
    schema = event_type.schema
    placed = [(START_NS + row[0], *row[1:]) for row in rows]
    columns = [[row[index] for row in placed] for index in range(len(schema))]
    return pa.Table.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
    )


def calls_of(function: str) -> tuple[EventType, EventType]:
    """The types of a function's entries and returns, which number their calls."""
    fields = (Field("call", CaptureType.U64),)
    return tuple(
        EventType(f"{function}:{kind.value}", fields, kind=kind, function=function, call="call")
        for kind in (EventKind.ENTRY, EventKind.RETURN)
    )  # type: ignore[return-value]


def texts() -> st.SearchStrategy[str]:
    """Names and texts of any program, without zeros and without what is no UTF-8."""
    return st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=12)


@st.composite
def fields(draw: st.DrawFn) -> Field:
    """Any field."""
    kind = draw(st.sampled_from([*CaptureType, *Shape]))
    members = draw(st.lists(texts(), min_size=1, max_size=3, unique=True)) if kind is Shape.REGISTERS else []
    return Field(draw(texts()), kind, tuple(members), draw(st.booleans()))


@st.composite
def event_types(draw: st.DrawFn) -> EventType:
    """Any type of events."""
    own, contexts = (tuple(draw(st.lists(fields(), max_size=n))) for n in (5, 2))
    return EventType(draw(texts()), own, contexts)


def values_of(field: Field) -> st.SearchStrategy[Any]:
    """Any value of a field."""
    found = _present_values(field)
    return found if field.is_present else st.none() | found


def _present_values(field: Field) -> st.SearchStrategy[Any]:
    kind, words = field.type, st.integers(0, (1 << 64) - 1)
    if kind is Shape.POINTER:
        return words
    if kind is Shape.BYTES:
        return st.binary(max_size=9)
    if kind is Shape.BACKTRACE:
        return st.lists(words, max_size=4)
    if kind is Shape.REGISTERS:
        return st.fixed_dictionaries(dict.fromkeys(field.members, words))
    if kind is CaptureType.TEXT:
        # Not empty: babeltrace2 2.0.4 shows strings of earlier events in their place, LTTng's as well.
        return texts().filter(len).map(str.encode)
    if kind in (CaptureType.F32, CaptureType.F64):
        return st.floats(width=32 if kind is CaptureType.F32 else 64)
    bits = next(bits for name, bits in _BITS.items() if kind.name[1:] == name)
    is_signed = kind.name[0] == "I"
    return st.integers(-(1 << bits - 1) if is_signed else 0, (1 << bits - is_signed) - 1)


@st.composite
def batches(draw: st.DrawFn) -> list[list[tuple[EventType, list[tuple[Any, ...]]]]]:
    """Batches of rows by types: of a few threads, each thread's in order over all batches."""
    types = draw(st.lists(event_types(), min_size=1, max_size=3, unique=True))
    clock = dict.fromkeys((4711, 4712), 0)
    sequence = 0
    found = []
    for _ in range(draw(st.integers(1, 3))):
        rows: dict[EventType, list[tuple[Any, ...]]] = {one: [] for one in types}
        for _ in range(draw(st.integers(0, 6))):
            one, tid = draw(st.sampled_from(types)), draw(st.sampled_from([*clock]))
            clock[tid] += draw(st.sampled_from([1, 10, 1000, (1 << 32) - 1, 1 << 32, 5_000_000_000]))
            place = clock[tid], sequence, 4711, tid, b"prog", draw(st.none() | st.integers(0, 3))
            sequence += 1
            rows[one].append((*place, *(draw(values_of(field)) for field in one.values)))
        # Whatever comes first in a table is not first in its thread.
        found.append([(one, draw(st.permutations(own))) for one, own in rows.items()])
    return found
