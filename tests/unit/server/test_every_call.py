"""Calls of all processes together: those of each process, by time, and all that is added up of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from clew.analysis.calls.every_call import EveryCall
from clew.store.trace import Trace
from tests.unit.server.asking import ask_well
from tests.unit.small_trace import MakeTrace, Rows

if TYPE_CHECKING:
    from starlette.applications import Starlette

FULL, CALLS = 1, 3
PROCESSES = (0, 1, 2)


def ask(app: Starlette, what: str, process: int | None = None) -> dict[str, Any]:
    whose = "" if process is None else f"/processes/{process}"
    answer = ask_well(app, f"/api/traces/{CALLS}{whose}/{what}")
    assert answer.status == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def ask_all(app: Starlette, words: str = "", process: int | None = None) -> list[dict[str, Any]]:
    """All rows, page by page."""
    rows: list[dict[str, Any]] = []
    while len(rows) < (page := ask(app, f"calls?offset={len(rows)}&count=333&{words}", process))["total"]:
        rows += page["rows"]
    return rows


def gather(app: Starlette, words: str = "") -> list[dict[str, Any]]:
    """The calls of each process, by time; what only a process' code tells left out."""
    rows = [row for process in PROCESSES for row in ask_all(app, words, process)]
    return [row | {"block": -1, "function": -1} for row in sorted(rows, key=lambda row: row["time"])]


@pytest.mark.parametrize("words", ["", "name=openat", "failed=1", "filter=File&text=etc", "entity=0", "entity=5"])
def test_every_call_is_there_once(every_mode: Starlette, words: str) -> None:
    rows = gather(every_mode, words)
    assert ask_all(every_mode, words) == rows
    if words in ("", "entity=0"):
        assert {row["process"] for row in rows} == (set(PROCESSES) if words == "" else {0})
    summary = ask(every_mode, f"calls/summary?{words}")
    assert summary["calls"] == len(rows)
    assert {one["process"]: one["calls"] for one in summary["processes"]} == Counter(row["process"] for row in rows)
    assert {one["name"]: one["calls"] for one in summary["names"]} == Counter(row["name"] for row in rows)
    for process in PROCESSES:
        own = ask(every_mode, f"calls/summary?{words}", process)
        assert own["processes"] == [one for one in summary["processes"] if one["process"] == process]


def test_they_sort_by_process_and_thread(every_mode: Starlette) -> None:
    rows = gather(every_mode)
    assert ask_all(every_mode, "sort=process") == sorted(rows, key=lambda row: row["process"])
    assert ask_all(every_mode, "sort=thread") == sorted(rows, key=lambda row: (row["process"], row["tid"]))
    for place in (0, len(rows) // 2):
        process, call = rows[place]["process"], rows[place]["call"]
        page = ask(every_mode, f"calls?count=10&process={process}&call={call}")
        assert page["at"] == place
        assert page["rows"][page["at"] - page["offset"]]["call"] == call


@pytest.mark.parametrize("by", ["name", "process", "thread"])
def test_charts_tell_them_apart(every_mode: Starlette, by: str) -> None:
    meta, arrays = ask_well(every_mode, f"/api/traces/{CALLS}/calls/chart?by={by}&bins=7&series=64").arrays()
    key = {"name": "name", "process": "process", "thread": "tid"}[by]
    names = bytes(arrays["name.bytes"]).decode()
    wanted = Counter(str(row[key]) for row in gather(every_mode))
    assert sorted(arrays["calls"].reshape(-1, meta["bins"]).sum(axis=1).tolist()) == sorted(wanted.values())
    assert sorted(names) == sorted("".join(wanted))


def test_threads_are_the_root_of_the_tree(every_mode: Starlette) -> None:
    for by in ("call", "name"):
        found = ask(every_mode, f"calls/tree?by={by}")["threads"]
        own = [ask(every_mode, f"calls/tree?by={by}", process)["threads"] for process in PROCESSES]
        assert found == [thread for threads in own for thread in threads]
    assert ask_well(every_mode, f"/api/traces/{CALLS}/calls/tree?thread=1").status == 400


def test_entities_are_those_of_all(every_mode: Starlette) -> None:
    """One that several processes have to do with is one, with the calls of all, and each leads to its process."""
    page = ask(every_mode, "entities?count=500")
    assert [row["calls"] for row in page["rows"]] == [row["all_calls"] for row in page["rows"]]
    own = [ask(every_mode, "entities?count=500", process)["rows"] for process in PROCESSES]
    for row in page["rows"]:
        parts = [one for rows in own for one in rows if one["entity"] == row["entity"]]
        assert row["calls"] == sum(part["calls"] for part in parts)
    told = [ask(every_mode, f"entities/{row['entity']}") for row in page["rows"]]
    events = [event for one in told for event in one["life"]]
    assert len({event["process"] for event in events}) > 1
    for event in events:
        call = ask(every_mode, f"calls/{event['call']}", event["process"])
        assert (call["time"], call["name"], call["tid"]) == (event["time"], event["name"], event["tid"])


def test_the_table_has_all(every_mode: Starlette) -> None:
    answer = ask_well(every_mode, f"/api/traces/{CALLS}/table?of=calls&as=arrow&sort=name")
    table = pa.ipc.open_file(pa.BufferReader(answer.content)).read_all()
    rows = ask_all(every_mode, "sort=name")
    assert table["process_id"].to_pylist() == [row["process"] for row in rows]
    assert table["call"].to_pylist() == [row["call"] for row in rows]
    for of in ("places", "blocks"):
        assert ask_well(every_mode, f"/api/traces/{CALLS}/table?of={of}&as=csv").status == 400


def test_without_recorded_calls_it_says_so(every_mode: Starlette) -> None:
    for what in ("calls", "calls/summary", "calls/chart", "calls/tree", "entities"):
        answer = ask_well(every_mode, f"/api/traces/{FULL}/{what}")
        assert answer.status == 400
        assert "no API calls" in answer.json()["error"]


def test_the_summary_says_who_has_calls(every_mode: Starlette) -> None:
    processes = ask_well(every_mode, f"/api/traces/{CALLS}").json()["processes"]
    told = {row["process_id"]: row["api_calls"] for row in processes}
    assert told == Counter(row["process"] for row in gather(every_mode))


def test_more_than_are_listed_are_those_of_whole_processes(
    rows: Rows, make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    whose = [(0, 7), (1, 8), (2, 9)]
    process = rows["processes"][0]
    call = {"parent_call_id": None, "duration_ns": 1, "kind": "system_call", "name": "read", "number": 0}
    call |= {"library": None, "block_id": None, "position": None, "arguments": "[]", "result": 0, "error": None}
    made = [
        call | {"call_id": number, "process_id": who, "pid": pid, "tid": pid, "time_ns": 2000 - number}
        | {"result_text": None, "injected": None}
        for number, (who, pid) in enumerate(one for one in whose for _ in range(4))
    ]  # fmt: skip
    tables = rows | {"calls": made, "processes": [process | {"process_id": who, "pid": pid} for who, pid in whose]}
    trace = Trace(make_trace(tables).directory)
    monkeypatch.setattr("clew.analysis.calls.every_call.MOST_CALLS", 9)
    listed = EveryCall(trace).rows
    assert (len(listed), listed.n_omitted, listed.processes) == (8, 4, [0, 1])
    assert listed.number is not None
    assert [
        listed.find(int(who), int(number)) for who, number in zip(listed.whose, listed.number, strict=True)
    ] == list(range(8))
    assert np.array_equal(listed.source, np.arange(8)[::-1])
