"""Tables of events are read back as they were written, and collapsed stacks are counted."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from clew.export.probes import events_table
from clew.export.probes.collapsed import CollapsedStacks
from clew.export.probes.event_types import PLACE, EventBatch, EventType, Field, Loss, Shape
from clew.export.probes.events_table import EVENTS_SCHEMA, EventTables
from clew.export.probes.names import Names, make_file_name, make_identifier, make_title
from clew.protocol._constants import CaptureType
from tests.unit.export.probes.made_events import START_NS, batches, texts, to_table

STACK = EventType("stack", (Field("n", CaptureType.U8),), (Field("callstack", Shape.BACKTRACE),))
Rows = list[tuple[Any, ...]]


def plain(column: pa.ChunkedArray) -> str:
    """Values, in which one that is no number is equal to another."""
    return repr(column.to_pylist())


@settings(max_examples=30, deadline=None)
@given(batches())
def test_tables_hold_what_was_written(made: list[list[tuple[EventType, Rows]]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        tables = EventTables(Path(root), {4711: 3})
        given_tables: dict[EventType, list[pa.Table]] = {}
        for batch in made:
            listed = [(one, to_table(one, rows)) for one, rows in batch]
            tables.write(EventBatch(listed))
            for one, table in listed:
                given_tables.setdefault(one, []).append(table)
        tables.close()
        whole = pq.read_table(Path(root) / "events.parquet")
        own = {path: pq.read_table(path) for path in (Path(root) / "events").iterdir()}
    assert len(own) == len(given_tables)
    assert whole.schema.names == EVENTS_SCHEMA.names
    read = {tuple(table.column("event_id").to_pylist()): table for table in own.values() if table.num_rows}
    for parts in given_tables.values():
        expected = pa.concat_tables(parts)
        if expected.num_rows:
            sequences = expected.column(1).to_pylist()
            found = next(table for table in read.values() if table.column("sequence").to_pylist() == sequences)
            assert [*map(plain, found.columns[1:])] == [*map(plain, expected.columns)]
    by_id = {row["event_id"]: row for row in whole.to_pylist()}
    assert len(by_id) == whole.num_rows == sum(table.num_rows for table in own.values())
    ordered = [by_id[key] for key in sorted(by_id)]
    for tid in (4711, 4712):
        thread = [row["sequence"] for row in ordered if row["tid"] == tid]
        assert thread == sorted(thread)
    for table in own.values():
        for event_id, sequence in zip(table["event_id"].to_pylist(), table["sequence"].to_pylist(), strict=True):
            assert by_id[event_id]["sequence"] == sequence
    assert all(row["process_id"] == 3 and isinstance(json.loads(row["values"]), dict) for row in ordered)


def test_duckdb_joins_events_with_their_values(tmp_path: Path) -> None:
    tables = EventTables(tmp_path)
    rows = [(n, n, 4711, 4711, b"prog", 0, [n], n) for n in range(4)]
    tables.write(EventBatch([(STACK, to_table(STACK, rows))], [Loss(START_NS + 9, 4711, 4711, 2)]))
    tables.close()
    found = (
        duckdb.connect()
        .execute(
            f"select e.name, s.n, s.callstack, json_extract(e.values, '$.n') "
            f"from '{tmp_path}/events.parquet' e join '{tmp_path}/events/stack.parquet' s using (event_id) order by s.n"
        )
        .fetchall()
    )
    assert found == [("stack", n, [n], str(n)) for n in range(4)]
    lost = duckdb.connect().execute(f"select tid, lost from '{tmp_path}/events.parquet' where kind = 'lost'").fetchall()
    assert lost == [(4711, 2)]


def test_there_is_a_limit_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_table, "MAX_TYPES", 2)
    tables = EventTables(tmp_path)
    for n in range(4):
        one = EventType(f"e{n}")
        tables.write(EventBatch([(one, to_table(one, [(n, n, 4711, 4711, b"prog", 0)]))]))
    tables.close()
    assert tables.n_without_file == 2
    assert sorted(path.name for path in (tmp_path / "events").iterdir()) == ["e0.parquet", "e1.parquet"]
    assert pq.read_table(tmp_path / "events.parquet")["name"].to_pylist() == ["e0", "e1", "e2", "e3"]


def test_files_have_names_of_their_own(tmp_path: Path) -> None:
    tables = EventTables(tmp_path)
    columns = tuple(Field(name, CaptureType.U8) for name in ("time_ns", "n", "N", "event_id"))
    for name in ("../x", ".._x", "A", "a", ""):
        one = EventType(name, columns)
        tables.write(EventBatch([(one, to_table(one, [(1, 1, 4711, 4711, b"prog", 0, 1, 2, 3, 4)]))]))
    tables.close()
    files = sorted(path.name for path in (tmp_path / "events").iterdir())
    assert files == ["A.parquet", "_.parquet", "_x.parquet", "_x_2.parquet", "a_2.parquet"]
    own = pq.read_table(tmp_path / "events" / "A.parquet")
    assert own.schema.names == ["event_id", *PLACE.names, "time_ns_2", "n", "N_2", "event_id_2"]


def test_stacks_are_counted() -> None:
    stacks = CollapsedStacks(lambda pid, address: {0x10: "leaf", 0x1F: "mid;dle", 0x2F: "main"}.get(address, "?"))
    rows = [
        (1, 1, 4711, 4711, b"prog", 0, [0x10, 0x20, 0x30], 1),
        (2, 2, 4711, 4711, b"prog", 0, [0x10, 0x20, 0x30], 2),
        (3, 3, 4711, 4711, b"prog", 0, [0x10], 3),
        (4, 4, 4711, 4711, b"prog", 0, None, 4),
        (5, 5, 4711, 4711, b"prog", 0, [0], 5),
        (6, 6, 4711, 4711, b"a\nb", 0, [0x10], 6),
    ]
    stacks.write(EventBatch([(STACK, to_table(STACK, rows)), (EventType("none"), to_table(EventType("none"), []))]))
    file = io.StringIO()
    stacks.write_lines(file)
    assert file.getvalue().splitlines() == [
        "a\\nb;leaf 1",
        "prog;? 1",
        "prog;leaf 1",
        "prog;main;mid:dle;leaf 2",
    ]
    assert stacks.n_missing == 1


@given(texts())
def test_names_are_what_they_are_to_be(name: str) -> None:
    assert make_identifier(name).isidentifier() or make_identifier(name)[0].isdigit()
    assert make_title(name).isprintable()
    assert not {*make_title(name)} & {*'"\\'}
    assert "/" not in make_file_name(name)
    assert make_file_name(name)[0] != "."


@given(texts())
def test_no_name_is_given_twice(name: str) -> None:
    names = Names(lambda text: text[:3], fold=True)
    given_names = [names.give(one) for one in [name, name.upper(), name, name + "_2", name * 300, name]]
    assert len({one.casefold() for one in given_names}) == len(given_names)
