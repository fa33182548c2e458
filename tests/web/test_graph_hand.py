"""The graph under the hand: what pointing shows, what is dragged, and how the picture is drawn."""

from __future__ import annotations

import re
import xml.etree.ElementTree
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from playwright.sync_api import expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from tests.web.conftest import OpenViewer
from tests.web.graph_page import CANVAS, GraphPage
from tests.web.touch import Fingers
from tests.web.traces import find_trace
from tests.web.viewer import Viewer, parse_number

TRACE: Final = "shapes-full"
SVG: Final = "{http://www.w3.org/2000/svg}"
COUNT_ASKED: Final = """() => {
  window.asked = 0;
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (...words) { window.asked++; post.apply(this, words); };
}"""


@pytest.fixture(autouse=True)
def _small(viewer: Viewer) -> Iterator[None]:
    """A small picture is drawn quickly."""
    usual = viewer.page.viewport_size
    assert usual is not None
    viewer.page.set_viewport_size({"width": 1100, "height": 700})
    yield
    viewer.page.set_viewport_size(usual)


@cache
def _graph() -> ProcessGraph:
    return ProcessGraph(Trace(find_trace(TRACE)), 0)


def _hottest() -> int:
    """The block that was executed most: it is drawn in front, so nothing hides it."""
    return int(_graph().count().blocks.argmax())


def _looping() -> int:
    """The busiest of the blocks that lead to themselves."""
    of = _graph()
    taken = np.where(of.source == of.target, of.count().edges, 0)
    assert taken.max() > 1
    return int(of.source[taken.argmax()])


def _open(viewer: Viewer, block: int, **words: object) -> GraphPage:
    viewer.open(TRACE, **({"layout": "force", "dimensions": 2, "select": f"b{block}"} | words))
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    graph.place_of_selected()
    return graph


def _take_svg(viewer: Viewer) -> xml.etree.ElementTree.Element:
    """The picture as SVG: where everything is."""
    page = viewer.page
    page.keyboard.press("e")
    dialog = page.get_by_role("dialog", name="Export")
    with page.expect_download() as found:
        dialog.get_by_role("button", name="SVG", exact=True).click()
    content = Path(found.value.path()).read_text()
    dialog.get_by_role("button", name="Close").click()
    return xml.etree.ElementTree.fromstring(content)


def _elements(root: xml.etree.ElementTree.Element, name: str, kind: str) -> list[xml.etree.ElementTree.Element]:
    return [one for one in root.iter(f"{SVG}{name}") if one.get("class") == kind]


def _slide(viewer: Viewer, name: str, value: float) -> None:
    viewer.page.get_by_role("dialog", name="Look").get_by_role("slider", name=name).fill(str(value))


def _wait_for_moved(viewer: Viewer, n: int) -> None:
    viewer.wait_for_data(CANVAS, "moved", (str(n),))


def _particle_frames(viewer: Viewer) -> int:
    return int(viewer.dataset(CANVAS).get("particleFrames", "0"))


def _wait_for_particles(viewer: Viewer, frames: int) -> None:
    viewer.page.wait_for_function(
        "([selector, n]) => Number(document.querySelector(selector).dataset.particleFrames ?? 0) >= n",
        arg=[CANVAS, frames],
    )


def test_pointing_moves_particles_along_edges_and_nothing_moves_without(viewer: Viewer) -> None:
    block = _hottest()
    graph = _open(viewer, block)
    x, y = graph.place_of_selected()
    before = graph.pixels((x, y), 60).astype(int)
    graph.canvas.hover(position={"x": x, "y": y})
    _wait_for_particles(viewer, 10)
    data = viewer.dataset(CANVAS)
    degree = int(((_graph().source == block) | (_graph().target == block)).sum())
    assert degree <= int(data["particles"]) <= 5 * degree
    # What is no neighbour has faded: around it there is less light than there was.
    assert graph.pixels((x, y), 60).astype(int).sum() < before.sum()
    frames = graph.number("frames")
    _wait_for_particles(viewer, _particle_frames(viewer) + 5)
    assert graph.number("frames") <= frames + 1, "the picture itself is not drawn anew for them"
    viewer.page.mouse.move(0, 0)
    viewer.wait_for_data(CANVAS, "particles", ("0",))
    seen = _particle_frames(viewer)
    viewer.page.wait_for_timeout(300)
    assert _particle_frames(viewer) == seen
    # The same by the keyboard: o points at what is selected.
    graph.canvas.focus()
    viewer.page.keyboard.press("o")
    expect(viewer.page.get_by_role("tooltip")).to_contain_text(f"0x{int(_graph().app_pc[block]):x}")
    _wait_for_particles(viewer, seen + 3)
    # Without them by the setting.
    viewer.page.keyboard.press("o")
    viewer.wait_for_data(CANVAS, "particles", ("0",))
    viewer.page.get_by_role("button", name="Look", exact=True).click()
    viewer.page.get_by_role("checkbox", name="Particles").uncheck()
    viewer.page.keyboard.press("Escape")
    _check_that_none_move(viewer, graph)


def test_no_particles_where_little_movement_is_asked_for(open_viewer: OpenViewer) -> None:
    viewer = open_viewer(reduced_motion="reduce", viewport={"width": 1100, "height": 700})
    _check_that_none_move(viewer, _open(viewer, _hottest()))


def _check_that_none_move(viewer: Viewer, graph: GraphPage) -> None:
    """What is selected is pointed at, and that is drawn, but once."""
    seen = _particle_frames(viewer)
    graph.canvas.focus()
    frames = graph.number("frames")
    viewer.page.keyboard.press("o")
    expect(viewer.page.get_by_role("tooltip")).to_be_visible()
    viewer.page.wait_for_function(
        "([selector, n]) => Number(document.querySelector(selector).dataset.frames) > n", arg=[CANVAS, frames]
    )
    viewer.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert _particle_frames(viewer) == seen


def _center(root: xml.etree.ElementTree.Element, address: str) -> tuple[float, float]:
    """Where the node is that the title of one tells of."""
    for node in _elements(root, "circle", "node"):
        if re.search(rf"\b{address}\b", node.findtext(f"{SVG}title") or ""):
            return float(node.attrib["cx"]), float(node.attrib["cy"])
    raise AssertionError(f"{address} is not in the picture")


def _edges_at(root: xml.etree.ElementTree.Element, place: tuple[float, float]) -> int:
    """How many edges begin or end within a pixel of a place."""
    found = 0
    for edge in _elements(root, "path", "edge"):
        numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", edge.attrib["d"])]
        ends = (numbers[:2], numbers[-2:])
        found += any(np.hypot(x - place[0], y - place[1]) <= 1 for x, y in ends)
    return found


def test_a_node_is_dragged_with_its_edges_and_stays_there(viewer: Viewer) -> None:
    block = _hottest()
    address = f"0x{int(_graph().app_pc[block]):x}"
    graph = _open(viewer, block)
    page = viewer.page
    page.evaluate(COUNT_ASKED)
    x, y = graph.place_of_selected()
    box = graph.canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + x + 30, box["y"] + y - 20)
    page.mouse.move(box["x"] + x + 90, box["y"] + y - 60)
    page.mouse.up()
    _wait_for_moved(viewer, 1)
    page.mouse.move(0, 0)
    graph.wait_for_whole()
    assert graph.place_of_selected() == pytest.approx((x + 90, y - 60), abs=1)
    assert "camera" not in viewer.state(), "the picture stayed"
    assert page.evaluate("() => window.asked") == 0
    moved = _take_svg(viewer)
    at = _center(moved, address)
    assert at == pytest.approx((x + 90, y - 60), abs=1)
    assert _edges_at(moved, at) > 1
    # In another layout it is where that has it; back in this one it is where it was put.
    group = page.get_by_role("group", name="Layout")
    group.get_by_role("button", name="Circle", exact=True).click()
    viewer.wait_for_state(layout="circle")
    graph.wait_for_whole()
    _wait_for_moved(viewer, 0)
    group.get_by_role("button", name="Force", exact=True).click()
    viewer.wait_for_state(layout="force")
    graph.wait_for_whole()
    _wait_for_moved(viewer, 1)
    viewer.go(TRACE, layout="force", dimensions=2, select=f"b{block}")
    viewer.page.wait_for_function("() => document.querySelector('[data-selected-place]')?.dataset.x !== undefined")
    graph.wait_for_whole()
    there = graph.place_of_selected()
    graph.canvas.focus()
    page.keyboard.press("Control+z")
    _wait_for_moved(viewer, 0)
    graph.wait_for_whole()
    back = graph.place_of_selected()
    # All of the picture was fitted into the frame again, so lengths may be a little shorter.
    assert (there[0] - back[0], there[1] - back[1]) == pytest.approx((90, -60), rel=0.15)


@pytest.mark.glance
@pytest.mark.long
def test_what_is_selected_is_moved_by_keys_and_released(viewer: Viewer) -> None:
    function = int(_graph().function[_hottest()])
    first, last = _graph().first_block[function : function + 2].tolist()
    graph = _open(viewer, _hottest(), select=f"f{function}")
    page = viewer.page
    x, y = graph.place_of_selected()
    graph.canvas.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(f"Control+{key}")
    # A function goes with its blocks.
    _wait_for_moved(viewer, last - first + 1)
    graph.wait_for_whole()
    assert graph.place_of_selected() == pytest.approx((x + 24, y + 12), abs=1)
    page.keyboard.press("r")
    _wait_for_moved(viewer, 0)
    graph.wait_for_whole()
    assert graph.place_of_selected() == pytest.approx((x, y), abs=1)
    page.keyboard.press("Control+ArrowUp")
    page.get_by_role("button", name="Look", exact=True).click()
    look = page.get_by_role("dialog", name="Look")
    expect(look.locator("span[role=status]")).to_have_text(f"{last - first + 1} nodes moved")
    look.get_by_role("button", name="Release").click()
    expect(look.locator("span[role=status]")).to_have_text("0 nodes moved")
    look.get_by_role("button", name="Undo").click()
    _wait_for_moved(viewer, last - first + 1)


def test_a_finger_drags_a_node(open_viewer: OpenViewer) -> None:
    viewer = open_viewer(has_touch=True, viewport={"width": 1100, "height": 700})
    graph = _open(viewer, _hottest())
    x, y = graph.place_of_selected()
    Fingers(viewer, graph.canvas).move(((x, y), (x + 60, y + 30)))
    _wait_for_moved(viewer, 1)
    graph.wait_for_whole()
    assert graph.place_of_selected() == pytest.approx((x + 60, y + 30), abs=1)
    assert "camera" not in viewer.state()


def test_sliders_change_what_is_drawn_and_are_kept(viewer: Viewer) -> None:
    graph = _open(viewer, _looping())
    page = viewer.page

    def measure() -> dict[str, float]:
        root = _take_svg(viewer)
        edges, nodes = _elements(root, "path", "edge"), _elements(root, "circle", "node")
        texts = [one for one in root.iter(f"{SVG}text") if one.get("font-family") == "monospace"]
        widths = [float(edge.attrib["stroke-width"]) for edge in edges]
        assert min(widths) >= 1
        return {
            "edges": sum(float(edge.attrib["stroke-opacity"]) for edge in edges),
            "nodes": sum(float(node.attrib["fill-opacity"]) for node in nodes) / len(nodes),
            "widest": max(widths),
            "sizes": sum(float(node.attrib["r"]) for node in nodes),
            "letters": max(float(text.attrib["font-size"]) for text in texts),
        }

    first = measure()
    assert (first["widest"], first["letters"]) == (3, 12)
    page.get_by_role("button", name="Look", exact=True).click()
    for name, value in (("edges are", 0.5), ("nodes are", 0.4), ("counts change", 2), ("labels", 18)):
        _slide(viewer, re.compile(name), value)  # type: ignore[arg-type]
    graph.wait_for_whole()
    then = measure()
    assert then["edges"] < 0.6 * first["edges"]
    assert then["nodes"] == pytest.approx(0.4 * first["nodes"], rel=0.01)
    assert then["widest"] == 5
    assert then["sizes"] > first["sizes"]
    assert then["letters"] == 18
    page.reload()
    viewer.wait_for_counts()
    page.get_by_role("button", name="Settings").click()
    sliders = page.get_by_role("dialog", name="Settings").get_by_role("slider")
    assert [float(one.input_value()) for one in sliders.all()] == [0.5, 0.4, 2, 18]
    page.get_by_role("button", name="As at first").click()
    assert [float(one.input_value()) for one in sliders.all()] == [1, 1, 1, 12]


def _check_loops(viewer: Viewer, block: int, place: tuple[float, float]) -> float:
    """Blocks that lead to themselves have a loop in the SVG, `block` at its place; gives its node's radius."""
    root = _take_svg(viewer)
    of = _graph()
    # Functions whose blocks would lie too near to each other are a node each, and may call themselves.
    told = [node.findtext(f"{SVG}title") or "" for node in _elements(root, "circle", "node")]
    functions = {text.partition("\n")[0] for text in told if " entered " in text}
    drawn = {int(text.split("\n")[1].split()[0], 16) for text in told if " executed " in text}
    # Arcs are of loops only.
    arcs = [one for one in _elements(root, "path", "edge") if "A" in one.attrib["d"]]
    loops = [one for one in arcs if (one.findtext(f"{SVG}title") or "").split(" → ")[0] not in functions]
    is_loop = (of.source == of.target) & (of.count().edges > 0)
    assert len(loops) == sum(int(of.app_pc[source]) in drawn for source in of.source[is_loop].tolist()) > 0
    begins = [[float(number) for number in re.findall(r"[\d.]+", one.attrib["d"])[:2]] for one in loops]
    radius = next(
        float(node.attrib["r"])
        for node in _elements(root, "circle", "node")
        if re.search(rf"\b0x{int(of.app_pc[block]):x}\b", node.findtext(f"{SVG}title") or "")
    )
    own = [loop for loop, (x, y) in zip(loops, begins, strict=True) if np.hypot(x - place[0], y - place[1]) <= radius]
    names = [set((one.findtext(f"{SVG}title") or "").split(" → ")) for one in own]
    assert any(len(name) == 1 for name in names), names
    return radius


def test_a_block_that_leads_to_itself_has_a_loop_in_space(viewer: Viewer) -> None:
    block = _looping()
    graph = _open(viewer, block, dimensions=3, layout="blocks")
    _check_loops(viewer, block, graph.place_of_selected())


def test_what_is_selected_is_larger_and_its_id_image_count_and_code_are_told(viewer: Viewer) -> None:
    block = _looping()
    of = _graph()
    graph = _open(viewer, block, layout="blocks")
    details = viewer.page.get_by_role("region", name="Details")
    expect(viewer.fact("block-id")).to_have_text(str(int(of.block_id[block])))
    assert viewer.number("executions") == int(of.count().blocks[block])
    image = of.images[int(of.image[int(of.function[block])])]
    expect(details).to_contain_text(Path(image["path"]).name)
    code = details.get_by_role("list", name="Code of the block").get_by_role("listitem")
    expect(code).to_have_count(int(of.n_instructions[block]))
    assert all(code.all_text_contents())
    # What pointing shows, in words: the edges with their counts, its own loop among them.
    leads = details.get_by_role("list", name="Block leads to").get_by_role("button")
    out = np.flatnonzero((of.source == block) & (of.target >= 0))
    expect(leads).to_have_count(len(out))
    taken = int(of.count().edges[out[of.target[out] == block]].sum())
    assert parse_number(leads.filter(has_text="itself").locator(".count").inner_text()) == taken
    place = graph.place_of_selected()
    chosen = _check_loops(viewer, block, place)
    graph.canvas.focus()
    viewer.page.keyboard.press("Escape")
    expect(viewer.fact("executions")).to_have_count(0)
    graph.wait_for_whole()
    assert chosen > 1.5 * _check_loops(viewer, block, place)
