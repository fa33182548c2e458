"""The timeline: any place of an ordered thread is found again as Python has it, forwards and backwards."""

from __future__ import annotations

import random
import statistics
import time
from functools import cache

import pytest
from playwright.sync_api import expect

from clew.analysis.graph import ProcessGraph
from clew.analysis.trace import Trace
from tests.web.limits import assert_within
from tests.web.traces import find_trace
from tests.web.viewer import Viewer

PANEL = "[data-timeline]"


@cache
def _path(tid: int) -> list[int]:
    """The block_ids that a thread executed, in order."""
    return [int(block) for block in Trace(find_trace("shapes-full")).path(tid).blocks()]


@cache
def _index_of_block() -> dict[int, int]:
    graph = ProcessGraph(Trace(find_trace("shapes-full")), 0)
    return {block_id: index for index, block_id in enumerate(graph.block_id.tolist())}


def _tids() -> list[int]:
    found: list[int] = Trace(find_trace("shapes-full")).paths["tid"].to_pylist()
    return found


def _wait_at(viewer: Viewer, tid: int, position: int) -> None:
    """Until the cursor is in front of a block of a thread, and the page knows which block that is."""
    block = _index_of_block()[_path(tid)[position]]
    expect(viewer.page.locator(PANEL)).to_have_attribute("data-position", str(position))
    expect(viewer.page.locator(PANEL)).to_have_attribute("data-thread", str(tid))
    expect(viewer.page.locator(PANEL)).to_have_attribute("data-block", str(block))


def test_every_place_of_a_thread_is_as_python_replays_it(viewer: Viewer) -> None:
    viewer.open("shapes-full", view="processes")
    for tid in _tids()[:3]:
        last = len(_path(tid)) - 1
        chosen = random.Random(tid).sample(range(last), min(4, last))
        viewer.go("shapes-full", view="processes", at=f"{tid}:{chosen[0]}")
        _wait_at(viewer, tid, chosen[0])
        for position in (*chosen[1:], 0, last):
            box = viewer.page.get_by_label("Go to block number")
            box.fill(str(position))
            box.press("Enter")
            _wait_at(viewer, tid, position)


def test_steps_forth_and_back_lead_to_the_same_place(viewer: Viewer) -> None:
    tid = _tids()[0]
    start, n = 700, 20
    viewer.open("shapes-full", view="processes", at=f"{tid}:{start}")
    _wait_at(viewer, tid, start)
    before = viewer.page.get_by_role("region", name="Timeline").get_by_role("list").all_inner_texts()
    viewer.page.get_by_role("heading", name="clew").click()
    for _ in range(n):
        viewer.page.keyboard.press(".")
    _wait_at(viewer, tid, start + n)
    for _ in range(n):
        viewer.page.keyboard.press(",")
    _wait_at(viewer, tid, start)
    assert viewer.page.get_by_role("region", name="Timeline").get_by_role("list").all_inner_texts() == before


def test_open_calls_do_not_make_the_panel_higher(viewer: Viewer) -> None:
    """Beside the one lane of a program with one thread."""
    tid = Trace(find_trace("gzip")).paths["tid"].to_pylist()[0]
    page = viewer.open("gzip", view="processes", at=f"{tid}:5000")
    calls = page.locator("[data-calls]")
    calls.get_by_role("listitem").first.wait_for()
    panel = page.locator(PANEL)
    before = panel.bounding_box()
    calls.evaluate(
        "(list) => { for (let i = 0; i < 60; i++) { list.append(list.firstElementChild.cloneNode(true)); } }"
    )
    assert panel.bounding_box() == before
    assert calls.evaluate("(list) => list.scrollHeight > 2 * list.clientHeight && list.clientHeight > 40")


@pytest.mark.timing
def test_places_are_found_in_time(viewer: Viewer) -> None:
    tid = _tids()[0]
    viewer.open("shapes-full", at=f"{tid}:0")
    _wait_at(viewer, tid, 0)
    path = "/api/traces/0/processes/0/threads/{}/replay?position={}"
    chance = random.Random(1)

    def take() -> float:
        """The time in seconds that 19 of 20 places are found in."""
        taken = []
        for position in chance.choices(range(len(_path(tid))), k=60):
            begin = time.monotonic()
            assert viewer.server.get(path.format(tid, position)).status == 200
            taken.append(time.monotonic() - begin)
        return statistics.quantiles(taken, n=20)[-1]

    assert_within(0.1, take)


def test_what_was_only_counted_is_hatched(viewer: Viewer) -> None:
    """Regions that were busy have no order; their rows of the table say for how long, and how much."""
    trace = Trace(find_trace("shapes-region"))
    tags = trace.tags.select(["tid", "kind"]).to_pylist()
    busy = {row["tid"] for row in tags if row["kind"] == "became_busy"}
    assert busy
    page = viewer.open("shapes-region")
    hatched = page.locator("[data-hatched]")
    hatched.first.wait_for(state="attached")
    assert {int(tid) for tid in hatched.evaluate_all("(all) => all.map((one) => one.dataset.thread)")} == busy
    for text in hatched.all_text_contents():
        assert "order not recorded" in text


@pytest.mark.parametrize("trace", ["shapes-counts", "shapes-coverage"])
def test_traces_without_order_say_so(viewer: Viewer, trace: str) -> None:
    page = viewer.open(trace)
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("order")
    assert viewer.dataset(PANEL).get("position") is None
