"""The view of calls on a pipeline of several programs: every call of all processes is there once, in the order of time,
and leads to the code, the time and the replay of its own process."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from tests.web.accessibility import find_serious, load_axe
from tests.web.calls_page import read_rows_of_all
from tests.web.conftest import OpenViewer, Serve
from tests.web.traces import find_trace
from tests.web.viewer import Viewer

NAME = "pipeline"
PANEL = "[data-timeline]"
Row = dict[str, Any]
_MOST_SERIES = 8


@pytest.fixture
def recorded(open_viewer: OpenViewer, serve: Serve) -> Viewer:
    return open_viewer(serve(NAME))


@cache
def _trace() -> Trace:
    return Trace(find_trace(NAME))


@cache
def _calls() -> list[Row]:
    """All calls in the order of time, each with its number among those of its process."""
    rows = sorted(_trace().calls.to_pylist(), key=lambda row: row["time_ns"])
    counts: Counter[int] = Counter()
    for row in rows:
        row["number"] = counts[row["process_id"]]
        counts[row["process_id"]] += 1
    return rows


@cache
def _names() -> dict[int, str]:
    """By process its pid and program."""
    rows = _trace().processes.to_pylist()
    return {row["process_id"]: f"{row['pid']} {row['command'][0].rpartition('/')[2]}" for row in rows}


def _find(name: str, program: str, text: str = "") -> int:
    """The place of the first call of a program that is called so, with a text in its arguments."""
    return next(
        place
        for place, row in enumerate(_calls())
        if row["name"] == name and _names()[row["process_id"]].endswith(f" {program}") and text in row["arguments"]
    )


def _show(page: Page, place: int) -> Any:
    """Have the row at `place` of the table of all calls in sight."""
    row = _calls()[place]
    page.get_by_role("grid", name="Calls").wait_for()
    scroll = "(place) => document.querySelector('[role=grid][aria-label=Calls]').scrollTop = (place - 2) * 22"
    page.evaluate(scroll, place)
    return page.locator(f"[data-call='{row['number']}'][data-process='{row['process_id']}']")


@pytest.mark.glance
def test_every_call_of_all_processes_is_there_once(recorded: Viewer) -> None:
    """In the table, the chart and the choice by process, without anything being chosen first."""
    by_process = Counter(row["process_id"] for row in _calls())
    assert len(by_process) >= 6
    page = recorded.open(NAME, view="calls")
    expect(page.get_by_role("grid", name="Calls")).to_have_attribute("aria-rowcount", str(len(_calls()) + 1))
    shown = read_rows_of_all(page)
    assert [(process, call) for process, call, _ in shown] == [(row["process_id"], row["number"]) for row in _calls()]
    for (_, _, (_, process, tid, name, *_)), row in zip(shown, _calls(), strict=True):
        assert (process, int(tid), name) == (_names()[row["process_id"]], row["tid"], row["name"])
    expect(page.locator("[data-chart-calls]")).to_have_attribute("data-chart-calls", str(len(_calls())))
    options = [f"{_names()[process]} ({by_process[process]:,})" for process in sorted(by_process)]
    choice = page.get_by_label("Process of calls")
    expect(choice.locator("option")).to_have_text([f"all {len(by_process)} processes", *options])
    page.get_by_label("What the chart tells apart").select_option("process")
    legend = page.get_by_label("Legend of the chart").get_by_role("button")
    ranked = sorted(by_process, key=lambda process: (-by_process[process], process))
    n_others = len(ranked) - _MOST_SERIES + 1
    told = [f"{_names()[process]} {by_process[process]:,}" for process in ranked[:-n_others]]
    others = sum(by_process[process] for process in ranked[-n_others:])
    expect(legend).to_have_text([*told, f"{n_others} others {others:,}"])
    legend.first.click()
    recorded.wait_for_state(process=ranked[0])
    expect(page.locator("[data-calls-of]")).to_have_attribute("data-calls-of", str(ranked[0]))


def test_a_call_leads_to_its_own_process(recorded: Viewer) -> None:
    """To its block and its place in the replay, and all calls stay where they are."""
    page = recorded.open(NAME, view="calls")
    for place in (_find("read", "sort"), _find("write", "tee"), _find("openat", "cat", "/nothing/here")):
        row = _calls()[place]
        process, number = row["process_id"], row["number"]
        _show(page, place).click()
        index = ProcessGraph(_trace(), process).block_id.tolist().index(row["block_id"])
        recorded.wait_for_state(process=process, call=number, select=f"b{index}", at=f"{row['tid']}:{row['position']}")
        expect(page.locator(PANEL)).to_have_attribute("data-position", str(row["position"]))
        expect(page.locator(PANEL)).to_have_attribute("data-thread", str(row["tid"]))
        expect(page.locator(PANEL)).to_have_attribute("data-call-here", str(number))
        expect(page.locator("[data-open-call]")).to_have_attribute("data-open-call", str(number))
        expect(page.locator("[data-calls-of]")).to_have_attribute("data-calls-of", "all")
        selected = page.locator("[data-call][aria-selected=true]")
        expect(selected).to_have_attribute("data-process", str(process))
        expect(selected).to_have_attribute("data-call", str(number))
    # The address has it, for whoever is given it.
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("[data-open-call]")).to_have_attribute("data-open-call", str(number))
    expect(page.locator("[data-calls-of]")).to_have_attribute("data-calls-of", "all")
    expect(page.locator("[data-call][aria-selected=true]")).to_have_attribute("data-process", str(process))


def test_one_process_is_chosen_and_left(recorded: Viewer) -> None:
    page = recorded.open(NAME, view="calls")
    table = page.get_by_role("grid", name="Calls")
    choice = page.get_by_label("Process of calls")
    process = _calls()[_find("read", "sort")]["process_id"]
    own = [row for row in _calls() if row["process_id"] == process]
    choice.select_option(str(process))
    recorded.wait_for_state(process=process)
    expect(table).to_have_attribute("aria-rowcount", str(len(own) + 1))
    expect(page.get_by_role("columnheader", name="Process")).to_have_count(0)
    expect(page.get_by_role("button", name="By place")).to_be_visible()
    choice.select_option("")
    recorded.wait_for_state(calls_of="all")
    expect(table).to_have_attribute("aria-rowcount", str(len(_calls()) + 1))
    expect(page.get_by_role("button", name="By place")).to_have_count(0)
    # What is searched for is searched for in all of them; and sorted by process those of one follow one another.
    failed = [row for row in _calls() if row["error"]]
    page.get_by_label("Failed").check()
    expect(table).to_have_attribute("aria-rowcount", str(len(failed) + 1))
    page.get_by_role("button", name="Process", exact=True).click()
    recorded.wait_for_state(calls_sort="process")
    shown = read_rows_of_all(page)
    wanted = sorted(failed, key=lambda row: row["process_id"])
    assert [(who, call) for who, call, _ in shown] == [(row["process_id"], row["number"]) for row in wanted]


def test_a_file_that_processes_share_is_one(recorded: Viewer) -> None:
    """With the calls of all of them, who did what with it, and a life that leads to each process."""
    (entity,) = (row for row in _trace().entities.to_pylist() if row["name"].endswith("/lines"))
    about = [row for row in _trace().references.to_pylist() if row["entity_id"] == entity["entity_id"]]
    calls = {(row["process_id"], row["call_id"]) for row in about}
    sharing = {process for process, _ in calls}
    assert len(sharing) >= 3
    page = recorded.open(NAME, view="calls")
    entry = page.locator(f"[data-entity='{entity['entity_id']}']")
    page.get_by_label("Search entities").fill("/lines")
    expect(entry).to_contain_text(f"{len(calls)}")
    entry.click()
    table = page.get_by_role("grid", name="Calls")
    expect(table).to_have_attribute("aria-rowcount", str(len(calls) + 1))
    shared = page.locator("[data-shared-by]")
    expect(shared).to_have_attribute("data-shared-by", str(len(sharing)))
    for process in sharing:
        expect(shared).to_contain_text(_names()[process])
    program = _calls()[_find("openat", "wc")]["process_id"]
    opened = page.locator("[data-life] li").filter(has_text="opened").filter(has_text=_names()[program])
    opened.first.get_by_role("button").click()
    recorded.wait_for_state(process=program)
    expect(page.locator("[data-open-call] h3")).to_contain_text("openat")
    # In the picture of who did what it is one node, with a line to each of them.
    page.get_by_role("button", name="Who did what").click()
    lines = page.locator("[data-touch-table] tr").filter(has_text=entity["name"])
    expect(lines).to_have_count(len(sharing))


def test_the_tree_has_the_threads_of_all(recorded: Viewer) -> None:
    page = recorded.open(NAME, view="calls", calls="tree")
    by_thread = Counter((row["process_id"], row["tid"]) for row in _calls())
    heads = page.locator("[data-tree-thread]")
    expect(heads).to_have_count(len(by_thread))
    for (process, tid), n in by_thread.items():
        cells = page.locator(f"[data-tree-thread='{tid}'][data-process='{process}'] [role=gridcell]")
        expect(cells.first).to_contain_text(_names()[process])
        expect(cells.nth(1)).to_contain_text(f"{n:,}")
    place = _find("openat", "sort")
    row = _calls()[place]
    page.locator(f"[data-tree-thread='{row['tid']}'][data-process='{row['process_id']}'] .twist").click()
    page.locator(f"[data-tree-call='{row['number']}'][data-process='{row['process_id']}']").click()
    recorded.wait_for_state(process=row["process_id"], call=row["number"], at=f"{row['tid']}:{row['position']}")
    expect(page.locator("[data-calls-of]")).to_have_attribute("data-calls-of", "all")


def test_arguments_are_those_of_the_trace(recorded: Viewer) -> None:
    page = recorded.open(NAME, view="calls", calls_text="/nothing/here")
    wanted = [row for row in _calls() if "/nothing/here" in row["arguments"] + (row["result_text"] or "")]
    expect(page.get_by_role("grid", name="Calls")).to_have_attribute("aria-rowcount", str(len(wanted) + 1))
    shown = read_rows_of_all(page)
    for (_, _, (_, _, _, _, arguments, *_)), row in zip(shown, wanted, strict=True):
        told = ", ".join(f"{one['name']}={one['text']}" for one in json.loads(row["arguments"]))
        assert arguments == (told if len(told) <= 300 else f"{told[:300]}…")


@pytest.mark.parametrize("part", ["calls", "tree"])
def test_axe_finds_nothing_serious(recorded: Viewer, part: str) -> None:
    place = _find("read", "sort")
    row = _calls()[place]
    words = {"process": row["process_id"], "call": row["number"], "calls_of": "all", "calls_by": "process"}
    page = recorded.open(NAME, view="calls", calls=part, **words)
    expect(page.locator("[data-open-call]")).to_be_visible()
    load_axe(page)
    for theme in ("light", "dark"):
        if page.locator("html").get_attribute("data-theme") != theme:
            page.get_by_role("button", name="Dark or light").click()
        recorded.wait_for_quiet()
        assert not find_serious(page, None)
    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
