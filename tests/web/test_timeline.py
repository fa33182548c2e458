"""The timeline: any place of an ordered thread is found again as Python has it, forwards and backwards."""

from __future__ import annotations

import random
import re
import statistics
import time
from functools import cache

import pytest
from playwright.sync_api import expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.replay.thread_times import read_path_times
from clew.analysis.trace import Trace
from clew.protocol._generated import GapReason
from tests.web.conftest import OpenViewer, Serve
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


@pytest.mark.glance
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


def test_the_timeline_is_asked_for_once(viewer: Viewer) -> None:
    asked: list[str] = []
    viewer.page.on("request", lambda request: asked.append(request.url))
    page = viewer.open("shapes-full", at=f"{_tids()[0]}:0")
    page.locator("[data-timeline] canvas").first.wait_for()
    # Longer than a part is waited for.
    page.wait_for_timeout(500)
    assert len([url for url in asked if "/timeline" in url]) == 1


def test_without_signals_none_is_looked_for(viewer: Viewer) -> None:
    page = viewer.open("shapes-full", at=f"{_tids()[0]}:0")
    expect(page.get_by_role("button", name="Next system call")).to_be_enabled()
    for name in ("Next signal", "Previous signal"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()


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


def test_what_was_lost_is_hatched_and_said(open_viewer: OpenViewer, serve: Serve) -> None:
    """The recorder was stopped for most of the program's time. Steps lead up to what was lost, and behind it."""
    trace = Trace(find_trace("losses"))
    stretches = trace.path().stretches
    # There may be several, and nothing between two of them.
    is_told = {stretch.number: stretches.open(stretch.number).skip()[1] > 0 for stretch in stretches}
    number = next(stretch.number for stretch in stretches if stretch.is_after_loss and is_told[stretch.number])
    reached = stretches[number - 1].executions + stretches.open(number - 1).skip()[1]
    behind = stretches[number].executions
    tid = trace.paths["tid"][0].as_py()
    viewer = open_viewer(serve("shapes-compact", "losses"))
    page = viewer.open("losses", view="processes", at=f"{tid}:{reached}")
    hatched = page.locator("[data-hatched]").filter(has_text=f"{behind - reached:,} executions lost")
    expect(hatched).to_have_count(1)
    begin, end = (float(hatched.get_attribute(f"data-{name}") or 0) for name in ("from", "to"))
    # No processor executes more blocks in a nanosecond: it is not a moment that so much was lost in.
    assert (behind - reached) / (end - begin) < 10
    said = page.locator("[data-gap=lost]")
    expect(said).to_contain_text(f"{behind - reached:,} executions lost")
    page.get_by_role("heading", name="clew").click()
    page.keyboard.press(".")
    expect(page.locator(PANEL)).to_have_attribute("data-position", str(behind))
    expect(said).to_have_count(0)
    page.keyboard.press(",")
    expect(page.locator(PANEL)).to_have_attribute("data-position", str(reached))
    page.keyboard.press(",")
    expect(page.locator(PANEL)).to_have_attribute("data-position", str(reached - 1))
    expect(said).to_have_count(0)


def test_what_was_left_out_is_hatched_and_counted(open_viewer: OpenViewer, serve: Serve) -> None:
    """Of mode auto: what had no room in the budget is marked in the lane, and told where the cursor comes to it."""
    trace = Trace(find_trace("thinned"))
    path = trace.path()
    gaps = read_path_times(path, 0, 1 << 62).gaps
    assert len(gaps) and set(gaps["reason"].tolist()) == {GapReason.THINNED}
    first = next(path.iter_pieces())
    reached = first.place.execution + len(first.block_ids)
    for piece in path.iter_pieces(reached):
        if piece.place.execution != reached:
            break
        reached += len(piece.block_ids)
    viewer = open_viewer(serve("thinned"))
    page = viewer.open("thinned", view="processes", at=f"{trace.paths['tid'][0].as_py()}:{reached}")
    hatched = page.locator("[data-hatched]")
    hatched.first.wait_for(state="attached")
    texts = hatched.all_text_contents()
    counted = [re.search(r": ([\d,]+) executions counted, their order left out$", text) for text in texts]
    assert all(counted), texts
    found = [int(one[1].replace(",", "")) for one in counted if one]
    assert sum(found) == int(gaps["executions"].sum())
    said = page.locator("[data-gap=thinned]")
    expect(said).to_contain_text(f"{int(gaps['executions'][0]):,} executions counted")


def test_a_compacted_trace_is_replayed_like_the_one_that_it_was(open_viewer: OpenViewer, serve: Serve) -> None:
    viewer = open_viewer(serve("shapes-compact", "losses"))
    for tid in _tids()[:2]:
        last = len(_path(tid)) - 1
        viewer.open("shapes-compact", view="processes", at=f"{tid}:{last // 2}")
        _wait_at(viewer, tid, last // 2)
        viewer.page.get_by_role("heading", name="clew").click()
        for key, position in ((".", last // 2 + 1), ("Home", 0), ("End", last + 1), (",", last)):
            viewer.page.keyboard.press(key)
            expect(viewer.page.locator(PANEL)).to_have_attribute("data-position", str(position))
        _wait_at(viewer, tid, last)
    viewer.page.keyboard.press("Home")
    viewer.page.keyboard.press(">")
    callers = {block for block, kind in _exit_kinds().items() if kind in ("call", "indirect_call")}
    _wait_at(viewer, tid, next(at for at, block in enumerate(_path(tid)) if block in callers))


def _exit_kinds() -> dict[int, str]:
    table = Trace(find_trace("shapes-full")).blocks.select(["block_id", "exit_kind"])
    return dict(zip(table["block_id"].to_pylist(), table["exit_kind"].to_pylist(), strict=True))


@pytest.mark.parametrize("trace", ["shapes-counts", "shapes-coverage"])
def test_traces_without_order_say_so(viewer: Viewer, trace: str) -> None:
    page = viewer.open(trace)
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("order")
    assert viewer.dataset(PANEL).get("position") is None


def test_of_many_threads_and_processes_all_are_reached(open_viewer: OpenViewer, serve: Serve) -> None:
    """80 lanes and 1,081 rows: only those in sight are made, and keys, wheel and pointer come to the last."""
    viewer = open_viewer(serve("many"))
    page = viewer.open("many", view="processes")
    tree = page.get_by_role("treegrid", name="Processes and threads")
    expect(tree).to_have_attribute("aria-rowcount", "1082")
    assert tree.get_by_role("row").count() < 60
    tree.focus()
    page.keyboard.press("End")
    expect(tree.locator("[aria-rowindex='1082']")).to_be_in_viewport()
    page.keyboard.press("Home")
    expect(tree.locator("[aria-rowindex='2']")).to_be_in_viewport()
    lanes = page.locator(".lanes")
    canvas = page.locator("canvas[data-timeline-canvas]")
    canvas.hover()
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 120)
    page.keyboard.up("Shift")
    page.wait_for_function("() => document.querySelector('.lanes').scrollTop === 120")
    lanes.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    box = canvas.bounding_box()
    assert box is not None
    # Its foot has the new code; in front of that is the last thread's lane.
    page.mouse.move(box["x"] + 600, box["y"] + box["height"] - 40)
    expect(page.locator(".lanes-hint")).to_contain_text("longer than room is 79 1079")


def test_arrows_go_from_lane_to_lane(viewer: Viewer) -> None:
    threads = Trace(find_trace("shapes-full")).threads.select(["start_ns", "tid"]).to_pylist()
    tids = [tid for _, tid in sorted((thread["start_ns"], thread["tid"]) for thread in threads)]
    page = viewer.open("shapes-full", view="processes", at=f"{tids[0]}:100")
    _wait_at(viewer, tids[0], 100)
    page.locator("canvas[data-timeline-canvas]").focus()
    for key, thread in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
        page.keyboard.press(key)
        expect(page.locator(PANEL)).to_have_attribute("data-thread", str(tids[thread]))
