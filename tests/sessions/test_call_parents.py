"""Which call another one is made within, where the clock does not tell them apart."""

from __future__ import annotations

import pyarrow as pa

from clew.sessions.call_tables import _ORDER, _with_parents
from clew.store.schema import SCHEMAS

Call = tuple[int, int, int, int | None]
"""Its number, when it began, how long it took, and where the stack was."""


def parents(*calls: Call) -> dict[int, int | None]:
    schema = pa.schema(
        [SCHEMAS["calls"].field(name) for name in ("process_id", "tid", "time_ns", "duration_ns", "call_id")]
        + [pa.field("frame", pa.uint64()), pa.field("end_ns", pa.int64()), SCHEMAS["calls"].field("parent_call_id")]
        + [SCHEMAS["calls"].field("library")]
    )
    rows = [
        {"process_id": 0, "tid": 1, "call_id": number, "time_ns": begin, "duration_ns": took, "frame": frame}
        | {"end_ns": begin + took}
        for number, begin, took, frame in calls
    ]
    found = _with_parents(pa.Table.from_pylist(rows, schema).sort_by(_ORDER))
    return {row["call_id"]: row["parent_call_id"] for row in found.to_pylist()}


def test_of_two_that_begin_at_once_the_outer_one_begins_higher_on_the_stack() -> None:
    # The inner one is over first, and has the lower number.
    assert parents((1, 100, 20, 0x7000), (2, 100, 50, 0x7100)) == {1: 2, 2: None}
    assert parents((1, 100, 20, 0x7000), (2, 100, 50, 0x7100), (3, 100, 90, 0x7200)) == {1: 2, 2: 3, 3: None}


def test_of_two_behind_each_other_none_is_within_the_other() -> None:
    assert parents((1, 100, 0, 0x7000), (2, 100, 50, 0x7000)) == {1: None, 2: None}
    assert parents((1, 100, 20, 0x7000), (2, 120, 50, 0x7000)) == {1: None, 2: None}
