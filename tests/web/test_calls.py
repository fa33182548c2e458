"""The view of calls: rows are those of the trace's tables, and lead to the code, the time and what they are about."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from clew.binary.architectures.x86_64 import X86_64
from clew.protocol._generated import PathEventKind
from tests.web.calls_page import read_rows, show_row
from tests.web.conftest import OpenViewer
from tests.web.made_up_calls import HOSTILE_FILE
from tests.web.traces import find_trace
from tests.web.viewer import Viewer

PANEL = "[data-timeline]"


@cache
def _graph(name: str) -> ProcessGraph:
    return ProcessGraph(Trace(find_trace(name)), 0)


@cache
def _calls() -> list[dict[str, Any]]:
    """The calls of the process in the order of time, with the index of their block."""
    index = {block_id: number for number, block_id in enumerate(_graph("calls").block_id.tolist())}
    rows = [row for row in Trace(find_trace("calls")).calls.to_pylist() if row["process_id"] == 0]
    return [row | {"block": index[row["block_id"]]} for row in sorted(rows, key=lambda row: row["time_ns"])]


def _calls_by_block(name: str) -> Counter[int]:
    """How often each block was executed that ends with a system call, by the table of counts."""
    trace = Trace(find_trace(name))
    ends = {row["block_id"] for row in trace.blocks.to_pylist() if row["exit_kind"] == "syscall"}
    index = {block_id: number for number, block_id in enumerate(_graph(name).block_id.tolist())}
    found: Counter[int] = Counter()
    for row in trace.counts.to_pylist():
        if row["block_id"] in ends:
            found[index[row["block_id"]]] += row["executions"]
    return found


def _table(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("grid", name="Calls")


@pytest.mark.glance
def test_a_row_selects_the_block_that_called(viewer: Viewer) -> None:
    page = viewer.open("calls", view="calls", process=0)
    expect(_table(viewer)).to_have_attribute("aria-rowcount", str(len(_calls()) + 1))
    for number in (0, 3, 5):
        wanted = _calls()[number]
        row = page.locator(f"[data-call='{number}']")
        expect(row).to_contain_text(wanted["name"])
        row.click()
        viewer.wait_for_state(select=f"b{wanted['block']}", call=number)
        expect(row).to_have_attribute("aria-selected", "true")
        expect(page.locator("[data-open-call]")).to_have_attribute("data-open-call", str(number))
    address = hex(int(_graph("calls").app_pc[_calls()[5]["block"]]))
    expect(page.get_by_role("region", name="Details")).to_contain_text(address)
    # In other views it is what is selected.
    page.keyboard.press("3")
    expect(page.locator(f"[data-of-selected=true][data-block='{_calls()[5]['block']}']").first).to_be_visible()


def test_keys_go_through_the_rows(viewer: Viewer) -> None:
    page = viewer.open("calls", view="calls", process=0)
    _table(viewer).focus()
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    viewer.wait_for_state(call=1, select=f"b{_calls()[1]['block']}")
    page.keyboard.press("End")
    expect(page.locator(f"[data-call='{len(_calls()) - 1}']")).to_be_attached()
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    expect(page.locator("[data-call='0']")).to_be_visible()


def test_an_entity_lists_its_calls(viewer: Viewer) -> None:
    """Of each kind; one whose name is no markup, whatever it looks like."""
    trace = Trace(find_trace("calls"))
    references = trace.references.to_pylist()
    own = {row["call_id"]: number for number, row in enumerate(_calls())}
    page = viewer.open("calls", view="calls", process=0)
    for name in (HOSTILE_FILE, "unix:/run/daemon"):
        (entity,) = (row["entity_id"] for row in trace.entities.to_pylist() if row["name"] == name)
        wanted = sorted(
            {own[row["call_id"]] for row in references if row["entity_id"] == entity and row["call_id"] in own}
        )
        entry = page.locator(f"[data-entity='{entity}']")
        expect(entry).to_contain_text(name)
        entry.click()
        viewer.wait_for_state(entity=entity)
        expect(_table(viewer)).to_have_attribute("aria-rowcount", str(len(wanted) + 1))
        assert sorted(read_rows(page)) == wanted
        expect(page.locator("[data-chosen-entity]")).to_contain_text(f"{len(wanted)} of this process")
    page.get_by_role("button", name="about unix:/run/daemon").click()
    expect(_table(viewer)).to_have_attribute("aria-rowcount", str(len(_calls()) + 1))


def test_who_did_what_leads_to_the_calls(viewer: Viewer) -> None:
    page = viewer.open("calls", view="calls", process=0, calls="touches")
    rows = page.locator("[data-touch-table] tbody tr")
    references = Trace(find_trace("calls")).references.to_pylist()
    pairs = {(row["process_id"], row["entity_id"]) for row in references}
    expect(rows).to_have_count(len(pairs))
    expect(page.locator("[data-touch-lines]")).to_have_attribute("data-touch-lines", str(len(pairs)))
    button = rows.first.get_by_role("button")
    name = button.inner_text()
    button.click()
    expect(_table(viewer)).to_be_visible()
    expect(page.locator("[data-chosen-entity] h3")).to_have_text(name)


def test_system_calls_of_a_path_are_those_that_were_counted(viewer: Viewer) -> None:
    """And a click leads to where the thread was: in front of the block that made the call."""
    counted = _calls_by_block("shapes-full")
    page = viewer.open("shapes-full", view="calls")
    expect(_table(viewer)).to_have_attribute("aria-rowcount", str(counted.total() + 1))
    shown = read_rows(page)
    assert Counter(block for block, _ in shown.values()) == counted
    names = [name for _, (_, _, name, *_) in shown.values()]
    assert Counter(names) == _noted_names()
    assert names.count("exit_group") == 1
    for number in (3, len(shown) // 2, len(shown) - 2):
        block, (_, tid, *_) = shown[number]
        show_row(page, number).click()
        viewer.wait_for_state(select=f"b{block}")
        expect(page.locator(PANEL)).to_have_attribute("data-thread", tid)
        expect(page.locator(PANEL)).to_have_attribute("data-block", str(block))


def _noted_names() -> Counter[str]:
    """Names of the system calls that the events of all paths tell of."""
    trace = Trace(find_trace("shapes-full"))
    found: Counter[str] = Counter()
    for row in trace.paths.to_pylist():
        stretches = trace.path(row["tid"]).stretches
        for number in range(len(stretches)):
            events = stretches.events(number)
            notes = events["value"][events["event_kind"] == PathEventKind.NOTE]
            found.update(X86_64.name_system_call(value) for value in notes.tolist())
    return found


@pytest.mark.parametrize("name", ["shapes-counts", "shapes-region"])
def test_modes_say_what_they_know(viewer: Viewer, name: str) -> None:
    counted = _calls_by_block(name)
    page = viewer.open(name, view="calls")
    reason = page.locator("[data-calls-reason]")
    expect(reason).to_contain_text("This trace has no API calls")
    if name == "shapes-counts":
        expect(reason).to_contain_text("times")
        expect(page.locator("[data-places-calls]")).to_have_attribute("data-places-calls", str(counted.total()))
        page.get_by_role("listbox", name="Places of calls").focus()
        page.keyboard.press("Home")
        expect(page.get_by_role("option", selected=True).locator("[data-place-block]")).to_have_count(1)
        block = (
            page.get_by_role("option", selected=True).locator("[data-place-block]").get_attribute("data-place-block")
        )
        assert counted[int(block or -1)] == max(counted.values())
        # What they have to do with is known of those whose number is in their code.
        choice = page.get_by_label("Filter of calls")
        options = choice.locator("option").all_inner_texts()[1:]
        told = {word: n.strip("()") for word, n in (option.split(" ") for option in options)}
        assert sum(map(int, told.values())) == counted.total()
        choice.select_option("File")
        expect(page.locator("[data-places-calls]")).to_have_attribute("data-places-calls", told["File"])
    else:
        expect(_table(viewer)).to_have_attribute("aria-rowcount", str(counted.total() + 1))


def test_a_stretch_of_time_is_chosen_in_the_chart(viewer: Viewer) -> None:
    page = viewer.open("calls", view="calls", process=0)
    chart = page.get_by_role("slider", name="Stretch of time of the calls")
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile(r"[#&]range=\d+-\d+"))
    start, end = (int(part) for part in viewer.state()["range"].split("-"))
    zero = Trace(find_trace("calls")).manifest.start_ns
    wanted = [number for number, row in enumerate(_calls()) if start <= row["time_ns"] - zero < end]
    assert len(_calls()) / 5 < len(wanted) < len(_calls()) / 3
    expect(_table(viewer)).to_have_attribute("aria-rowcount", str(len(wanted) + 1))
    expect(page.locator("[data-call]").first).to_have_attribute("data-call", str(wanted[0]))
    # The chart goes on showing all of time; its table adds up.
    expect(page.locator("[data-chart-calls]")).to_have_attribute("data-chart-calls", str(len(_calls())))
    sums = page.locator("[data-chart-table] tbody tr td:nth-child(2)").all_inner_texts()
    assert sum(int(text.split(",")[0]) for text in sums) == len(_calls())
    chart.focus()
    for key in ("ArrowLeft", "Shift+ArrowRight", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.wait_for_function("(before) => !location.hash.includes(before)", arg=f"range={start}-{end}")
    first, last = (int(part) for part in viewer.state()["range"].split("-"))
    assert last - first < (end - start) / 5
    page.get_by_role("button", name="a stretch of time").click()
    expect(_table(viewer)).to_have_attribute("aria-rowcount", str(len(_calls()) + 1))
    # One that was only begun is left.
    chart.focus()
    page.keyboard.press("ArrowRight")
    expect(chart).not_to_have_attribute("aria-valuetext", "all of time")
    page.keyboard.press("Escape")
    expect(chart).to_have_attribute("aria-valuetext", "all of time")


def test_calls_are_chosen_by_filter(viewer: Viewer) -> None:
    """In the address, the counts, the table, the chart, the tree, the places and the lanes."""
    filters = {"connect": "Network", "malloc": "Memory"}
    own = Counter(filters.get(row["name"], "File") for row in _calls())
    page = viewer.open("calls", view="calls", process=0, calls_by="filter")
    choice = page.get_by_label("Filter of calls")
    options = [f"{one} ({own[one]:,})" for one in ("File", "Network", "Memory")]
    expect(choice.locator("option")).to_have_text(["any filter", *options])
    legend = page.get_by_label("Legend of the chart").get_by_role("button")
    expect(legend).to_have_text([f"{word} {n:,}" for word, n in own.most_common()])
    legend.nth(1).click()
    viewer.wait_for_state(calls_filter=own.most_common()[1][0])
    expect(choice).to_have_value(own.most_common()[1][0])
    with page.expect_request(lambda request: "/calls/lanes" in request.url and "filter=Network" in request.url):
        choice.select_option("Network")
    viewer.wait_for_state(calls_filter="Network")
    expect(_table(viewer)).to_have_attribute("aria-rowcount", str(own["Network"] + 1))
    expect(page.locator("[data-chart-calls]")).to_have_attribute("data-chart-calls", str(own["Network"]))
    assert {cells[2] for _, cells in read_rows(page).values()} == {"connect"}
    # What else there is to be chosen stays.
    expect(choice.locator("option")).to_have_text(["any filter", *options])
    page.locator("[data-call]").first.click()
    page.get_by_role("region", name="The call").get_by_role("button", name="Network").click()
    page.get_by_role("button", name="Tree").click()
    by_thread = Counter(row["tid"] for row in _calls() if row["name"] == "connect")
    for tid, n in by_thread.items():
        cells = page.locator(f"[data-tree-thread='{tid}'] [role=gridcell]")
        expect(cells.nth(1)).to_contain_text(re.compile(rf"^{n}\b"))
    page.get_by_role("button", name="By place").click()
    expect(page.locator("[data-places-calls]")).to_have_attribute("data-places-calls", str(own["Network"]))
    # In other views lanes have all calls.
    with page.expect_request(lambda request: "/calls/lanes" in request.url and "filter" not in request.url):
        page.keyboard.press("1")


def test_what_was_done_to_calls_is_marked(viewer: Viewer) -> None:
    """In the table and the tree, by a word that has a name, and in full in the call that is opened."""
    page = viewer.open("calls", view="calls", process=0)
    number = next(index for index, row in enumerate(_calls()) if row["injected"] and row["injected"].count(",") == 3)
    marks = "(INJECTED) (DELAYED) (SIGNAL)"
    told = "a result, instead of making it; a delay before it; a delay behind it; a signal as it began"
    name = f"Injected: {told}"
    row = show_row(page, number)
    expect(row.get_by_role("img", name=name)).to_have_text(marks)
    row.click()
    expect(page.locator("[data-open-call] [data-injected]")).to_have_text(told)
    plain = next(index for index, row in enumerate(_calls()) if not row["injected"])
    expect(show_row(page, plain).get_by_role("img")).to_have_count(0)
    tid = _calls()[number]["tid"]
    place = [index for index, row in enumerate(_calls()) if row["tid"] == tid].index(number)
    assert place < 40
    viewer.go("calls", view="calls", process=0, calls="tree", threads=tid)
    tree = page.get_by_role("treegrid", name="Tree of calls")
    tree.focus()
    for _ in range(place + 1):
        page.keyboard.press("ArrowDown")
    expect(page.locator(f"[data-tree-call='{number}']").get_by_role("img", name=name)).to_have_text(marks)
    # Those of one name together have what was done to any of them.
    page.get_by_label("Those of one name together").check()
    like = page.locator("[data-depth='1']").filter(has_text=_calls()[number]["name"])
    expect(like.get_by_role("img", name=name)).to_have_text(marks)


def test_a_link_shows_the_same_calls(viewer: Viewer, open_viewer: OpenViewer) -> None:
    page = viewer.open("calls", view="calls", process=0, calls_name="read", calls_sort="duration", calls_down="1")
    longest = max(
        (number for number, row in enumerate(_calls()) if row["name"] == "read"),
        key=lambda number: (_calls()[number]["duration_ns"] or -1, -number),
    )
    expect(page.locator("[data-call]").first).to_have_attribute("data-call", str(longest))
    page.locator("[data-call]").nth(6).click()
    page.get_by_label("Search calls").fill("etc")
    viewer.wait_for_state(calls_text="etc")
    number = _table(viewer).get_attribute("aria-rowcount")
    other = open_viewer()
    other.page.goto(page.url)
    other.wait_for_counts()
    expect(_table(other)).to_have_attribute("aria-rowcount", _rows_with(viewer))
    assert number is not None
    expect(other.page.get_by_label("Search calls")).to_have_value("etc")
    assert other.state() == viewer.state()


def _rows_with(viewer: Viewer) -> str:
    """How many rows there are when what was asked for last is there."""
    wanted = [row for row in _calls() if row["name"] == "read" and "/etc/passwd" in row["arguments"]]
    expect(_table(viewer)).to_have_attribute("aria-rowcount", str(len(wanted) + 1))
    return str(len(wanted) + 1)
