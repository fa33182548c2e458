"""Recorded calls and entities of a small trace, added up by hand; and of made up ones, counted another way."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.analysis.calls.call_rows import CallFilter, CallRows, sort_calls
from clew.analysis.calls.entities import EntityFilter, EntityTable, Touch
from clew.analysis.calls.every_call import EveryCall
from clew.analysis.calls.recorded_calls import RecordedCalls
from clew.analysis.calls.told_calls import tell_arguments
from clew.analysis.graph.graph import ProcessGraph
from clew.api.vocabulary import FILTERS
from clew.errors import UsageError
from clew.store.trace import Trace
from tests.unit.calls import add_calls
from tests.unit.small_trace import MakeTrace, Rows
from tests.web.made_up_trace import write_made_up_trace


@pytest.fixture
def trace(rows: Rows, make_trace: MakeTrace) -> Trace:
    return make_trace(add_calls(rows))


@pytest.fixture
def recorded(trace: Trace) -> RecordedCalls:
    return RecordedCalls(ProcessGraph(trace, 0))


def test_calls_as_rows(recorded: RecordedCalls) -> None:
    rows = recorded.rows
    graph_blocks = ProcessGraph(Trace(recorded._graph.trace.directory), 0).block_id.tolist()
    assert [rows.names[name] for name in rows.name.tolist()] == ["fopen", "openat", "read", "read", "malloc"]
    assert rows.time_ns.tolist() == [2000, 2100, 3000, 4000, 5000]
    assert [graph_blocks[block] if block >= 0 else None for block in rows.block.tolist()] == [0, None, 2, None, 0]
    assert rows.failed.tolist() == [False, True, False, False, False]
    assert rows.duration_ns is not None
    assert rows.duration_ns.tolist() == [500, 300, 10, -1, 0]
    assert rows.n_omitted == 0


def test_what_calls_were_recorded_under_is_what_they_are_chosen_by(rows: Rows, make_trace: MakeTrace) -> None:
    """Where that is known; else it is what clew's own descriptions say."""
    tables = add_calls(rows)
    for call, word in zip(tables["calls"], ("Database", None, "no such", "Crypto"), strict=False):
        call["filter"] = word
    found = RecordedCalls(ProcessGraph(make_trace(tables), 0)).rows
    assert [FILTERS[one] for one in found.filter.tolist()] == ["Database", "File", "File", "Crypto", "Memory"]
    assert EveryCall(make_trace(tables, "every")).rows.filter.tolist() == found.filter.tolist()


def test_filters(recorded: RecordedCalls) -> None:
    rows = recorded.rows

    def chosen(**words: object) -> list[int]:
        return np.flatnonzero(rows.choose(CallFilter(**words))).tolist()  # type: ignore[arg-type]

    assert chosen() == [0, 1, 2, 3, 4]
    assert chosen(name="read") == [2, 3]
    assert chosen(text="OPEN") == [0, 1]
    assert chosen(kind="library") == [0, 4]
    assert chosen(failed=True) == [1]
    assert chosen(threads=(7,)) == [0, 1, 2, 3, 4]
    assert chosen(threads=(8,)) == chosen(entity=2) == []
    assert chosen(start_ns=2100, end_ns=4000) == [1, 2]
    with pytest.raises(UsageError, match="kind"):
        chosen(kind="leap")


def test_orders(recorded: RecordedCalls) -> None:
    rows = recorded.rows

    def order(sort: str, *, descending: bool = False) -> list[int]:
        found: list[int] = rows.order(CallFilter(), sort, descending=descending).tolist()
        return found

    assert order("time") == order("thread") == [0, 1, 2, 3, 4]
    assert order("time", descending=True) == [4, 3, 2, 1, 0]
    assert order("name") == [0, 4, 1, 2, 3]
    assert order("duration", descending=True) == [0, 1, 2, 4, 3]
    assert order("block")[:2] == [1, 3]
    with pytest.raises(UsageError, match="sort"):
        order("size")


def test_what_tables_tell(recorded: RecordedCalls) -> None:
    assert recorded.find_text("passwd").tolist() == [0, 1]
    assert recorded.find_text("DEAD").tolist() == [4]
    assert recorded.find_entity(2).tolist() == [0, 1, 2, 3]
    assert recorded.find_entity(3).tolist() == []
    assert [row["call_id"] for row in recorded.read([3, 0])] == [3, 0]
    first, second = recorded.read_references([2, 4], 1)
    assert [(one["entity_id"], one["role"]) for one in (*first, *second)] == [(2, "read"), (1, "subject")]


def test_calls_that_are_not_in_the_order_of_time(rows: Rows, make_trace: MakeTrace) -> None:
    """Threads follow one another in the table; a call keeps what is told of it."""
    tables = add_calls(rows)
    tables["threads"].append(tables["threads"][0] | {"tid": 8})
    tables["calls"].append(tables["calls"][4] | {"call_id": 5, "tid": 8, "time_ns": 1500, "name": "early"})
    tables["references"].append(tables["references"][0] | {"call_id": 5, "entity_id": 3})
    recorded = RecordedCalls(ProcessGraph(make_trace(tables), 0))
    assert [recorded.rows.names[name] for name in recorded.rows.name[:2].tolist()] == ["early", "fopen"]
    assert recorded.read([0])[0]["call_id"] == 5
    assert recorded.find_entity(3).tolist() == [0]
    assert recorded.rows.count_threads(np.ones(6, bool)) == [(7, 5), (8, 1)]


def test_entities(trace: Trace) -> None:
    table = EntityTable(trace)
    assert table.count_calls().tolist() == table.count_calls(0).tolist() == [5, 5, 4, 0]
    assert table.count_calls(1).tolist() == [0, 0, 0, 0]
    assert table.count_bytes(0).tolist() == [0, 0, 107, 0]
    every = table.choose(EntityFilter())
    assert table.count_kinds(every) == {"process": 1, "thread": 1, "file": 1, "socket": 1}
    assert table.choose(EntityFilter(kind="file")).tolist() == [2]
    assert table.choose(EntityFilter(text="IT")).tolist() == [0, 1]
    assert table.choose(EntityFilter(process_id=0)).tolist() == [0, 1, 2]
    assert table.sort(every, "calls", 0).tolist() == [0, 1, 2, 3]
    assert table.sort(every, "bytes", 0).tolist() == [2, 0, 1, 3]
    assert table.sort(every, "name", 0).tolist() == [2, 3, 0, 1]
    assert [dict(row["details"]) for row in table.read([0, 1, 2, 3])] == [
        {"a": "1"},
        {},
        {"path": "/etc/passwd", "inode": "5"},
        {},
    ]
    assert table.touches() == [
        Touch(0, 2, 4, {"opened": 2, "read": 2, "written": 1}, 100, 7),
        Touch(0, 1, 1, {"subject": 1}, 0, 0),
    ]
    assert table.touches(entity_id=3) == table.touches(process_id=4) == []
    with pytest.raises(UsageError, match="no entity 9"):
        table.find(9)
    with pytest.raises(UsageError, match="sort"):
        table.sort(every, "size", 0)


def test_a_trace_without_calls(trace: Trace, rows: Rows, make_trace: MakeTrace) -> None:
    without = make_trace(rows, "without.clew")
    assert RecordedCalls(ProcessGraph(without, 0)).n_all == 0
    assert len(RecordedCalls(ProcessGraph(without, 0)).rows) == 0
    assert EntityTable(without).touches() == []
    assert EntityTable(without).count_calls().tolist() == []


@pytest.mark.parametrize("part_rows", [40, 1 << 18])
def test_made_up_calls_are_counted_as_the_tables_have_them(
    part_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a call's references lie in two row groups."""
    monkeypatch.setattr("clew.store.row_groups.MAX_GROUP_ROWS", part_rows)
    monkeypatch.setattr("clew.store.row_groups.iter_row_groups.__defaults__", (part_rows, part_rows))
    made = write_made_up_trace(tmp_path / "t.clew", 600, n_threads=2, n_children=2, n_calls=300)
    trace = Trace(made.directory)
    calls, references = trace.calls.to_pylist(), trace.references.to_pylist()
    table = EntityTable(trace)
    wanted = Counter(
        {entity: len({row["call_id"] for row in references if row["entity_id"] == entity}) for entity in range(3, 11)}
    )
    for tid, row in ((1000, 1), (1001, 2)):
        wanted[row] = sum(call["tid"] == tid for call in calls)
    counted = table.count_calls()
    assert {entity: int(counted[table.find(entity)]) for entity in wanted} == wanted
    assert sum(touch.calls for touch in table.touches()) == len({(r["call_id"], r["entity_id"]) for r in references})
    recorded = RecordedCalls(ProcessGraph(trace, 0))
    own = sorted((call for call in calls if call["process_id"] == 0), key=lambda call: call["time_ns"])
    assert recorded.rows.time_ns.tolist() == [call["time_ns"] for call in own]
    names = Counter((call["name"], call["error"] is not None) for call in own)
    for name, _, n, failed in recorded.rows.count_names(np.ones(len(own), bool)):
        assert (n, failed) == (names[name, False] + names[name, True], names[name, True])


def make_rows(times: list[int], names: list[int], threads: list[int]) -> CallRows:
    n = len(times)
    return sort_calls(
        CallRows(
            names=["a", "b", "c"],
            tids=[5, 6],
            time_ns=np.array(times, np.int64),
            name=np.array(names, np.uint8),
            thread=np.array(threads, np.uint8),
            block=np.zeros(n, np.int32),
            kind=np.zeros(n, np.uint8),
            failed=np.zeros(n, bool),
            duration_ns=None,
            source=np.arange(n),
        )
    )


@settings(max_examples=200)
@given(
    calls=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 2), st.integers(0, 1)), max_size=40),
    start=st.integers(0, 40),
    width=st.integers(1, 30),
    n_bins=st.integers(1, 8),
    n_series=st.integers(1, 4),
    by=st.sampled_from(["name", "thread", "kind"]),
)
def test_charts_count_each_call_once(
    calls: list[tuple[int, int, int]], start: int, width: int, n_bins: int, n_series: int, by: str
) -> None:
    rows = make_rows(*([call[part] for call in calls] for part in range(3)))
    edges = start + width * np.arange(n_bins + 1) // n_bins
    chart = rows.series(np.ones(len(calls), bool), by, edges, n_series)
    inside = [call for call in calls if edges[0] <= call[0] <= edges[-1]]
    words = [{"name": "abc"[name], "thread": str(5 + thread), "kind": "system_call"}[by] for _, name, thread in inside]
    wanted = Counter(words)
    assert chart.counts.sum() == len(inside)
    shown = chart.names[:-1] if chart.n_others else chart.names
    assert chart.counts[: len(shown)].sum(axis=1).tolist() == [wanted[name] for name in shown]
    assert len(shown) + chart.n_others == len(wanted)
    assert len(chart.names) <= n_series
    for bin_number in range(n_bins):
        last = bin_number == n_bins - 1
        in_bin = [
            call
            for call in inside
            if edges[bin_number] <= call[0] and (call[0] < edges[bin_number + 1] or (last and call[0] == edges[-1]))
        ]
        assert chart.counts[:, bin_number].sum() == len(in_bin)


@pytest.mark.parametrize(("by", "bins", "series"), [("size", 5, 3), ("name", 1 << 13, 3), ("name", 5, 0)])
def test_charts_that_there_are_not(by: str, bins: int, series: int) -> None:
    with pytest.raises(UsageError):
        make_rows([], [], []).series(np.zeros(0, bool), by, np.arange(bins + 1), series)


def test_arguments_are_told_whatever_they_are() -> None:
    assert tell_arguments('[{"name": "n", "value": 3, "text": null}, 7, "x"]') == [
        {"name": "n", "value": "3"},
        {"value": "7"},
        {"value": "x"},
    ]
    assert tell_arguments("") == tell_arguments("[]") == []
    for odd in ("no JSON", '{"a": 1}', "[" * 100_000):
        assert tell_arguments(odd) == [{"text": odd[:400]}]
    assert len(tell_arguments(json.dumps([1] * 500))) == 64
    assert len(tell_arguments(json.dumps([{"text": "x" * 5000}]))[0]["text"]) == 400
    # Half of a character, which JSON can name and UTF-8 can't write.
    assert tell_arguments(json.dumps([{"text": "a\ud83eb\U0001f9f5"}])) == [{"text": "a\ufffdb\U0001f9f5"}]
