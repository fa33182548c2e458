"""The address holds what is looked at: copied into another browser it shows the same."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.conftest import OpenViewer
from tests.web.viewer import LARGE, Viewer

STATES: list[dict[str, Any]] = [
    {"trace": "shapes-counts", "view": "function", "select": "f3"},
    {"trace": "gzip", "view": "listing", "select": "b40", "hide_stubs": "1"},
    {"trace": "small", "layout": "circle", "dimensions": "2", "mode": "structure", "threads": "1001,1002"},
    {
        "trace": "shapes-counts",
        "layout": "force",
        "mode": "conditionals",
        "select": "b77",
        "camera": "0.5,-0.25,12,1,2,3",
    },
    {"trace": "shapes-full", "view": "processes", "filter": "a+b &c=d", "fold_loops": "1"},
    {"trace": "shapes-full", "range": "1000-900000", "mode": "recency"},
]
SENSELESS = ("&trace=99", "&trace=-1", "&process=77", "&select=b999999999", "&camera=NaN", "&view=<b>", "&threads=5")


def test_a_copied_address_shows_the_same(open_viewer: OpenViewer) -> None:
    viewer, other = open_viewer(viewport=LARGE), open_viewer(viewport=LARGE)
    for words in STATES:
        _open(viewer, viewer.address(**words))
        # The page writes the address as it understood it, a little later.
        viewer.page.wait_for_timeout(400)
        for name, value in words.items():
            if name not in ("trace", "camera"):
                assert viewer.state()[name.replace("_", "-")] == value
        _open(other, viewer.page.url)
        assert other.state() == viewer.state()
        assert _facts(other) == _facts(viewer)


def test_what_is_done_on_the_page_is_in_the_address(viewer: Viewer, open_viewer: OpenViewer) -> None:
    page = viewer.open("small")
    viewer.rows.nth(4).click()
    page.get_by_role("button", name="Listing", exact=True).click()
    page.get_by_role("searchbox", name="Filter functions").fill("work_on_1")
    viewer.wait_for_state(view="listing", filter="work_on_1")
    assert "select" in viewer.state()
    other = open_viewer()
    other.page.goto(page.url)
    other.wait_for_counts()
    expect(other.page.get_by_role("searchbox", name="Filter functions")).to_have_value("work_on_1")
    expect(other.main("listing")).to_be_visible()
    assert _facts(other) == _facts(viewer)


@pytest.mark.long
@pytest.mark.glance
def test_the_way_back_leads_to_what_was_looked_at_before(viewer: Viewer) -> None:
    page = viewer.open("small")
    viewer.rows.nth(2).click()
    viewer.wait_for_state(select=_selected(viewer))
    before = viewer.number("instructions")
    viewer.rows.nth(9).click()
    expect(viewer.fact("instructions")).not_to_contain_text(f"{before:,}")
    viewer.wait_for_state(select=_selected(viewer))
    page.get_by_role("button", name="Processes", exact=True).click()
    viewer.wait_for_state(view="processes")
    page.go_back()
    expect(viewer.main("graph")).to_be_visible()
    page.go_back()
    expect(viewer.fact("instructions")).to_contain_text(f"{before:,}")


def test_addresses_that_make_no_sense_do_no_harm(viewer: Viewer) -> None:
    viewer.expected.append("status of 40[04]")
    for fragment in SENSELESS:
        viewer.load(viewer.server.url + fragment)
        expect(viewer.page.get_by_role("alert").or_(viewer.rows.first).first).to_be_visible()


def _open(viewer: Viewer, address: str) -> None:
    """Load an address; its filter may leave nothing in the table of functions."""
    viewer.load(address)
    viewer.page.locator(".totals").wait_for()
    expect(viewer.page.get_by_role("searchbox", name="Filter functions")).to_be_visible()
    viewer.wait_for_quiet()


def _selected(viewer: Viewer) -> str:
    """The word of the address that the selection gets, once it is there."""
    viewer.page.wait_for_function("() => /[#&]select=[fb]\\d+/.test(location.hash)")
    viewer.page.evaluate("new Promise((done) => setTimeout(done, 400))")
    return viewer.state()["select"]


def _facts(viewer: Viewer) -> dict[str, Any]:
    """What can be read on the page of what is looked at.

    Of the table of functions how many there are and which is selected: how many rows are made depends on what room the
    panels below had just then.
    """
    return {
        "view": viewer.page.locator("section.main").get_attribute("aria-label"),
        "details": viewer.page.get_by_role("region", name="Details").inner_text(),
        "functions": viewer.rows.first.get_attribute("aria-setsize") if viewer.rows.count() else "0",
        "selected": viewer.page.locator(".functions [role=option][aria-selected=true]").all_inner_texts(),
        "filter": viewer.page.get_by_role("searchbox", name="Filter functions").input_value(),
        "totals": viewer.page.locator(".totals").inner_text(),
    }
