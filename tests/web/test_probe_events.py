"""Events of probes in the viewer, alone and beside a trace of the same run: where, when and with which values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from clew.analysis.probes.event_trace import TraceWithEvents
from clew.analysis.trace import Trace
from clew.binary.demangle import demangle
from tests.web.accessibility import find_serious, load_axe
from tests.web.calls_page import read_rows, show_row
from tests.web.conftest import OpenViewer
from tests.web.probed_run import ASKED, ProbedRun, probe_run
from tests.web.serving import Server

GUTTER = 168
Row = dict[str, Any]


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> ProbedRun:
    return probe_run(tmp_path_factory.mktemp("probed"))


@pytest.fixture(scope="module")
def alone(probed: ProbedRun) -> Iterator[Server]:
    server = Server([probed.events])
    yield server
    server.stop()


@pytest.fixture(scope="module")
def beside(probed: ProbedRun) -> Iterator[Server]:
    server = Server([probed.trace], "--events", str(probed.events))
    yield server
    server.stop()


def calls_of(probed: ProbedRun, whole: Trace | None = None) -> list[Row]:
    """What is shown, in the order of time."""
    rows = TraceWithEvents(whole, [probed.events]).read("calls").to_pylist()
    return sorted(rows, key=lambda row: (row["time_ns"], row["call_id"]))


def find_bar(page: Page, time_ns: float, first_ns: int, last_ns: int, words: str) -> Locator:
    """Put the pointer on the bar at a time that `words` tell of; the hint."""
    box = page.locator("[data-timeline-canvas]").bounding_box()
    assert box is not None
    x = box["x"] + GUTTER + 1 + (time_ns - first_ns) / (last_ns - first_ns) * (box["width"] - GUTTER - 1)
    hint = page.locator(".lanes-hint")
    for y in range(int(box["y"]) + 20, int(box["y"] + box["height"]), 2):
        page.mouse.move(x, y)
        if hint.count() and re.search(rf"· {words}\b", hint.inner_text()):
            return hint
    raise AssertionError(f"no bar of {words}")


def test_events_alone_open_with_their_table(alone: Server, open_viewer: OpenViewer, probed: ProbedRun) -> None:
    viewer = open_viewer(alone)
    page = viewer.page
    viewer.load(viewer.address())
    expect(page.get_by_role("grid", name="Calls")).to_be_visible()
    viewer.wait_for_state(view="calls")
    expect(page.get_by_text("events of probes", exact=True).first).to_be_visible()
    expect(page.get_by_text("no code was recorded, only events of probes")).to_be_visible()
    shown = [cells for _, cells in read_rows(page).values()]
    # The first column is the time; then thread, name, arguments, result.
    assert [(cells[2], cells[4]) for cells in shown if cells[2] == "answer"] == [
        ("answer", str(result)) for result in probed.answers
    ]
    texts = [json.dumps(f"{one}\n").replace("\\n", "\\x0a") for one in ASKED[0]]
    assert [cells[3].split("text=")[1].split(", ip=")[0] for cells in shown if cells[2] == "note"] == texts
    page.get_by_label("Kind of calls").select_option("events of probes")
    expect(page.get_by_role("grid", name="Calls")).to_have_attribute("aria-rowcount", str(len(shown) + 1))
    page.get_by_label("Failed").check()
    expect(page.get_by_role("grid", name="Calls")).to_have_attribute("aria-rowcount", "3")
    assert {cells[2] for _, cells in read_rows(page).values()} == {"inner", "outer"}


@pytest.mark.glance
def test_the_timeline_has_calls_within_calls(alone: Server, open_viewer: OpenViewer, probed: ProbedRun) -> None:
    """The pointer tells name, time and values; a click opens the call."""
    rows = calls_of(probed)
    first_ns, last_ns = rows[0]["time_ns"], max(row["time_ns"] + row["duration_ns"] for row in rows)
    longest = max(range(len(rows)), key=lambda index: rows[index]["duration_ns"])
    row = rows[longest]
    viewer = open_viewer(alone)
    page = viewer.page
    viewer.load(viewer.address())
    expect(page.locator(".swatch.recorded")).to_be_visible()
    hint = find_bar(page, row["time_ns"] + row["duration_ns"] / 2, first_ns, last_ns, row["name"])
    expect(hint).to_have_attribute("data-pointed", str(longest))
    expect(hint).to_contain_text(f"n={json.loads(row['arguments'])[0]['value']}, ")
    expect(hint).to_contain_text(f"= {row['result']}")
    page.mouse.down()
    page.mouse.up()
    viewer.wait_for_state(call=longest)
    # A place that was come to took no time.
    moment = next(one for one in rows if one["name"] == "note")
    hint = find_bar(page, moment["time_ns"] + 1, first_ns, last_ns, "note")
    expect(hint).to_contain_text('text="5')
    page.mouse.move(0, 0)
    expect(hint).to_have_count(0)


def test_the_tree_has_each_call_where_it_was_made(alone: Server, open_viewer: OpenViewer) -> None:
    viewer = open_viewer(alone)
    viewer.load(viewer.address(view="calls", calls="tree", tree_by="name"))
    page = viewer.page
    tree = page.get_by_role("treegrid")
    expect(tree.get_by_role("row").filter(has_text="answer")).to_contain_text(str(len(ASKED[0])))


def test_beside_a_trace_an_event_leads_to_its_code(beside: Server, open_viewer: OpenViewer, probed: ProbedRun) -> None:
    rows = calls_of(probed, Trace(probed.trace))
    assert len(rows) > 10
    viewer = open_viewer(beside)
    page = viewer.open("asked", view="calls")
    graph_names = {row["block_id"]: row["symbol"] for row in Trace(probed.trace).blocks.to_pylist()}
    for name in ("inner", "note", "answer"):
        number = next(index for index, row in enumerate(rows) if row["name"] == name)
        assert demangle(graph_names[rows[number]["block_id"]]) == name
        show_row(page, number).click()
        viewer.wait_for_state(call=number)
        expect(page.get_by_role("complementary").or_(page.locator(".details-side"))).to_contain_text(name)
        selected = viewer.state()["select"]
        assert selected.startswith("b")


def test_both_are_in_one_time(beside: Server, open_viewer: OpenViewer, probed: ProbedRun) -> None:
    """Events came before the recording: the lane of the thread has both, each where it was."""
    whole = Trace(probed.trace)
    rows = calls_of(probed, whole)
    [thread] = whole.threads.to_pylist()
    assert rows[-1]["time_ns"] < thread["start_ns"]
    first_ns, last_ns = rows[0]["time_ns"], thread["end_ns"]
    viewer = open_viewer(beside)
    page = viewer.open("asked")
    expect(page.locator(".swatch.recorded")).to_be_visible()
    page.locator("[data-timeline-canvas]").focus()
    hint = find_bar(page, rows[0]["time_ns"], first_ns, last_ns, r"(\d+ calls, longest )?answer")
    expect(hint).to_be_visible()
    # And the replay is that of what was recorded.
    box = page.locator("[data-timeline-canvas]").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 5, box["y"] + 25)
    expect(page.locator("[data-timeline]")).to_have_attribute("data-thread", str(probed.pid))


def test_nothing_serious_is_wrong_for_readers(alone: Server, open_viewer: OpenViewer) -> None:
    viewer = open_viewer(alone)
    viewer.load(viewer.address())
    expect(viewer.page.get_by_role("grid", name="Calls")).to_be_visible()
    load_axe(viewer.page)
    assert not find_serious(viewer.page, None)


def test_events_are_for_one_trace(probed: ProbedRun) -> None:
    with pytest.raises(RuntimeError, match="--events is for one TRACE"):
        Server([probed.trace, probed.trace], "--events", str(probed.events))


def test_what_are_no_events_is_refused(probed: ProbedRun, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="clew trace --format parquet"):
        Server([probed.trace], "--events", str(tmp_path))


@pytest.mark.parametrize("view", ["graph", "function", "listing", "processes", "compare"])
def test_views_of_code_stand_it_that_there_is_none(view: str, alone: Server, open_viewer: OpenViewer) -> None:
    viewer = open_viewer(alone)
    page = viewer.page
    viewer.load(viewer.address())
    expect(page.get_by_role("grid", name="Calls")).to_be_visible()
    page.get_by_role("button", name=view.capitalize(), exact=True).click()
    expect(viewer.main(view)).to_be_visible()
    viewer.wait_for_quiet()
    expect(page.get_by_role("alert")).to_have_count(0)
