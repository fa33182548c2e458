"""Events of probes are calls of a trace: those that were made, at the places that they were made at."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.analysis.calls.call_lanes import MAX_DEPTH, MAX_ROWS, CallLanes
from clew.analysis.calls.call_nesting import CallNesting
from clew.analysis.calls.call_rows import CallRows
from clew.analysis.probes import event_calls, event_rows
from clew.analysis.probes.event_rows import is_event_folder
from clew.analysis.probes.event_trace import TraceWithEvents
from clew.errors import TraceDamagedError
from clew.export.probes.event_types import EventBatch, EventKind, EventType, Field, Loss, Shape
from clew.export.probes.events_table import EventTables
from clew.protocol._constants import CaptureType
from clew.protocol.words import CALL_WORDS
from clew.store.trace import Trace
from tests.unit.analysis.probes.written_events import open_events, write_events
from tests.unit.export.probes.made_events import START_NS, batches, to_table
from tests.unit.export.probes.test_call_tree import Made, made_calls, run
from tests.unit.small_trace import BASE, repeated_trace, small_trace, write_trace

Row = dict[str, Any]
Batches = list[list[tuple[EventType, list[tuple[Any, ...]]]]]

PLACE = (Field("ip", Shape.POINTER, is_present=True),)
POINT = EventType("point", PLACE)
ENTRY = EventType("f_entry", (*PLACE, Field("n", CaptureType.U64)), kind=EventKind.ENTRY, function="f")
RETURN = EventType("f_exit", (*PLACE, Field("retval", CaptureType.U64)), kind=EventKind.RETURN, function="f")


def event(time: int, sequence: int, *values: Any, pid: int = 7, tid: int = 7) -> tuple[Any, ...]:
    """A row of an event, `time` behind 1970."""
    return (time - START_NS, sequence, pid, tid, b"it", 0, *values)


def calls_of(trace: Trace) -> list[Row]:
    return sorted(trace.read("calls").to_pylist(), key=lambda row: int(row["call_id"]))


def flat(calls: list[Made], parent: int | None, found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Made calls as rows: the name, begin, duration and the number of the call around each."""
    for one in calls:
        found.append((one.function, one.start_ns, one.end_ns - one.start_ns, parent))
        flat(one.calls, len(found) - 1, found)
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(made_calls(), min_size=1, max_size=3), st.booleans())
def test_calls_are_those_that_were_made(roots: list[Made], is_numbered: bool) -> None:
    batch = run(roots, is_numbered=is_numbered)
    with tempfile.TemporaryDirectory() as folder:
        trace = open_events(Path(folder) / "events", [batch])
        rows = calls_of(trace)
    names = "name", "time_ns", "duration_ns", "parent_call_id"
    assert [tuple(row[name] for name in names) for row in rows] == flat(roots, None, [])
    assert {row["kind"] for row in rows} == {"probe"}
    assert {row["error"] for row in rows} == {None}
    [thread] = trace.threads.to_pylist()
    assert (thread["start_ns"], thread["end_ns"]) == (START_NS, max(one.end_ns for one in roots) + 1)


def test_calls_that_were_left_are_told_as_such(tmp_path: Path) -> None:
    """a calls b, which is left by an exception; then c, whose end nobody sees; and a return comes from nowhere."""
    outer = Made("a", [10, 20], [Made("b", [5], is_left=True)])
    batch = run([outer, Made("c", [7], is_left=True)])
    lonely = EventBatch([(RETURN, to_table(RETURN, [event(START_NS + 90, 900, 0x10, 3, pid=4711, tid=4711)]))])
    rows = {row["name"]: row for row in calls_of(open_events(tmp_path / "events", [batch, lonely]))}
    assert (rows["a"]["error"], rows["a"]["duration_ns"]) == (None, 35)
    assert (rows["b"]["error"], rows["b"]["duration_ns"]) == ("left", 25)
    assert (rows["c"]["error"], rows["c"]["duration_ns"]) == (None, None)
    assert (rows["f_exit"]["duration_ns"], rows["f_exit"]["result"]) == (0, 3)


def test_what_was_lost_is_told(tmp_path: Path) -> None:
    batch = EventBatch([(POINT, to_table(POINT, [event(5, 0, 1)]))], [Loss(9, 7, 7, 12)])
    trace = open_events(tmp_path / "events", [batch])
    assert trace.manifest.losses == {"probe_events": 12}
    [lost] = [row for row in calls_of(trace) if row["error"] == "lost"]
    assert (lost["time_ns"], json.loads(lost["arguments"])) == (9, [{"name": "events", "value": 12}])


def test_values_are_arguments_and_results(tmp_path: Path) -> None:
    fields = (
        *PLACE,
        Field("number", CaptureType.I32),
        Field("text", CaptureType.TEXT),
        Field("missing", CaptureType.U8),
        Field("some", Shape.REGISTERS, ("rax", "rbx")),
        Field("stack", Shape.BACKTRACE),
        Field("share", CaptureType.F64),
    )
    entry = EventType("f_entry", fields, kind=EventKind.ENTRY, function="f")
    returned = EventType("f_exit", (*RETURN.fields, Field("more", CaptureType.U8)), kind=EventKind.RETURN, function="f")
    values = (0x10, -5, b'a"\xff\n', None, {"rax": 1, "rbx": 2}, [0x11, 0x22], 0.5)
    rows = [
        (entry, to_table(entry, [event(1, 0, *values)])),
        (returned, to_table(returned, [event(2, 1, 0x20, (1 << 64) - 1, 9)])),
    ]
    [row] = calls_of(open_events(tmp_path / "events", [EventBatch(rows)]))
    assert json.loads(row["arguments"]) == [
        {"name": "number", "value": -5},
        {"name": "text", "text": '"a\\"\\xff\\x0a"'},
        {"name": "missing", "text": "<missing>"},
        {"name": "rax", "value": "0x1"},
        {"name": "rbx", "value": "0x2"},
        {"name": "stack", "text": "0x11 < 0x22"},
        {"name": "share", "text": "0.5"},
        {"name": "more", "value": 9},
        {"name": "ip", "value": "0x10"},
    ]
    assert (row["result"], row["result_text"]) == (-1, None)


def test_places_and_callers_have_their_names(tmp_path: Path) -> None:
    point = EventType("point", (*PLACE, Field("parent_ip", Shape.POINTER), Field("stack", Shape.BACKTRACE)))
    rows = [event(1, 0, 0x10, 0x99, [0x10, 0x20, 0x30]), event(2, 1, 0x20, 0x30, [0x20, 0x10])]
    asked = []

    def name_of(pid: int, address: int, is_return: bool) -> str:
        asked.append((pid, address, is_return))
        return {0x10: "leaf+0x4", 0x20: "mid\n", 0x30: "main+0x7"}.get(address, "")

    folder = tmp_path / "events"
    folder.mkdir()
    tables = EventTables(folder, name_of=name_of)
    tables.write(EventBatch([(point, to_table(point, rows))]))
    tables.write(EventBatch([(point, to_table(point, rows))]))
    tables.close()
    # Each once. What is a place and a caller, too, is named as a place.
    assert sorted(asked) == [(7, 0x10, False), (7, 0x20, False), (7, 0x30, True), (7, 0x99, True)]
    told = [json.loads(row["arguments"]) for row in calls_of(TraceWithEvents(None, [folder]))]
    assert told[0] == [
        {"name": "stack", "text": "leaf+0x4 < mid\\n < main+0x7"},
        {"name": "ip", "value": "0x10", "text": "leaf+0x4"},
        {"name": "parent_ip", "value": "0x99"},
    ]
    assert told[1][0] == {"name": "stack", "text": "mid\\n < leaf+0x4"}
    assert told[2:] == told[:2]


@settings(max_examples=30, deadline=None)
@given(batches())
def test_any_events_are_shown(made: Batches) -> None:
    """Whatever they are called and have: each is a row, and its texts can be written."""
    n_events = sum(len(own) for batch in made for _, own in batch)
    assume(n_events > 0)
    with tempfile.TemporaryDirectory() as folder:
        written = [EventBatch([(one, to_table(one, rows)) for one, rows in batch]) for batch in made]
        trace = open_events(Path(folder) / "events", written)
        rows = calls_of(trace)
    assert len(rows) == n_events
    for row in rows:
        assert all(one["name"].isprintable() for one in json.loads(row["arguments"]))
        json.dumps(row, ensure_ascii=False).encode()


# Beside a trace.


def beside(tmp_path: Path, *batch: tuple[EventType, list[tuple[Any, ...]]], n: int = 1) -> TraceWithEvents:
    whole = write_trace(small_trace() if n == 1 else repeated_trace(n), tmp_path / "it.clew")
    return open_events(tmp_path / "events", [EventBatch([(one, to_table(one, rows)) for one, rows in batch])], whole)


@pytest.mark.parametrize(
    ("address", "block"), [(0x10, 0), (0x17, 0), (0x18, 1), (0x1C, 2), (0x1D, None), (0x40, 3), (0x43, None), (0, None)]
)
def test_events_are_at_the_blocks_of_their_places(address: int, block: int | None, tmp_path: Path) -> None:
    trace = beside(tmp_path, (POINT, [event(2000, 0, BASE + address)]))
    [row] = calls_of(trace)
    assert (row["process_id"], row["block_id"]) == (0, block)


def test_what_the_trace_lacks_is_added(tmp_path: Path) -> None:
    rows = [event(2000, 0, 1), event(12_000, 1, 1, tid=8), event(500, 2, 1, pid=90, tid=91)]
    before = {path: path.read_bytes() for path in (tmp_path / "it.clew").rglob("*") if path.is_file()}
    trace = beside(tmp_path, (POINT, rows))
    assert [(row["process_id"], row["tid"]) for row in calls_of(trace)] == [(0, 7), (0, 8), (1, 91)]
    processes = [(row["pid"], row["executable"], row["start_ns"], row["end_ns"]) for row in trace.processes.to_pylist()]
    assert processes == [(7, "/bin/it", 1000, 12_001), (90, "it", 500, 501)]
    threads = [(row["process_id"], row["tid"], row["start_ns"], row["end_ns"]) for row in trace.threads.to_pylist()]
    # What was recorded of a thread is as it was.
    assert threads == [(0, 7, 1000, 8000), (0, 8, 12_000, 12_001), (1, 91, 500, 501)]
    assert trace.span_of_probes(0) == (2000, 12_000)
    assert (trace.manifest.start_ns, [one["pid"] for one in trace.manifest.processes]) == (500, [7, 90])
    assert trace.read("blocks").num_rows == 4
    assert before == {path: path.read_bytes() for path in before}


def test_events_are_of_the_program_that_ran_then(tmp_path: Path) -> None:
    """A process that goes on with another program is two rows of one pid."""
    content = repeated_trace(2)
    content["processes"][1] |= {"pid": 7, "start_ns": 5000}
    for table in ("threads", "blocks", "edges", "counts", "images"):
        for row in content[table]:
            row |= {"pid": 7, "tid": 7} if "tid" in row else {"pid": 7}
    whole = write_trace(content, tmp_path / "it.clew")
    rows = [event(time, time, 1) for time in (100, 2000, 4999, 5000, 70_000)]
    trace = open_events(tmp_path / "events", [EventBatch([(POINT, to_table(POINT, rows))])], whole)
    found = {row["time_ns"]: row["process_id"] for row in calls_of(trace)}
    assert found == {100: 0, 2000: 0, 4999: 0, 5000: 1, 70_000: 1}


def test_several_folders_are_shown_together(tmp_path: Path) -> None:
    folders = [
        write_events(tmp_path / name, EventBatch([(POINT, to_table(POINT, [event(time, 0, 1)]))]))
        for name, time in (("a", 20), ("b", 10))
    ]
    trace = TraceWithEvents(None, folders)
    assert [row["time_ns"] for row in calls_of(trace)] == [20, 10]
    assert len({row["call_id"] for row in calls_of(trace)}) == 2


def test_a_call_does_not_return_in_another_folder(tmp_path: Path) -> None:
    """They were written one after the other: what was open in between was not seen."""
    entered = EventBatch([(ENTRY, to_table(ENTRY, [event(10, 0, 0x10, 5)]))])
    returned = EventBatch([(RETURN, to_table(RETURN, [event(20, 0, 0x20, 6)]))])
    folders = [write_events(tmp_path / "a", entered), write_events(tmp_path / "b", returned)]
    first, second = calls_of(TraceWithEvents(None, folders))
    assert (first["name"], first["duration_ns"], json.loads(first["arguments"])[0]["value"]) == ("f", None, 5)
    assert (second["name"], second["duration_ns"], second["result"]) == ("f_exit", 0, 6)


def test_more_calls_than_may_be_open_are_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_calls, "MAX_OPEN", 2)
    rows = [event(n, n, 0x10, n) for n in range(4)]
    trace = open_events(tmp_path / "events", [EventBatch([(ENTRY, to_table(ENTRY, rows))])])
    assert [json.loads(row["arguments"])[0]["value"] for row in calls_of(trace)] == [0, 1, 2, 3]
    assert [row["parent_call_id"] for row in calls_of(trace)] == [None, 0, 1, 1]


def test_events_are_below_recorded_calls_in_the_lanes() -> None:
    """Six calls and ten events, each within the one before: of no row two overlap."""
    kinds = np.array([CALL_WORDS.index("library")] * 6 + [CALL_WORDS.index("probe")] * 10, np.uint8)
    n = len(kinds)
    nothing = np.zeros(n, np.int64)
    rows = CallRows(
        names=["f"],
        tids=[7],
        time_ns=np.arange(n),
        name=nothing,
        thread=nothing,
        block=nothing - 1,
        kind=kinds,
        failed=nothing > 0,
        duration_ns=2 * (n - np.arange(n)),
        source=np.arange(n),
    )
    parents = np.concatenate([np.arange(6) - 1, np.arange(10) + 5])
    parents[6] = -1
    lanes = CallLanes(CallNesting(rows, parents))
    bars = lanes.bars(0, 100, 100, None, None)
    assert bars.depth.tolist() == [*range(MAX_DEPTH), *range(MAX_DEPTH, MAX_ROWS)]
    assert bars.longest.tolist() == [*range(MAX_DEPTH), *range(6, 6 + MAX_ROWS - MAX_DEPTH)]
    assert lanes.n_deep(None) == MAX_ROWS


# What is no such folder.


def write_rows(folder: Path, **changes: Any) -> Path:
    """Events of which columns are changed, or left out (None)."""
    write_events(folder, EventBatch([(POINT, to_table(POINT, [event(5, 0, 1)]))]))
    table = pq.read_table(folder / "events.parquet")
    for name, column in changes.items():
        index = table.schema.get_field_index(name)
        table = table.remove_column(index) if column is None else table.set_column(index, name, column)
    pq.write_table(table, folder / "events.parquet")
    return folder


@pytest.mark.parametrize(
    "changes",
    [
        {"time_ns": None},
        {"time_ns": pa.array([-1])},
        {"time_ns": pa.array([1 << 62])},
        {"time_ns": pa.array(["5"])},
        {"time_ns": pa.array([None], pa.int64())},
        {"kind": pa.array([None], pa.string())},
        {"lost": pa.array([-7])},
        {"comm": pa.array([b"\xff"]).view(pa.string())},
    ],
)
def test_damage_is_told(changes: dict[str, Any], tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "events", **changes)
    with pytest.raises(TraceDamagedError, match=r"events\.parquet"):
        TraceWithEvents(None, [folder])


def test_of_too_many_events_the_first_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "events"
    write_events(folder, EventBatch([(POINT, to_table(POINT, [event(n, n, 1) for n in range(100)]))]))
    table = pq.read_table(folder / "events.parquet")
    pq.write_table(table, folder / "events.parquet", row_group_size=10)
    monkeypatch.setattr(event_rows, "MOST_EVENTS", 25)
    trace = TraceWithEvents(None, [folder])
    assert [row["time_ns"] for row in calls_of(trace)] == [*range(25)]
    assert trace.manifest.warnings == ["75 events of probes are left out: they are too many"]
    monkeypatch.setattr(event_rows, "MOST_EVENTS", 9)
    with pytest.raises(TraceDamagedError, match="a row group has 10 rows"):
        TraceWithEvents(None, [folder])


@pytest.mark.parametrize(
    "table",
    [
        {"pid": pa.array([7])},
        {"pid": pa.array([7], pa.uint32()), "address": pa.array([1], pa.int32()), "name": pa.array(["a"])},
        None,
    ],
)
def test_damaged_names_are_told(table: dict[str, Any] | None, tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "events")
    if table is None:
        (folder / "addresses.parquet").write_bytes(b"PAR1")
    else:
        pq.write_table(pa.table(table), folder / "addresses.parquet")
    with pytest.raises(TraceDamagedError, match=r"addresses\.parquet|column"):
        TraceWithEvents(None, [folder])


@pytest.mark.parametrize("size_bytes", [0, 4, 100, -8])
def test_a_file_that_was_cut_off_is_told(size_bytes: int, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "events") / "events.parquet"
    path.write_bytes(path.read_bytes()[:size_bytes])
    with pytest.raises(TraceDamagedError, match="damaged or truncated"):
        TraceWithEvents(None, [tmp_path / "events"])
    assert is_event_folder(tmp_path / "events")


@pytest.mark.parametrize(
    "values",
    ["", "5", "[1]", "{", '{"ip": 5}', '{"ip": "0xzz"}', '{"ip": "-0x5"}', '{"ip": {"ip": [[]]}, "n": {}}', "[" * 9999],
)
def test_values_that_are_none_are_left_out(values: str, tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "events", values=pa.array([values]))
    [row] = calls_of(TraceWithEvents(None, [folder]))
    assert isinstance(json.loads(row["arguments"]), list)
    assert row["block_id"] is None
