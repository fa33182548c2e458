"""The page as a whole: it loads little, asks nobody else, and says nothing to the console."""

from __future__ import annotations

import gzip
import itertools
import re
import urllib.parse

import pytest
from playwright.sync_api import Request, expect

from clew.server.app import PAGE_DIRECTORY
from tests.web.conftest import EVERYDAY, OpenViewer, Serve
from tests.web.viewer import Viewer

VIEWS = ("graph", "function", "listing", "processes", "compare")
TRACES = ("shapes-full", "shapes-region", "shapes-coverage", "hostile")
"""Of each mode one: `hostile` was only counted."""
AT_A_GLANCE = ("shapes-full", "hostile")
MOST_SCRIPT_BYTES = 150 * 1024


@pytest.mark.parametrize(
    "trace", [pytest.param(name, marks=pytest.mark.glance if name in AT_A_GLANCE else ()) for name in TRACES]
)
def test_every_view_of_every_trace_is_shown_without_complaint(viewer: Viewer, trace: str) -> None:
    page = viewer.open(trace, select="f0")
    for view in VIEWS:
        page.get_by_role("navigation", name="Views").get_by_role("button", name=view.title()).click()
        expect(viewer.main(view)).to_be_visible()
        # The page has had the time to draw what it asked for.
        viewer.wait_for_quiet()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_page_asks_for_little_and_only_for_what_is_built_and_for_data(open_viewer: OpenViewer) -> None:
    viewer = open_viewer()
    asked: list[Request] = []
    viewer.context.on("request", lambda request: asked.append(request))
    viewer.open("small")
    viewer.wait_for_quiet()
    paths = {urllib.parse.urlsplit(one.url).path.lstrip("/") for one in asked}
    built = {path.relative_to(PAGE_DIRECTORY).as_posix() for path in PAGE_DIRECTORY.rglob("*") if path.is_file()}
    assert not {path for path in paths if path not in built and not path.startswith("api/")} - {""}
    for one in asked:
        assert viewer.server.token not in one.url.partition("#")[0], "browsers keep addresses: none has the secret"
    scripts = sorted(path for path in paths if path.endswith(".js"))
    assert scripts
    sizes = {path: len(gzip.compress((PAGE_DIRECTORY / path).read_bytes(), 9)) for path in scripts}
    assert sum(sizes.values()) <= MOST_SCRIPT_BYTES, sizes


def test_the_pictures_of_threads_have_the_ground_of_the_theme(viewer: Viewer) -> None:
    page = viewer.open("shapes-full", view="processes")
    picture = page.locator("canvas[data-ran]").first
    picture.wait_for()
    grounds = {}
    for _ in range(2):
        theme = page.locator("html").get_attribute("data-theme")
        grounds[theme] = picture.evaluate("(canvas) => getComputedStyle(canvas).backgroundColor")
        assert grounds[theme] == page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        page.keyboard.press("t")
        expect(page.locator("html")).not_to_have_attribute("data-theme", theme or "")
    assert len(set(grounds.values())) == 2


def test_another_trace_is_chosen_in_the_header(viewer: Viewer) -> None:
    page = viewer.open("small")
    page.get_by_role("combobox", name="Trace").select_option("gzip.clew")
    viewer.wait_for_state(trace=EVERYDAY.index("gzip"))
    expect(viewer.page.locator(".totals")).to_contain_text("full")
    expect(viewer.rows.filter(has_text="work_on_")).to_have_count(0)
    expect(viewer.rows.filter(has_text="_dl_relocate_object")).to_have_count(1)


@pytest.mark.glance
def test_a_page_without_the_token_says_what_is_missing(open_viewer: OpenViewer, serve: Serve) -> None:
    viewer = open_viewer()
    viewer.expected.append("status of 403")
    viewer.page.goto(f"{serve().origin}/#token=wrong")
    expect(viewer.page.get_by_role("alert").first).to_contain_text("token")


def test_where_nothing_was_counted_nothing_says_how_often(viewer: Viewer) -> None:
    page = viewer.open("shapes-coverage")
    details = page.get_by_role("region", name="Details")
    expect(details).to_contain_text("Blocks")
    expect(details).not_to_contain_text("Instructions")
    viewer.rows.first.click()
    expect(viewer.fact("instructions")).to_contain_text("that ran")
    expect(viewer.fact("entries")).to_have_count(0)
    expect(page.get_by_role("listbox", name="Functions").get_by_text("times entered")).to_have_count(0)
    expect(page.get_by_role("button", name="Entered")).to_have_count(0)
    page.get_by_role("group", name="Colours").get_by_role("button", name="Heat").click()
    expect(page.get_by_role("region", name="Legend")).to_contain_text("Blocks that ran")
    counted = viewer.open("shapes-counts", select="f0")
    expect(counted.get_by_role("region", name="Details")).to_contain_text("Entered")


@pytest.mark.parametrize("view", ["graph", "function", "listing", "processes", "calls"])
@pytest.mark.parametrize("size", [(420, 800), (800, 600)])
def test_the_parts_of_a_small_window_lie_beside_or_below_each_other(
    open_viewer: OpenViewer, size: tuple[int, int], view: str
) -> None:
    width, height = size
    viewer = open_viewer(viewport={"width": width, "height": height})
    page = viewer.open("shapes-full", view=view)
    viewer.wait_for_quiet()
    boxes = page.evaluate(
        "() => [...document.querySelectorAll('.panels > .side, .panels > .main, .body > .below')]"
        ".map((one) => one.getBoundingClientRect()).map(({left, top, right, bottom}) => [left, top, right, bottom])"
    )
    assert len(boxes) == 4
    for first, second in itertools.combinations(boxes, 2):
        across = min(first[2], second[2]) - max(first[0], second[0])
        down = min(first[3], second[3]) - max(first[1], second[1])
        assert across < 1 or down < 1, (boxes, first, second)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    main = page.locator(".panels > .main")
    assert main.evaluate(
        "(main) => { const of = main.getBoundingClientRect();"
        " return [...main.querySelectorAll('.calls-main, .entities, .minimap, .tree')]"
        ".every((one) => { const {left, right, bottom, width} = one.getBoundingClientRect();"
        " return width === 0 || left >= of.left - 1 && right <= of.right + 1 && bottom <= of.bottom + 1; }); }"
    )
    assert main.evaluate(
        "(main) => [...main.querySelectorAll('.calls-main')]"
        ".every((one) => one.scrollHeight <= one.clientHeight || getComputedStyle(one).overflowY === 'auto')"
    )
    # There is something to see in each.
    assert all(right - left >= 150 and bottom - top >= 100 for left, top, right, bottom in boxes), boxes
    lanes = page.locator(".lanes").bounding_box()
    assert lanes is not None and lanes["width"] > 250


def test_the_table_of_processes_is_whole_in_the_usual_window(viewer: Viewer) -> None:
    viewer.open("shapes-full", view="processes")
    tree = viewer.page.locator(".tree")
    tree.locator(".tree-row .picture").first.wait_for()
    assert tree.evaluate("(tree) => tree.scrollWidth <= tree.clientWidth")
    cells = ".tree-row.head > *, .tree-row .start span, .tree-row .instructions span, .tree-row .per-second span"
    assert tree.evaluate(
        "(tree, cells) => [...tree.querySelectorAll(cells)].every((one) => one.scrollWidth <= one.clientWidth)", cells
    )
    # Cells of a row are beside one another.
    rows = tree.evaluate(
        "(tree) => [...tree.querySelectorAll('.tree-row')]"
        ".map((row) => [...row.children].map((cell) => cell.getBoundingClientRect().left))"
    )
    assert all(lefts == sorted(set(lefts)) for lefts in rows)


@pytest.mark.parametrize("trace", ["shapes-full", "shapes-coverage"])
def test_the_header_is_whole_in_the_usual_window(open_viewer: OpenViewer, serve: Serve, trace: str) -> None:
    viewer = open_viewer(serve(trace))
    page = viewer.open(trace)
    page.set_viewport_size({"width": 1280, "height": 800})
    chosen = page.get_by_label("Thread", exact=True)
    expect(chosen).to_have_text(re.compile("^5 threads"))
    text_px, room_px = chosen.evaluate("""
        select => {
            const context = document.createElement("canvas").getContext("2d");
            context.font = getComputedStyle(select).font;
            return [context.measureText(select.selectedOptions[0].text).width, select.clientWidth];
        }
    """)
    # Padding at both sides, and the arrow.
    assert text_px + 2 * 8 + 20 <= room_px
    assert page.locator(".header").evaluate("header => header.scrollWidth <= header.clientWidth")
