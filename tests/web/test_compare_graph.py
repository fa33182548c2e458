"""The graph of two processes that are compared: as one picture, and as two beside each other."""

from __future__ import annotations

import xml.etree.ElementTree

import pytest
from playwright.sync_api import Page, expect

from tests.web.compare_page import look, search
from tests.web.conftest import OpenViewer, Serve
from tests.web.graph_page import GraphPage
from tests.web.test_export import SVG, content_of, count_colors, elements, open_dialog, pixels_of, take

FIRST, SECOND = "compared-first", "compared-second"


def read_sides(page: Page, name: str) -> tuple[str | None, str | None]:
    """What both pictures tell of themselves, when they are at rest."""
    page.wait_for_function(
        "() => { const all = [...document.querySelectorAll('.compare-pictures canvas.graph-canvas')];"
        " return all.length === 2 && all.every(({ dataset }) => dataset.layoutState === 'final'"
        " && dataset.quality === 'whole'); }"
    )
    a, b = page.locator(f".compare-pictures [data-{name}]").evaluate_all(
        "(all, name) => all.map((one) => one.getAttribute(`data-${name}`))", name
    )
    return a, b


def read_places(page: Page) -> list[list[float]]:
    """Where the selected node is in both pictures."""
    return [[float(text or "nan") for text in read_sides(page, name)] for name in ("x", "y")]


def test_the_graph_of_both_is_drawn_and_selected(open_viewer: OpenViewer, serve: Serve) -> None:
    compared = open_viewer(serve(FIRST, SECOND))
    page = look(compared, FIRST, SECOND, "graph", layout="circle", dimensions=2)
    graph = GraphPage(compared)
    graph.wait_for_whole()
    assert page.get_by_role("application", name="Graph of both processes").is_visible()
    search(page, "only_second")
    page.locator(".compare-functions [role=option]").first.click()
    graph.wait_for_whole()
    x, y = graph.place_of_selected()
    graph.canvas.hover(position={"x": x, "y": y})
    tip = page.get_by_role("tooltip")
    expect(tip.locator("strong")).to_have_text("only_second")
    expect(tip).to_contain_text("only in B")
    graph.canvas.dblclick(position={"x": x, "y": y})
    compared.wait_for_state(compare="function")
    expect(page.get_by_role("region", name="The function in A")).to_contain_text("A did not run this function.")


def test_two_pictures_have_one_camera_and_one_selection(open_viewer: OpenViewer, serve: Serve) -> None:
    compared = open_viewer(serve(FIRST, SECOND))
    page = look(compared, FIRST, SECOND, "graph", layout="circle", dimensions=2)
    search(page, "")
    page.get_by_role("button", name="Side by side", exact=True).click()
    compared.wait_for_state(compare_beside=1)
    search(page, "common")
    page.locator(".compare-functions [role=option]").first.click()
    page.wait_for_function("() => document.querySelectorAll('.compare-pictures [data-x]').length === 2")
    first = read_places(page)
    left = page.get_by_role("application", name="Graph of A")
    right = page.get_by_role("application", name="Graph of B")
    left.focus()
    for _ in range(12):
        page.keyboard.press("+")
    # So near all is drawn by its blocks: of each side those that it ran.
    told = compared.server.get("/api/traces/0/processes/0/compared/1/0").json()["blocks"]
    both = told["same"] + told["differ"]
    assert [int(n or 0) for n in read_sides(page, "drawn-nodes")] == [
        told["only_in_a"] + both,
        told["only_in_b"] + both,
    ]
    near = read_places(page)
    assert near != first
    for xs_or_ys in (first, near):
        assert all(a == b for a, b in xs_or_ys)
    # While the pointer moves one the other goes with it, before the address has where they came to.
    box = right.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 400)
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(box["x"] + 340, box["y"] + 430, steps=2)
    assert [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(near, read_places(page), strict=True)] == [
        pytest.approx([40, 40], abs=0.3),
        pytest.approx([30, 30], abs=0.3),
    ]
    page.mouse.up()
    page.keyboard.up("Shift")
    right.focus()
    page.keyboard.press("f")
    page.wait_for_function(
        "(y) => [...document.querySelectorAll('.compare-pictures [data-y]')].every(({ dataset }) => dataset.y === y)",
        arg=f"{first[1][0]:.1f}",
    )
    assert read_places(page) == first
    # What is clicked in one is selected in both.
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelectorAll('.compare-pictures [data-x]').length === 0")
    right.click(position={"x": first[0][1], "y": first[1][1]})
    page.wait_for_function("() => document.querySelectorAll('.compare-pictures [data-x]').length === 2")
    assert read_places(page) == first
    # What only B ran is not in A's picture, and is pointed at in B's.
    search(page, "only_second")
    page.locator(".compare-functions [role=option]").first.click()
    page.wait_for_function("() => document.querySelectorAll('.compare-pictures [data-x]').length === 1")
    place = compared.dataset(".compare-pictures [data-side=b] [data-selected-place]")
    assert "x" not in compared.dataset(".compare-pictures [data-side=a] [data-selected-place]")
    right.hover(position={"x": float(place["x"]), "y": float(place["y"])})
    expect(page.get_by_role("tooltip").locator("strong")).to_have_text("only_second")
    right.focus()
    page.keyboard.press("s")
    expect(page.get_by_role("application", name="Graph of both processes")).to_be_visible()


@pytest.mark.glance
@pytest.mark.long
def test_two_pictures_are_one_file(open_viewer: OpenViewer, serve: Serve) -> None:
    """A's at the left, B's at the right: what only one of them ran is in its half alone."""
    compared = open_viewer(serve(FIRST, SECOND))
    page = look(compared, FIRST, SECOND, "graph", layout="circle", dimensions=2, compare_beside=1)
    nodes = [int(text or -1) for text in read_sides(page, "drawn-nodes")]
    box = page.locator(".compare-pictures canvas.graph-canvas").first.bounding_box()
    assert box is not None
    dialog = open_dialog(page)
    root = xml.etree.ElementTree.fromstring(content_of(take(page, dialog, "SVG")).decode())
    assert float(root.attrib["width"]) == pytest.approx(2 * box["width"], abs=2)
    halves = [one for one in root if one.tag == f"{SVG}svg"]
    assert [len(elements(half, "circle", "node")) for half in halves] == nodes
    assert [float(half.attrib["x"]) for half in halves] == pytest.approx([0, box["width"]], abs=1)
    ids = [one.attrib["id"] for one in root.iter() if "id" in one.attrib]
    assert len(ids) == len(set(ids))
    dialog.get_by_label("Scale").select_option("1")
    pixels = pixels_of(compared, content_of(take(page, dialog, "PNG")))
    # What is said around it may have become less meanwhile.
    box = page.locator(".compare-pictures canvas.graph-canvas").first.bounding_box()
    assert box is not None
    assert pixels.shape[:2] == (round(box["height"]), 2 * round(box["width"]))
    width = pixels.shape[1]
    for half in (pixels[:, : width // 2], pixels[:, width // 2 :]):
        assert count_colors(half) > 50
