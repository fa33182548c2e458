"""Who sees little, or uses no mouse, gets the same: axe finds nothing serious, keys reach everything."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.accessibility import find_serious, load_axe
from tests.web.conftest import EVERYDAY, OpenViewer
from tests.web.viewer import Viewer

GZIP = EVERYDAY.index("gzip")
PARTS = ("summary", "graph", "function", "listing", "order")
VIEWS: list[tuple[str, dict[str, Any]]] = [
    *((view, {}) for view in ("graph", "function", "listing", "processes", "calls")),
    *(("compare", {"compare": part, "with": GZIP}) for part in PARTS),
]


def test_axe_finds_nothingfind_serious(open_viewer: OpenViewer) -> None:
    """In every view; contrasts in both themes, and the rest once, since no theme changes it."""
    viewer = open_viewer(color_scheme="dark")
    page = viewer.open("shapes-full", select="b12")
    load_axe(page)
    found = []
    for view, words in VIEWS:
        viewer.go("shapes-full", view=view, select="b12", **words)
        expect(viewer.main(view)).to_be_visible()
        for theme, rules in (("dark", None), ("light", ["color-contrast"])):
            if page.locator("html").get_attribute("data-theme") != theme:
                page.get_by_role("button", name="Dark or light").click()
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            viewer.wait_for_quiet()
            found += [(view, words, theme, *one) for one in find_serious(page, rules)]
    assert not found


def test_axe_finds_nothing_serious_in_dialogs(open_viewer: OpenViewer) -> None:
    for theme in ("dark", "light"):
        viewer = open_viewer(color_scheme=theme)
        page = viewer.open("shapes-counts", view="listing", select="b12")
        load_axe(page)
        page.get_by_role("button", name="Export").click()
        expect(page.get_by_role("dialog", name="Export")).to_be_visible()
        assert not find_serious(page, None)
        page.keyboard.press("Escape")
        for button, name, view in (("Stop the viewer", "Stop the viewer", "listing"), ("Look", "Look", "graph")):
            viewer.go("shapes-counts", view=view, select="b12")
            page.get_by_role("button", name=button, exact=True).click()
            expect(page.get_by_role("dialog", name=name)).to_be_visible()
            assert not find_serious(page, None)
            page.keyboard.press("Escape")


def test_keys_alone_reach_everything_and_what_has_the_focus_is_seen(viewer: Viewer) -> None:
    page = viewer.open("shapes-full")
    viewer.wait_for_quiet()
    reached: list[tuple[str, bool]] = []
    for _ in range(200):
        page.keyboard.press("Tab")
        at = page.evaluate(
            "() => { const at = document.activeElement, style = getComputedStyle(at);"
            " if (at === document.body || at.dataset.reached) return null;"
            " at.dataset.reached = '1';"
            " const isOutlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;"
            " return [at.outerHTML.slice(0, 200), isOutlined || style.boxShadow !== 'none']; }"
        )
        if at is None:
            break
        reached.append(at)
    assert len(reached) > 5
    assert not [element for element, is_seen in reached if not is_seen]
    # Elements that a mouse could use, and that neither Tab nor an arrow within a group would come to.
    missed: list[str] = page.evaluate(
        "() => [...document.querySelectorAll('button, a[href], input, select, textarea, summary, [tabindex=\"0\"]')]"
        ".filter((one) => one.checkVisibility() && !one.disabled && one.dataset.reached !== '1'"
        " && !one.closest('[role=toolbar], [role=tablist], [role=radiogroup], [role=tree], [role=grid]'))"
        ".map((one) => one.outerHTML.slice(0, 200))"
    )
    assert not missed


def test_functions_are_chosen_with_keys_alone(viewer: Viewer) -> None:
    page = viewer.open("small")
    page.get_by_role("listbox", name="Functions").focus()
    for key in ("Home", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(viewer.rows.nth(2)).to_have_attribute("aria-selected", "true")
    first = viewer.rows.nth(2).locator(".name").text_content() or ""
    expect(page.get_by_role("region", name="Details").get_by_role("heading").first).to_have_text(first)
    page.keyboard.press("Enter")
    viewer.wait_for_state(view="function")


def test_threads_are_chosen_with_keys_alone_and_the_help_says_how(viewer: Viewer) -> None:
    page = viewer.open("small", view="processes")
    tree = page.get_by_role("treegrid", name="Processes and threads")
    tree.focus()
    chosen = viewer.main("processes").get_by_role("status")
    for keys, words in (
        (("Home", "ArrowDown", "Space"), "thread 1000"),
        (("ArrowDown", "Control+Enter"), "2 threads"),
        (("ArrowDown", "Shift+Enter"), "3 threads"),
        (("Control+Space",), "2 threads"),
        (("End", "Enter"), "thread 1003"),
    ):
        for key in keys:
            page.keyboard.press(key)
        expect(chosen).to_contain_text(words)
    page.keyboard.press("?")
    told = page.get_by_role("dialog").get_by_role("region", name="Processes", exact=True)
    for key in ("Space", "Ctrl Enter", "Page ↓", "End"):
        expect(told.get_by_text(key, exact=True)).to_be_visible()


@pytest.mark.glance
def test_every_picture_has_its_facts_as_text(viewer: Viewer) -> None:
    """Beside each canvas that is not decoration there is a table or a list, and it has a name."""
    page = viewer.open("shapes-full", select="b12")
    for view in ("graph", "function"):
        page.get_by_role("navigation", name="Views").get_by_role("button", name=view.title()).click()
        viewer.wait_for_quiet()
        names = page.locator("canvas:not([aria-hidden=true])").evaluate_all(
            "(all) => all.map((one) => [one.getAttribute('aria-label'),"
            " one.closest('main, section').querySelectorAll('table, [role=table], [role=grid], ul, ol').length])"
        )
        assert names
        for name, n_lists in names:
            assert name and n_lists > 0
