"""What the server tells of events of probes, alone and beside a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import NotATraceError, TraceDamagedError
from clew.export.probes.event_types import EventBatch
from clew.server.app import make_app
from clew.server.served_trace import ServedTrace
from tests.unit.analysis.probes.test_event_trace import ENTRY, POINT, RETURN, event
from tests.unit.analysis.probes.written_events import write_events
from tests.unit.export.probes.made_events import to_table
from tests.unit.server.asking import LOOPBACK, TOKEN, Answer, ask_well
from tests.unit.small_trace import BASE, small_trace, write_trace

ROWS = {
    ENTRY: [event(2000, 0, BASE + 0x40, 5), event(12_000, 2, BASE + 0x40, 6, tid=8)],
    RETURN: [event(2600, 1, BASE + 0x42, 0), event(12_500, 3, BASE + 0x42, 1, tid=8)],
    POINT: [event(500, 4, BASE + 0x18)],
}


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return write_events(tmp_path / "events", EventBatch([(one, to_table(one, rows)) for one, rows in ROWS.items()]))


def ask(served: ServedTrace, target: str) -> Answer:
    found = ask_well(make_app([served], TOKEN, LOOPBACK), f"/api/traces/0{target}")
    assert found.status == 200, found.content
    return found


def test_events_alone_are_a_trace_without_code(events: Path) -> None:
    served = ServedTrace(events, 0)
    told = ask(served, "").json()
    assert (told["name"], told["totals"]["blocks"], told["losses"]) == ("events", 0, {"probe_events": 0})
    [process] = told["processes"]
    assert (process["pid"], process["executable"], process["api_calls"]) == (7, "it", 3)
    meta, arrays = ask(served, "/processes/0/timeline").arrays()
    assert (meta["first"], meta["last"]) == (0, 12_001)
    assert (meta["unit"], meta["reason"]) == (None, "no code was recorded, only events of probes")
    assert arrays["tid"].tolist() == [7, 8]
    assert not len(arrays["gap_thread"])


def test_lanes_have_calls_and_moments(events: Path) -> None:
    meta, arrays = ask(ServedTrace(events, 0), "/processes/0/calls/lanes?from=0&to=12001&bins=100").arrays()
    assert meta["deep"] == 1
    bars = zip(*(arrays[name].tolist() for name in ("tid", "from", "to", "calls")), strict=True)
    assert sorted(bars) == [(7, 0, 0, 1), (7, 1500, 2100, 1), (8, 11_500, 12_000, 1)]


def test_beside_a_trace_they_are_at_its_blocks_and_in_its_time(events: Path, tmp_path: Path) -> None:
    write_trace(small_trace(), tmp_path / "it.clew")
    served = ServedTrace(tmp_path / "it.clew", 0, [events])
    told = ask(served, "").json()
    assert (told["name"], told["start_ns"]) == ("it.clew", "500")
    meta, _ = ask(served, "/processes/0/timeline").arrays()
    # The thread began at 1000, and the last event was at 12,500.
    assert (meta["first"], meta["last"]) == (0, 12_001)
    assert "mode counts" in meta["reason"]
    rows = ask(served, "/processes/0/calls?sort=time").json()["rows"]
    found = [(row["name"], row["time"], row["duration"], row["kind"], row["block"]) for row in rows]
    graph = served.graph(0)
    place = {int(address) - BASE: index for index, address in enumerate(graph.app_pc.tolist())}
    assert found == [
        ("point", 0, 0, "probe", place[0x18]),
        ("f", 1500, 600, "probe", place[0x40]),
        ("f", 11_500, 500, "probe", place[0x40]),
    ]
    [row] = ask(served, "/processes/0/calls?text=n%3D6").json()["rows"]
    assert (row["tid"], row["result"], row["arguments"][0]) == (8, "1", {"name": "n", "value": "6"})
    opened = ask(served, "/processes/0/calls/1").json()
    assert (opened["function"], opened["position"]) == (int(graph.function[place[0x40]]), None)


def test_a_damaged_folder_is_told(events: Path) -> None:
    (events / "events.parquet").write_bytes(b"PAR1")
    with pytest.raises(TraceDamagedError, match="damaged or truncated"):
        ServedTrace(events, 0)


def test_that_there_are_none_is_told(tmp_path: Path) -> None:
    folder = write_events(tmp_path / "none")
    with pytest.raises(NotATraceError, match="no events in it"):
        ServedTrace(folder, 0)
    write_trace(small_trace(), tmp_path / "it.clew")
    assert ask(ServedTrace(tmp_path / "it.clew", 0, [folder]), "").json()["processes"][0]["api_calls"] == 0


def test_what_are_no_events_is_told(tmp_path: Path) -> None:
    write_trace(small_trace(), tmp_path / "it.clew")
    with pytest.raises(NotATraceError, match="clew trace --format parquet"):
        ServedTrace(tmp_path / "it.clew", 0, [tmp_path])
