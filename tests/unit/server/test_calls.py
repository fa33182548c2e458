"""Calls and entities as the server tells of them: pages are the table, charts add up, and what is asked for comes."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from clew.api.reading import load_built_in
from clew.server.container import decode_container
from tests.unit.server.asking import ask_well
from tests.web.made_up_calls import HOSTILE_FILE

if TYPE_CHECKING:
    from starlette.applications import Starlette

FULL, REGION, CALLS = 1, 2, 3


def ask(app: Starlette, trace: int, what: str) -> dict[str, Any]:
    answer = ask_well(app, f"/api/traces/{trace}/processes/0/{what}")
    assert answer.status == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def ask_all(app: Starlette, trace: int, words: str) -> list[dict[str, Any]]:
    """All rows, page by page."""
    rows: list[dict[str, Any]] = []
    while True:
        page = ask(app, trace, f"calls?offset={len(rows)}&count=77&{words}")
        rows += page["rows"]
        if not page["rows"]:
            assert page["total"] == len(rows)
            return rows


@cache
def every_call(app: Starlette, trace: int) -> list[dict[str, Any]]:
    return ask_all(app, trace, "")


@pytest.mark.parametrize("trace", [FULL, REGION, CALLS])
def test_pages_are_all_calls_by_time(every_mode: Starlette, trace: int) -> None:
    rows = every_call(every_mode, trace)
    assert [row["call"] for row in rows] == list(range(len(rows)))
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    summary = ask(every_mode, trace, "calls/summary")
    assert (summary["total"], summary["calls"], summary["omitted"]) == (len(rows), len(rows), 0)
    assert summary["untimed"] == 0
    assert (summary["from"], summary["to"]) == (rows[0]["time"], rows[-1]["time"])
    assert {one["name"]: one["calls"] for one in summary["names"]} == Counter(row["name"] for row in rows)
    assert {one["tid"]: one["calls"] for one in summary["threads"]} == Counter(row["tid"] for row in rows)


@pytest.mark.parametrize(
    ("words", "is_wanted"),
    [
        ("name=read", lambda row: row["name"] == "read"),
        ("text=PASSWD", lambda row: "/etc/passwd" in str(row["arguments"])),
        ("text=ope", lambda row: "ope" in row["name"]),
        ("kind=library", lambda row: row["kind"] == "library"),
        ("filter=Network", lambda row: row["name"] == "connect"),
        ("filter=Memory", lambda row: row["name"] == "malloc"),
        ("filter=File&failed=1", lambda row: row["name"] not in ("connect", "malloc") and row["error"] is not None),
        ("filter=Database", lambda row: False),
        ("failed=1", lambda row: row["error"] is not None),
        ("threads=1001", lambda row: row["tid"] == 1001),
        ("from=100000&to=300000", lambda row: 100_000 <= row["time"] < 300_000),
        (
            "entity=5&name=close",
            lambda row: row["name"] == "close" and row["arguments"][0]["text"].endswith("libc.so.6"),
        ),
        ("entity=2", lambda row: row["tid"] == 1001),
        ("entity=0", lambda row: True),
        ("entity=1000", lambda row: False),
    ],
)
def test_what_is_asked_for_is_what_comes(every_mode: Starlette, words: str, is_wanted: Any) -> None:
    rows = [row for row in every_call(every_mode, CALLS) if is_wanted(row)]
    assert ask_all(every_mode, CALLS, words) == rows
    assert ask(every_mode, CALLS, f"calls/summary?{words}")["calls"] == len(rows)
    places = ask(every_mode, CALLS, f"calls/places?{words}")
    assert sum(row["calls"] for row in places["rows"]) == len(rows)
    content = ask_well(every_mode, f"/api/traces/{CALLS}/processes/0/calls/chart?bins=9&{words}").content
    assert decode_container(content)[2]["calls"].sum() == len(rows)


def test_what_else_can_be_chosen_is_counted(every_mode: Starlette) -> None:
    rows = [row for row in every_call(every_mode, CALLS) if row["error"] is not None]
    for words in ("failed=1", "failed=1&filter=Network", "failed=1&filter=Database"):
        told = ask(every_mode, CALLS, f"calls/summary?{words}")["filters"]
        assert {one["filter"]: one["calls"] for one in told} == Counter(row["filter"] for row in rows)
    assert ask_well(every_mode, f"/api/traces/{CALLS}/processes/0/calls?filter=file").status == 400


@pytest.mark.parametrize("trace", [0, FULL, REGION])
def test_system_calls_without_a_record_are_chosen_by_filter(every_mode: Starlette, trace: int) -> None:
    descriptions = load_built_in()
    places = ask(every_mode, trace, "calls/places")["rows"]
    known = [
        place for place in places if (call := descriptions.find_system_call(place["name"])) and call.filter == "File"
    ]
    assert ask(every_mode, trace, "calls/places?filter=File")["rows"] == known
    assert bool(known) == (trace != 0)


def test_what_was_done_to_calls_is_told(every_mode: Starlette) -> None:
    told = [row["injected"] for row in every_call(every_mode, CALLS) if row["injected"]]
    assert {tuple(words) for words in told} == {
        ("result",),
        ("delay_enter",),
        ("result", "delay_enter", "delay_exit", "signal"),
    }
    assert ask(every_mode, FULL, "calls/0")["injected"] == []
    # Rows of one name together have what was done to any of them.
    for thread in ask(every_mode, CALLS, "calls/tree?by=name")["threads"]:
        tid = thread["tid"]
        own = [row for row in every_call(every_mode, CALLS) if row["tid"] == tid]
        for path in ask(every_mode, CALLS, f"calls/tree?by=name&thread={tid}&count=500")["rows"]:
            like = [row["injected"] for row in own if (row["name"], row["kind"]) == (path["name"], path["kind"])]
            assert set(path["injected"]) == {word for words in like for word in words}


def test_sorted_pages(every_mode: Starlette) -> None:
    rows = every_call(every_mode, CALLS)
    for sort, key in (("name", "name"), ("thread", "tid"), ("block", "block")):
        assert ask_all(every_mode, CALLS, f"sort={sort}") == sorted(rows, key=lambda row: row[key])
    longest = sorted(rows, key=lambda row: -1 if row["duration"] is None else row["duration"], reverse=True)
    assert ask_all(every_mode, CALLS, "sort=duration&descending=1") == longest
    page = ask(every_mode, CALLS, "calls?count=10&sort=name&call=37")
    assert page["rows"][page["at"] - page["offset"]]["call"] == 37
    assert ask(every_mode, CALLS, "calls?name=nothing&call=37")["at"] is None


@pytest.mark.parametrize("trace", [FULL, REGION])
def test_a_call_is_where_its_thread_is_put(every_mode: Starlette, trace: int) -> None:
    """In front of the block that makes it, as replay has it; and no two calls of a thread are at one place."""
    seen = set()
    blocks = decode_container(ask_well(every_mode, f"/api/traces/{trace}/processes/0/blocks").content)[2]
    for row in every_call(every_mode, trace)[::5]:
        told = ask(every_mode, trace, f"calls/{row['call']}")
        assert {name: told[name] for name in row} == row
        state = ask(every_mode, trace, f"threads/{row['tid']}/replay?position={told['position']}")
        if trace == FULL:
            assert state["block"] == row["block"]
        else:
            # A tag may be of several blocks, one behind the other, of which the call's is the last.
            between = slice(state["block"], row["block"])
            assert state["block"] <= row["block"]
            assert not blocks["exit_kind"][between].any()
            assert np.diff(blocks["address"][state["block"] : row["block"] + 1].astype(np.int64)).tolist() == (
                blocks["size_bytes"][between].tolist()
            )
        seen.add((row["tid"], told["position"]))
    assert len(seen) == len(every_call(every_mode, trace)[::5])


def test_modes_agree_about_places(every_mode: Starlette) -> None:
    """What paths note, what tags tell and what was counted of the same program are the same calls."""
    full, region = (Counter(row["name"] for row in every_call(every_mode, trace)) for trace in (FULL, REGION))
    assert full == region
    assert full["exit_group"] == 1
    assert full["read"] >= 2


def test_without_times_there_are_places(every_mode: Starlette) -> None:
    summary = ask(every_mode, 0, "calls/summary")
    assert (summary["source"], summary["total"]) == ("counts", 0)
    assert "mode counts" in summary["reason"]
    places = ask(every_mode, 0, "calls/places")
    assert places["calls"] == sum(row["calls"] for row in places["rows"])
    one, other = (ask(every_mode, 0, f"calls/places?threads={tid}")["calls"] for tid in ("1000", "1001,1002"))
    assert one + other == places["calls"]
    told = {one["filter"]: one["calls"] for one in summary["filters"]}
    assert sum(told.values()) == places["calls"]
    for word, n in told.items():
        assert ask(every_mode, 0, f"calls/places?filter={word}")["calls"] == n
        assert ask(every_mode, 0, f"calls/summary?filter={word}")["filters"] == summary["filters"]
    assert ask_well(every_mode, "/api/traces/0/processes/0/calls/chart").status == 400
    assert ask_well(every_mode, "/api/traces/0/processes/0/calls/0").status == 400


def check_life(life: list[dict[str, Any]], touches: list[dict[str, Any]]) -> None:
    """It adds up to what processes did with it."""
    assert life == sorted(life, key=lambda event: event["time"])
    found: Counter[tuple[int, str]] = Counter()
    for event in life:
        found[event["process"], event["role"]] += 1 + event["more"]
    assert found == {(touch["process"], role): n for touch in touches for role, n in touch["roles"]}


def test_an_entity_and_its_calls(every_mode: Starlette) -> None:
    page = ask(every_mode, CALLS, "entities?own=1&count=500")
    assert page["kinds"] == {"file": 5, "socket": 3, "thread": 2, "process": 1}
    assert HOSTILE_FILE in [row["name"] for row in page["rows"]]
    for row in page["rows"]:
        assert ask(every_mode, CALLS, f"calls/summary?entity={row['entity']}")["calls"] == row["calls"]
        told = ask(every_mode, CALLS, f"entities/{row['entity']}")
        every_touch, life = told.pop("touches"), told.pop("life")
        touches = [touch for touch in every_touch if touch["process"] == 0]
        assert (told.pop("life_total"), told.pop("parent_name")) == (
            len(life),
            None if row["parent"] is None else "made-up",
        )
        check_life(life, every_touch)
        assert told == row
        assert sum(touch["calls"] for touch in touches) == (row["calls"] if row["tid"] is None and touches else 0)
        assert sum(touch["bytes_read"] + touch["bytes_written"] for touch in touches) == row["bytes"]
    every = ask(every_mode, CALLS, "entities?count=500")
    assert every["kinds"]["process"] == 3
    assert ask(every_mode, CALLS, "entities?kind=file&count=2&offset=4")["total"] == 5
    assert [row["name"] for row in ask(every_mode, CALLS, "entities?text=ETC")["rows"]] == ["/etc/passwd"]


def test_who_did_what(every_mode: Starlette) -> None:
    every = ask(every_mode, CALLS, "touches?limit=1000")
    assert every["total"] == len(every["rows"])
    assert {row["process"] for row in every["rows"]} == {0, 1, 2}
    own = ask(every_mode, CALLS, "touches?limit=1000&own=1")
    assert own["rows"] == [row for row in every["rows"] if row["process"] == 0]
    assert len(ask(every_mode, CALLS, "touches?limit=3")["rows"]) == 3


def test_a_trace_without_entities_has_its_threads(every_mode: Starlette) -> None:
    page = ask(every_mode, FULL, "entities?own=1")
    assert page["source"] == "known"
    assert page["kinds"] == {"process": 1, "thread": 1}
    n = len(every_call(every_mode, FULL))
    assert [(row["entity"], row["kind"], row["calls"]) for row in page["rows"]] == [
        (None, "process", n),
        (None, "thread", n),
    ]
    assert ask_well(every_mode, f"/api/traces/{FULL}/processes/0/entities/0").status == 400


@pytest.mark.parametrize("by", ["name", "kind", "filter", "thread"])
def test_charts(every_mode: Starlette, by: str) -> None:
    content = ask_well(every_mode, f"/api/traces/{CALLS}/processes/0/calls/chart?by={by}&bins=13&series=4").content
    _, meta, arrays = decode_container(content)
    calls = arrays["calls"].reshape(-1, meta["bins"])
    rows = every_call(every_mode, CALLS)
    assert calls.sum() == len(rows)
    times = np.array([row["time"] for row in rows])
    edges = np.array([meta["from"] + (meta["to"] - meta["from"]) * number / 13 for number in range(14)])
    # Edges are whole nanoseconds.
    assert calls.sum(axis=0).tolist() == np.histogram(times, np.floor(edges))[0].tolist()
    assert json.loads(json.dumps(meta))["by"] == by
