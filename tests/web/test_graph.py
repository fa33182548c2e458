"""The picture of the graph: all of it is there, what is clicked is what is meant, and colours say what was counted."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from playwright.sync_api import expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from tests.web.conftest import OpenViewer
from tests.web.graph_page import CANVAS, GraphPage
from tests.web.traces import find_trace
from tests.web.viewer import Viewer, parse_number

LAYOUTS = ("cylinder", "force", "blocks", "circle")
HEAT_TOP = (255, 245, 166)
"""The top of the ramp of heat (web/src/base/color.ts), as a screen shows it."""


@cache
def _graph(name: str) -> ProcessGraph:
    return ProcessGraph(Trace(find_trace(name)), 0)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_every_layout_is_in_the_frame_after_fit(viewer: Viewer, dimensions: int) -> None:
    page = viewer.open("shapes-counts", dimensions=dimensions, layout="circle")
    graph = GraphPage(viewer)
    for layout in LAYOUTS:
        viewer.go("shapes-counts", dimensions=dimensions, layout=layout)
        button = page.get_by_role("group", name="Layout").get_by_role("button", name=layout.title(), exact=True)
        expect(button).to_have_attribute("aria-pressed", "true")
        graph.wait_for_whole()
        graph.canvas.focus()
        page.keyboard.press("f")
        page.wait_for_function(
            "(selector) => Number(document.querySelector(selector).dataset.inFrame) >= 0.95", arg=CANVAS
        )
        assert graph.number("drawnNodes") >= _graph("shapes-counts").n_blocks


def test_a_change_of_the_layout_keeps_the_selection(viewer: Viewer) -> None:
    viewer.open("shapes-full", select="b9", layout="circle")
    graph = GraphPage(viewer)
    graph.wait_for_layout()
    for layout in ("blocks", "force", "cylinder"):
        group = viewer.page.get_by_role("group", name="Layout")
        group.get_by_role("button", name=layout.title(), exact=True).click()
        viewer.wait_for_state(**({"layout": layout} if layout != "cylinder" else {"select": "b9"}))
        graph.wait_for_layout()
        assert viewer.state()["select"] == "b9"
        graph.place_of_selected()
    # Back to one that was there: nothing is computed.
    viewer.page.evaluate(
        "() => { window.asked = 0; const post = Worker.prototype.postMessage;"
        " Worker.prototype.postMessage = function (...words) { window.asked++; post.apply(this, words); }; }"
    )
    group.get_by_role("button", name="Blocks", exact=True).click()
    viewer.wait_for_state(layout="blocks")
    graph.wait_for_layout()
    assert viewer.page.evaluate("() => window.asked") == 0


def test_what_is_selected_has_captions_of_who_calls_it_and_whom_it_calls(viewer: Viewer) -> None:
    of = _graph("shapes-full")
    source, target, *_ = of.links
    found = {
        function: (
            {of.names[caller] for caller in source[(target == function) & (source != function)].tolist()},
            {of.names[callee] for callee in target[(source == function) & (target != function)].tolist()},
        )
        for function in range(of.n_functions)
    }
    function, (callers, callees) = max(
        (
            (function, ends)
            for function, ends in found.items()
            if ends[0] and ends[1] and all(len(name) <= 34 for name in ends[0] | ends[1])
            if len(ends[0]) + len(ends[1]) <= 6
        ),
        key=lambda one: len(one[1][0]) + len(one[1][1]),
    )
    viewer.open("shapes-full", layout="circle", dimensions=2, select=f"f{function}")
    GraphPage(viewer).wait_for_whole()
    shown = viewer.dataset("[data-selected-place]")["captions"].split("\n")
    assert sorted(shown) == sorted([*(f"{name} →" for name in callers), *(f"→ {name}" for name in callees)])


@pytest.mark.glance
def test_what_is_clicked_is_selected_and_hovering_names_it(viewer: Viewer) -> None:
    of = _graph("shapes-full")
    executions = of.count().blocks
    # The hottest is drawn in front, so nothing can hide it.
    block = int(executions.argmax())
    viewer.open("shapes-full", layout="circle", dimensions=2, select=f"b{block}")
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    x, y = graph.place_of_selected()
    graph.canvas.focus()
    viewer.page.keyboard.press("Escape")
    expect(viewer.fact("executions")).to_have_count(0)
    graph.canvas.hover(position={"x": x, "y": y})
    tip = viewer.page.get_by_role("tooltip")
    expect(tip).to_contain_text(f"0x{int(of.app_pc[block]):x}")
    expect(tip).to_contain_text(of.names[int(of.function[block])])
    expect(tip).to_contain_text(f"{int(executions[block]):,}")
    graph.canvas.click(position={"x": x, "y": y})
    viewer.wait_for_state(select=f"b{block}")
    assert viewer.number("executions") == int(executions[block])


def test_the_hottest_block_has_the_top_colour_of_the_ramp(viewer: Viewer) -> None:
    of = _graph("shapes-full")
    block = int(of.count().blocks.argmax())
    viewer.open("shapes-full", layout="circle", dimensions=2, mode="heat", select=f"b{block}")
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    place = graph.place_of_selected()
    graph.canvas.focus()
    viewer.page.keyboard.press("Escape")
    expect(viewer.fact("executions")).to_have_count(0)
    viewer.wait_for_quiet()
    seen = graph.pixels(place, 4).reshape(-1, 3).astype(int)
    off = np.abs(seen - np.array(HEAT_TOP)).max(axis=1)
    assert off.min() <= 12, seen[off.argmin()]


def test_a_double_click_opens_the_function(viewer: Viewer) -> None:
    page = viewer.open("shapes-counts", select="b9", layout="circle")
    graph = GraphPage(viewer)
    graph.wait_for_layout()
    place = graph.place_of_selected()
    graph.canvas.dblclick(position={"x": place[0], "y": place[1]})
    expect(viewer.main("function")).to_be_visible()
    viewer.wait_for_state(view="function", select="b9")
    page.go_back()
    expect(viewer.main("graph")).to_be_visible()
    graph.wait_for_layout()
    box = graph.canvas.bounding_box()
    assert box is not None
    graph.canvas.dblclick(position={"x": box["width"] - 20, "y": box["height"] / 2})
    expect(viewer.fact("executions")).to_have_count(0)
    expect(viewer.main("graph")).to_be_visible()


@pytest.mark.glance
def test_the_table_beside_the_picture_has_the_hottest(viewer: Viewer) -> None:
    of = _graph("small")
    executions = of.count().blocks
    page = viewer.open("small")
    GraphPage(viewer).wait_for_layout()
    page.get_by_text(re.compile(r"^Table of the \d+ hottest$")).click()
    cells = page.get_by_role("region", name="The hottest nodes of the picture").locator("tbody tr")
    shown = cells.evaluate_all("(rows) => rows.map((row) => [row.cells[0].innerText, row.cells[3].innerText])")
    hottest = np.lexsort((np.arange(of.n_blocks), -executions))[: len(shown)]
    assert shown == [[f"0x{int(of.app_pc[block]):x}", f"{int(executions[block]):,}"] for block in hottest]


@pytest.mark.parametrize("name", ["shapes-full", "small"])
def test_conditional_branches_are_told_apart_as_python_does(viewer: Viewer, name: str) -> None:
    of = _graph(name)
    counts, words = of.count(), of.arrays
    ways: dict[int, set[str]] = {}
    for kind in ("taken", "not_taken"):
        for source in of.source[words.is_kind(kind) & (counts.edges > 0)].tolist():
            ways.setdefault(source, set()).add(kind)
    is_conditional = [kind == "conditional" for kind in _exit_kinds(name)]
    found = [ways.get(block, set()) for block in range(of.n_blocks) if is_conditional[block]]
    expected = {
        "always taken": sum(one == {"taken"} for one in found),
        "never taken": sum(one == {"not_taken"} for one in found),
        "both ways": sum(len(one) == 2 for one in found),
        "no condition, dim": of.n_blocks - len(found),
    }
    assert all(expected.values())
    page = viewer.open(name, mode="conditionals", layout="circle")
    GraphPage(viewer).wait_for_layout()
    swatches = page.get_by_role("region", name="Legend").get_by_role("list").first.get_by_role("listitem")
    expect(swatches).to_have_count(len(expected))
    shown = swatches.evaluate_all(
        "(all) => all.map((one) => [one.querySelector('.name').innerText, one.querySelector('.count').innerText])"
    )
    assert {label: parse_number(count) for label, count in shown} == expected


def _exit_kinds(name: str) -> list[str]:
    """How each block ends, by its index in the graph."""
    table = Trace(find_trace(name)).blocks.select(["block_id", "exit_kind"])
    by_id = dict(zip(table["block_id"].to_pylist(), table["exit_kind"].to_pylist(), strict=True))
    return [by_id[block] for block in _graph(name).block_id.tolist()]


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_moves_by_itself_where_that_is_not_wanted(open_viewer: OpenViewer, motion: str) -> None:
    viewer = open_viewer(reduced_motion=motion)
    page = viewer.open("shapes-counts", layout="circle")
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    page.evaluate(
        "(selector) => { const canvas = document.querySelector(selector); window.seen = new Set();"
        " new MutationObserver(() => window.seen.add(canvas.dataset.quality))"
        ".observe(canvas, { attributes: true, attributeFilter: ['data-quality'] }); }",
        CANVAS,
    )
    page.get_by_role("group", name="Layout").get_by_role("button", name="Cylinder").click()
    viewer.page.wait_for_url(re.compile(r"^(?!.*layout=)"))
    graph.wait_for_whole()
    seen = set(page.evaluate("() => [...window.seen]"))
    assert ("moving" in seen) == (motion == "no-preference"), seen
    frames = graph.number("frames")
    viewer.page.wait_for_timeout(700)
    assert graph.number("frames") <= frames + 1, "a picture at rest is not drawn again"
    if motion == "reduce":
        moving = page.evaluate(
            "() => [...document.querySelectorAll('*')].filter((one) => { const style = getComputedStyle(one);"
            " return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none'; }).length"
        )
        assert moving == 0
