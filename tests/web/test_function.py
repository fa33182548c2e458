"""The view of one function: its control flow laid out without overlaps, and in time."""

from __future__ import annotations

import itertools
import json
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from tests.web.limits import assert_within
from tests.web.traces import find_trace
from tests.web.viewer import Viewer

GEOMETRY = "[data-flow-geometry]"


@cache
def _graph(name: str) -> ProcessGraph:
    return ProcessGraph(Trace(find_trace(name)), 0)


def _show(viewer: Viewer, trace: str, function: int) -> dict[str, Any]:
    """Show a function of a trace that is open; gives where its boxes and edges are."""
    viewer.go(trace, view="function", select=f"f{function}")
    viewer.page.locator(f"[data-function='{function}'] {GEOMETRY}").wait_for(state="attached")
    found: dict[str, Any] = json.loads(viewer.dataset(GEOMETRY)["flowGeometry"])
    return found


def _functions(trace: str) -> list[int]:
    """Some of all sizes, and the largest that is not enormous."""
    graph = _graph(trace)
    sizes = graph.first_block[1:] - graph.first_block[:-1]
    by_size = sorted(
        (function for function in range(graph.n_functions) if sizes[function] <= 400), key=lambda f: sizes[f]
    )
    return [by_size[len(by_size) * part // 4] for part in (1, 2, 3)] + [by_size[-1]]


@pytest.mark.parametrize("trace", ["gzip", "shapes-full", "small"])
def test_functions_are_laid_out_with_the_edges_of_the_trace(viewer: Viewer, trace: str) -> None:
    viewer.open(trace, view="function")
    for function in _functions(trace):
        shown = _show(viewer, trace, function)
        _check_boxes(trace, function, shown)
        _check_edges(trace, function, shown)


def _check_boxes(trace: str, function: int, shown: dict[str, Any]) -> None:
    """No box lies over another one, and no edge leads through one."""
    boxes = shown["boxes"]
    graph = _graph(trace)
    first, last = int(graph.first_block[function]), int(graph.first_block[function + 1])
    assert sorted(box["block"] for box in boxes) == list(range(first, last))
    for index, a in enumerate(boxes):
        assert a["x"] >= 0 and a["y"] >= 0
        assert a["x"] + a["width"] <= shown["width"] and a["y"] + a["height"] <= shown["height"]
        for b in boxes[index + 1 :]:
            assert (
                a["x"] + a["width"] <= b["x"]
                or b["x"] + b["width"] <= a["x"]
                or a["y"] + a["height"] <= b["y"]
                or b["y"] + b["height"] <= a["y"]
            ), (a, b)
    for edge in shown["edges"]:
        points = list(zip(edge["points"][::2], edge["points"][1::2], strict=True))
        assert len(points) >= 2
        for box in boxes:
            for start, end in itertools.pairwise(points):
                assert not _leads_through(start, end, box), (edge, box)


def _leads_through(start: tuple[float, float], end: tuple[float, float], box: dict[str, float]) -> bool:
    """Whether a line has a piece inside of a box, its border excepted (Liang and Barsky, 1984)."""
    low, high = 0.0, 1.0
    margin = 0.5
    for axis, size in ((0, "width"), (1, "height")):
        near, far = box["xy"[axis]] + margin, box["xy"[axis]] + box[size] - margin
        way = end[axis] - start[axis]
        if way == 0:
            if not near < start[axis] < far:
                return False
            continue
        one, other = sorted(((near - start[axis]) / way, (far - start[axis]) / way))
        low, high = max(low, one), min(high, other)
    return low < high


def _check_edges(trace: str, function: int, shown: dict[str, Any]) -> None:
    graph = _graph(trace)
    inside = (
        (graph.source >= 0) & (graph.function[graph.source] == function) & (graph.function[graph.target] == function)
    )
    # A call that leads to the function itself leaves it.
    inside &= ~graph.arrays.is_kind("call", "indirect_call", "signal", "fault") & (graph.count().edges > 0)
    expected = set(zip(graph.source[inside].tolist(), graph.target[inside].tolist(), strict=True))
    assert {(edge["source"], edge["target"]) for edge in shown["edges"]} == expected


@pytest.mark.timing
def test_a_function_of_300_blocks_is_laid_out_in_time(viewer: Viewer) -> None:
    graph = _graph("small")
    sizes = graph.first_block[1:] - graph.first_block[:-1]
    function = min(range(graph.n_functions), key=lambda f: abs(int(sizes[f]) - 300))
    viewer.open("small", view="function")

    def take() -> float:
        """Milliseconds, after another function was shown."""
        _show(viewer, "small", 0 if function else 1)
        _show(viewer, "small", function)
        return float(viewer.dataset("[data-flow-canvas]")["layoutMs"])

    assert_within(200, take)


@pytest.mark.glance
def test_the_minimap_moves_the_view(viewer: Viewer) -> None:
    graph = _graph("small")
    sizes = graph.first_block[1:] - graph.first_block[:-1]
    viewer.open("small", view="function")
    _show(viewer, "small", int(min(range(graph.n_functions), key=lambda f: abs(int(sizes[f]) - 300))))
    for _ in range(4):
        viewer.page.get_by_role("button", name="Larger").click()
        viewer.wait_for_quiet()
    before = viewer.dataset("[data-flow-canvas]")
    box = viewer.page.locator("[data-minimap]").bounding_box()
    frame = viewer.page.locator("[data-minimap-frame]").bounding_box()
    assert box is not None and frame is not None
    viewer.page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
    viewer.page.mouse.down()
    viewer.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.8, steps=4)
    viewer.page.mouse.up()
    viewer.page.wait_for_function(
        "([x, y]) => { const data = document.querySelector('[data-flow-canvas]').dataset;"
        " return data.x !== x || data.y !== y; }",
        arg=[before["x"], before["y"]],
    )
    assert float(viewer.dataset("[data-flow-canvas]")["scale"]) == pytest.approx(float(before["scale"]))


def test_the_legend_lies_over_nothing(viewer: Viewer) -> None:
    page = viewer.open("shapes-full", view="function")
    picture = page.locator("[data-flow-canvas][data-scale]").bounding_box()
    legend = page.get_by_role("list", name="Lines").bounding_box()
    assert picture is not None and legend is not None
    assert picture["y"] + picture["height"] <= legend["y"] + 0.5


@pytest.mark.parametrize("trace", ["shapes-full", "gzip"])
def test_the_bar_says_how_many_blocks_in_the_usual_window(viewer: Viewer, trace: str) -> None:
    page = viewer.open(trace, view="function")
    bar = page.locator(".function-view .view-bar")
    expect(bar.locator(".quiet")).to_contain_text("edges")
    for part in (".name", ".quiet"):
        assert bar.locator(part).evaluate("(one) => one.scrollWidth <= one.clientWidth"), part
    note = bar.locator(".note")
    assert note.get_attribute("title") == note.inner_text()


def test_what_a_block_leads_to_is_told_in_single_lines(viewer: Viewer) -> None:
    graph = _graph("gzip")
    called = next(int(block) for block in graph.source[graph.callee >= 0] if block >= 0)
    page = viewer.open("gzip", view="listing", select=f"b{called}")
    rows = page.locator(".references li")
    expect(rows.filter(has_text="out of").first).to_be_visible()
    assert all(height < 25 for height in rows.evaluate_all("(rows) => rows.map((one) => one.offsetHeight)"))
