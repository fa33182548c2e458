"""The view "Compare" as its tests use it: opened for two traces, asked for its table of functions."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.web.viewer import Viewer

__all__ = ["Row", "list_rows", "look", "read_rows", "search", "show", "wait_for_frames", "wait_for_pair"]

Row = tuple[str, int, int, str, int]
"""A function of the table: class, instructions of both, their ratio, the difference."""


def look(viewer: Viewer, a: str, b: str, part: str = "summary", **words: object) -> Page:
    """Open a part of the comparison of two traces, and wait until all is there."""
    index_a, index_b = (viewer.server.names.index(name) for name in (a, b))
    viewer.page.goto(viewer.address(a, view="compare", compare=part, **{"with": index_b}, **words))
    wait_for_pair(viewer.page, index_a, index_b)
    return viewer.page


def wait_for_pair(page: Page, a: int, b: int) -> None:
    """Until the first processes of two traces, by their numbers, are compared."""
    page.locator(f".compare-view[data-compare-state=ready][data-pair='{a}/0 {b}/0']").wait_for()


def list_rows(page: Page) -> list[tuple[str, str, int, int, str, int]]:
    """What the table of functions has: name, class, instructions of both, their ratio, the difference."""
    rows = page.locator(".compare-functions [role=option]").evaluate_all(
        "(rows) => rows.map((row) => [row.querySelector('.name').textContent,"
        " row.querySelector('.class-sign').dataset.class,"
        " ...[...row.querySelectorAll('.count')].map((one) => Number(one.title.replaceAll(',', ''))),"
        " row.querySelector('.ratio').textContent])"
    )
    return [(name, kind, a, b, ratio, difference) for name, kind, a, b, difference, ratio in rows]


def read_rows(page: Page) -> dict[str, Row]:
    """The same by name."""
    return {name: (kind, a, b, ratio, apart) for name, kind, a, b, ratio, apart in list_rows(page)}


def show(page: Page, which: str) -> dict[str, Row]:
    """Have the table show all functions, or those of a filter; gives its rows."""
    page.get_by_role("group", name="Which functions").get_by_role("button", name=which, exact=True).click()
    wait_for_frames(page)
    return read_rows(page)


def search(page: Page, text: str) -> dict[str, Row]:
    """Have the table show functions whose names hold a text; gives its rows."""
    page.get_by_role("searchbox", name="Filter functions of both").fill(text)
    wait_for_frames(page)
    return read_rows(page)


def wait_for_frames(page: Page) -> None:
    """Until what was changed is shown: a list that gets shorter is scrolled, and then drawn once more."""
    for _ in range(2):
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
