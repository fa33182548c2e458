"""Images, functions and loops folded into one node each: their names, their counts, and the way to them and back."""

from __future__ import annotations

from functools import cache

import pytest
from playwright.sync_api import expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from tests.web.graph_page import CANVAS, GraphPage
from tests.web.traces import find_trace
from tests.web.viewer import Viewer, parse_number

TRACE = "shapes-counts"


@cache
def _graph() -> ProcessGraph:
    return ProcessGraph(Trace(find_trace(TRACE)), 0)


def _tooltip_of_selected(viewer: Viewer, graph: GraphPage) -> list[str]:
    x, y = graph.place_of_selected()
    graph.canvas.hover(position={"x": x, "y": y})
    tip = viewer.page.get_by_role("tooltip")
    expect(tip).to_be_visible()
    return [tip.locator("strong").inner_text(), tip.locator("span").first.inner_text()]


def test_folded_images_tell_the_sums_of_their_functions(viewer: Viewer) -> None:
    of = _graph()
    counts = of.count()
    instructions, entries = of.sum_functions(counts), of.count_entries(counts)
    images = [int(image) for image in of.image]
    libc = max(image for image in set(images) if "libc" in of.images[image]["path"])
    inside = [function for function, image in enumerate(images) if image == libc]
    chosen = inside[len(inside) // 2]
    folded = ",".join(str(image) for image in sorted(set(images)))
    page = viewer.open(TRACE, fold_images=folded, select=f"f{chosen}", layout="circle")
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    assert graph.number("drawnNodes") == len(set(images))
    n_blocks = sum(int(of.first_block[one + 1] - of.first_block[one]) for one in inside)
    name, words = _tooltip_of_selected(viewer, graph)
    assert name == "libc.so.6"
    assert words == (
        f"entered {int(entries[inside].sum()):,} times, {n_blocks:,} blocks,"
        f" {int(instructions[inside].sum()):,} instructions"
    )
    # A click on the node of the image selects the function that stands for it, which is drawn as the same node.
    x, y = graph.place_of_selected()
    graph.canvas.click(position={"x": x, "y": y})
    viewer.wait_for_state(select=f"f{inside[0]}")
    assert graph.place_of_selected() == (x, y)
    assert viewer.number("instructions") == int(instructions[inside[0]])
    page.get_by_role("list", name="Filters").get_by_role("button", name="folded: libc.so.6").click()
    page.wait_for_function(
        "([canvas, n]) => document.querySelector(canvas).dataset.drawnNodes > n", arg=[CANVAS, len(set(images))]
    )
    assert viewer.state()["select"] == f"f{inside[0]}"


@pytest.mark.glance
def test_a_folded_loop_tells_of_its_blocks(viewer: Viewer) -> None:
    of = _graph()
    executions = of.count().blocks
    function = of.names.index("work")
    blocks = range(int(of.first_block[function]), int(of.first_block[function + 1]))
    hottest = max(blocks, key=lambda block: int(executions[block]))
    viewer.open(TRACE, fold_loops=1, select=f"b{hottest}", layout="circle")
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    name, words = _tooltip_of_selected(viewer, graph)
    assert name.startswith("work")
    assert words.startswith(f"loop, its hottest block executed {int(executions[hottest]):,} times, ")
    n_blocks, instructions = (parse_number(part) for part in words.split(", ")[2:])
    loop = [block for block in blocks if executions[block] >= executions[hottest] // 2]
    assert 1 < n_blocks <= len(blocks)
    assert instructions >= sum(int(executions[block] * of.n_instructions[block]) for block in loop)


def test_a_node_without_edges_stands_on_the_ground(viewer: Viewer) -> None:
    images = sorted({int(image) for image in _graph().image})
    page = viewer.open(TRACE, fold_images=images[0], hide_images=",".join(map(str, images[1:])), layout="circle")
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    assert (graph.number("drawnNodes"), graph.number("drawnEdges")) == (1, 0)
    ground = page.locator(".graph-box").evaluate(
        "(box) => getComputedStyle(box).getPropertyValue('--ground').match(/[0-9a-f]{2}/gi)"
        ".map((one) => parseInt(one, 16))"
    )
    assert graph.pixels((60, 200), 1)[0, 0].tolist() == ground
