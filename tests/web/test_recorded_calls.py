"""The view of calls on a recording of a real program: each of its calls is there once, in the table, the tree, the
lanes and at its place in the replay."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from clew.analysis.trace import Trace
from tests.web.accessibility import find_serious, load_axe
from tests.web.calls_page import read_rows, show_row
from tests.web.conftest import OpenViewer, Serve
from tests.web.traces import find_trace
from tests.web.viewer import Viewer

PANEL = "[data-timeline]"
Row = dict[str, Any]


@pytest.fixture
def recorded(open_viewer: OpenViewer, serve: Serve) -> Viewer:
    return open_viewer(serve("api-full", "api-counts"))


@cache
def _calls(process_id: int = 0, name: str = "api-full") -> list[Row]:
    """The calls of a process in the order of time."""
    rows = [row for row in Trace(find_trace(name)).calls.to_pylist() if row["process_id"] == process_id]
    return sorted(rows, key=lambda row: row["time_ns"])


def _in_order(tid: int) -> list[tuple[int, Row]]:
    """The calls of a thread by their place in its order, each with its index."""
    own = [(index, row) for index, row in enumerate(_calls()) if row["tid"] == tid]
    return sorted(own, key=lambda one: one[1]["position"])


def _worker() -> int:
    """A thread that opens files by fopen."""
    return next(int(row["tid"]) for row in _calls() if row["name"] == "fopen")


def _tell_arguments(row: Row) -> str:
    return ", ".join(f"{one['name']}={one['text']}" for one in json.loads(row["arguments"]))


def _wait_for_rows_that_fill_the_table(page: Page) -> None:
    """What is around the table grows and shrinks while it comes, and the table with it."""
    page.wait_for_function(
        """() => {
            const [table, rows, content] = [".calls-grid", ".grid-sight", ".grid-space"].map(
                (name) => document.querySelector(name)?.getBoundingClientRect().height ?? NaN);
            return rows >= Math.min(table - 60, content);
        }"""
    )


@pytest.mark.glance
@pytest.mark.parametrize("name", ["api-full", "api-counts"])
def test_every_call_of_a_recording_is_there_once(recorded: Viewer, name: str) -> None:
    n_shown = 0
    for process in Trace(find_trace(name)).processes.to_pylist():
        wanted = _calls(process["process_id"], name)
        page = recorded.open(name, view="calls", process=process["process_id"])
        expect(page.get_by_role("grid", name="Calls")).to_have_attribute("aria-rowcount", str(len(wanted) + 1))
        _wait_for_rows_that_fill_the_table(page)
        shown = read_rows(page)
        assert list(shown) == list(range(len(wanted)))
        for (_, cells), row in zip(shown.values(), wanted, strict=True):
            _, tid, called, arguments, result, *_ = cells
            assert (int(tid), called) == (row["tid"], row["name"])
            assert result == (row["result_text"] or "")
            told = _tell_arguments(row)
            assert arguments == (told if len(told) <= 300 else f"{told[:300]}…")
        n_shown += len(shown)
    assert n_shown == Trace(find_trace(name)).n_rows("calls")


def test_a_call_that_is_chosen_is_gone_to_in_the_replay(recorded: Viewer) -> None:
    page = recorded.open("api-full", view="calls", process=0)
    for number in (5, len(_calls()) // 2, len(_calls()) - 2):
        row = _calls()[number]
        show_row(page, number).click()
        panel = page.locator(PANEL)
        expect(panel).to_have_attribute("data-position", str(row["position"]))
        expect(panel).to_have_attribute("data-thread", str(row["tid"]))
        expect(panel).to_have_attribute("data-call-here", str(number))
        # The block that comes next is the one that makes it.
        expect(panel).to_have_attribute(
            "data-block", page.locator(f"[data-call='{number}']").get_attribute("data-block")
        )
        page.locator(PANEL).get_by_role("button", name="Step on").click()
        expect(panel).to_have_attribute("data-position", str(row["position"] + 1))
        expect(panel).not_to_have_attribute("data-call-here", str(number))
        page.locator(PANEL).get_by_role("button", name="Step back").click()
        expect(panel).to_have_attribute("data-call-here", str(number))


def test_the_replay_goes_from_call_to_call(recorded: Viewer) -> None:
    """By keys, and each call of the thread is come to once, in the order of execution."""
    order = _in_order(_worker())
    page = recorded.open("api-full", at=f"{_worker()}:0")
    page.get_by_role("button", name="API calls").click()
    panel = page.locator(PANEL)
    page.locator("[data-timeline-canvas]").focus()
    for index, row in order[:40]:
        page.keyboard.press("}")
        expect(panel).to_have_attribute("data-position", str(row["position"]))
        expect(panel).to_have_attribute("data-call-here", str(index))
        expect(page.locator("[data-api-here]")).to_contain_text(f"Makes {row['name']}")
    page.keyboard.press("{")
    expect(panel).to_have_attribute("data-call-here", str(order[38][0]))
    page.keyboard.press("End")
    page.keyboard.press("}")
    expect(page.get_by_text("no API call behind")).to_be_visible()


def test_calls_that_are_open_are_told(recorded: Viewer) -> None:
    """A system call that fopen makes is made within it; when fopen has returned it is not open."""
    order = _in_order(_worker())
    at = next(place for place, (_, row) in enumerate(order) if row["name"] == "fopen" and place > 3)
    (outer, _), (inner, opened), (after, later) = order[at : at + 3]
    assert opened["name"] == "openat"
    page = recorded.open("api-full", at=f"{_worker()}:{opened['position']}")
    page.get_by_role("button", name="API calls").click()
    expect(page.locator(f"[data-near-call='{inner}']")).to_have_attribute("data-is-made", "true")
    expect(page.locator(f"[data-near-call='{outer}']")).to_have_attribute("data-is-open", "true")
    expect(page.locator("[data-api-here]")).to_contain_text("Makes openat in fopen")
    page.locator(f"[data-near-call='{after}']").click()
    expect(page.locator(PANEL)).to_have_attribute("data-position", str(later["position"]))
    expect(page.locator(f"[data-near-call='{after}']")).to_have_attribute("data-is-made", "true")
    expect(page.locator("[data-is-open]")).to_have_count(0)
    recorded.wait_for_state(call=after)


def test_a_bar_of_a_lane_is_a_call(recorded: Viewer) -> None:
    """The pointer tells what it is, and a click chooses it."""
    page = recorded.open("api-full")
    expect(page.locator(".swatch.recorded")).to_be_visible()
    longest = max(range(len(_calls())), key=lambda index: _calls()[index]["duration_ns"] or 0)
    row = _calls()[longest]
    threads = [one for one in Trace(find_trace("api-full")).threads.to_pylist() if one["process_id"] == 0]
    first, last = min(one["start_ns"] for one in threads), max(one["end_ns"] for one in threads)
    box = page.locator("[data-timeline-canvas]").bounding_box()
    assert box is not None
    gutter = 168
    share = (row["time_ns"] + row["duration_ns"] / 2 - first) / (last - first)
    x = box["x"] + gutter + share * (box["width"] - gutter)
    hint = page.locator(".lanes-hint")
    for y in range(int(box["y"]) + 20, int(box["y"] + box["height"]), 2):
        page.mouse.move(x, y)
        if hint.count() and re.search(rf"(·|longest) {row['name']}\b", hint.inner_text()):
            break
    else:
        pytest.fail(f"no bar of {row['name']}")
    page.mouse.down()
    page.mouse.up()
    recorded.wait_for_state(call=longest)
    expect(page.locator(PANEL)).to_have_attribute("data-position", str(row["position"]))


def test_the_tree_has_every_call_once(recorded: Viewer) -> None:
    page = recorded.open("api-full", view="calls", process=0, calls="tree")
    tree = page.get_by_role("treegrid", name="Tree of calls")
    by_thread = Counter(row["tid"] for row in _calls())
    expect(page.locator("[data-tree-thread]")).to_have_count(len(by_thread))
    for tid, n in by_thread.items():
        expect(page.locator(f"[data-tree-thread='{tid}'] [role=gridcell]").nth(1)).to_contain_text(f"{n}")
    # By keys, without a pointer: open the worker, then all that has something in it.
    own = [(index, row) for index, row in enumerate(_calls()) if row["tid"] == _worker()]
    recorded.go("api-full", view="calls", process=0, calls="tree", threads=_worker(), calls_text="fopen")
    outer = [index for index, row in own if row["name"] == "fopen"]
    expect(tree).to_have_attribute("data-rows", str(len(outer) + 1))
    assert len(outer) == 30
    recorded.go("api-full", view="calls", process=0, calls="tree", threads=_worker(), calls_name="write")
    writes = {index: row["parent_call_id"] for index, row in own if row["name"] == "write"}
    tree.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    inner = page.locator("[data-depth='2']").first
    expect(inner).to_contain_text("write")
    index = int(inner.get_attribute("data-tree-call") or -1)
    assert index in writes
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    recorded.wait_for_state(call=index)
    details = page.get_by_role("region", name="The call")
    expect(details.locator("h3")).to_contain_text("fclose")
    # To the call around it, which tells of what is in it.
    details.locator("h3").get_by_role("button", name="fclose").click()
    expect(details.locator(f"[data-within-call='{index}']")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.get_by_label("Those of one name together").check()
    recorded.wait_for_state(tree_by="name")


def test_calls_of_one_name_are_added_up(recorded: Viewer) -> None:
    page = recorded.open("api-full", view="calls", process=0, calls="tree", tree_by="name", threads=_worker())
    own = [row for row in _calls() if row["tid"] == _worker()]
    outermost = Counter(row["name"] for row in own if row["parent_call_id"] is None)
    rows = page.locator("[data-depth='1']")
    expect(rows).to_have_count(len(outermost))
    shown = {}
    for row in rows.all():
        name, n, *_ = row.locator("[role=gridcell]").all_inner_texts()
        shown[name.strip("▸▾\n ")] = int(re.match(r"\d+", n)[0])  # type: ignore[index]
    assert shown == outermost


def test_arguments_are_searched_for(recorded: Viewer) -> None:
    page = recorded.open("api-full", view="calls", process=0)

    def find(text: str) -> Counter[str]:
        page.get_by_label("Search calls").fill(text)
        wanted = page.locator("[data-calls-total]")
        expect(wanted).not_to_have_attribute("data-calls-total", str(len(_calls())))
        return Counter(cells[2] for _, cells in read_rows(page).values())

    of_fd = [row for row in _calls() if re.search(r'"name": "\w*fd"[^}]*"text": "3"', row["arguments"])]
    assert find("fd=3") == Counter(row["name"] for row in of_fd)
    nothing = [row for row in _calls() if "/nothing/here" in row["arguments"]]
    page.get_by_label("Search calls").fill("path=/nothing/*")
    expect(page.locator("[data-calls-total]")).to_have_attribute("data-calls-total", str(len(nothing)))
    page.get_by_label("Failed").check()
    expect(page.locator("[data-calls-total]")).to_have_attribute("data-calls-total", str(len(nothing)))
    page.get_by_label("Search calls").fill("")
    failed = [row for row in _calls() if row["error"]]
    expect(page.locator("[data-calls-total]")).to_have_attribute("data-calls-total", str(len(failed)))
    page.get_by_label("Kind of calls").select_option("library")
    functions = [row for row in failed if row["kind"] == "library"]
    expect(page.locator("[data-calls-total]")).to_have_attribute("data-calls-total", str(len(functions)))
    page.get_by_label("Failed").uncheck()
    page.get_by_label("Thread of calls").select_option(str(_worker()))
    own = [row for row in _calls() if row["kind"] == "library" and row["tid"] == _worker()]
    expect(page.locator("[data-calls-total]")).to_have_attribute("data-calls-total", str(len(own)))


def test_the_life_of_a_file(recorded: Viewer) -> None:
    trace = Trace(find_trace("api-full"))
    (entity,) = (row for row in trace.entities.to_pylist() if row["name"].endswith("/file-0"))
    about = {row["call_id"]: row for row in trace.references.to_pylist() if row["entity_id"] == entity["entity_id"]}
    page = recorded.open("api-full", view="calls", process=0, entity=entity["entity_id"])
    chosen = page.locator("[data-chosen-entity]")
    expect(chosen).to_contain_text("file-0")
    opened = [index for index, row in enumerate(_calls()) if about.get(row["call_id"], {}).get("role") == "opened"]
    events = chosen.locator("[data-life] li")
    expect(events.first).to_contain_text("opened")
    expect(events.filter(has_text="opened")).to_have_count(len(opened))
    events.first.get_by_role("button").click()
    recorded.wait_for_state(call=opened[0])
    # What the call was about leads back to it, by its name.
    expect(page.locator(f"[data-about='{entity['entity_id']}']").first).to_contain_text("file-0")


def test_a_trace_without_order_has_calls_and_no_places(recorded: Viewer) -> None:
    page = recorded.open("api-counts", view="calls", process=0)
    show_row(page, 4).click()
    expect(page.locator("[data-open-call]")).to_contain_text("no place to go to")
    expect(page.get_by_role("button", name="API calls")).to_have_count(0)
    page.get_by_role("button", name="Tree").click()
    expect(page.locator("[data-tree-thread]").first).to_be_visible()


@pytest.mark.parametrize("part", ["calls", "tree"])
def test_axe_finds_nothing_serious(recorded: Viewer, part: str) -> None:
    page = recorded.open(
        "api-full",
        view="calls",
        process=0,
        calls=part,
        at=f"{_worker()}:{_in_order(_worker())[9][1]['position']}",
        call=9,
    )
    page.get_by_role("button", name="API calls").click()
    expect(page.locator("[data-near-call]").first).to_be_visible()
    expect(page.locator("[data-open-call]")).to_be_visible()
    load_axe(page)
    for theme in ("light", "dark"):
        if page.locator("html").get_attribute("data-theme") != theme:
            page.get_by_role("button", name="Dark or light").click()
        recorded.wait_for_quiet()
        assert not find_serious(page, None)
    _check_width(page)


def _check_width(page: Page) -> None:
    """Nothing makes the page wider than it is."""
    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
