"""What axe holds against a page."""

from __future__ import annotations

from typing import Any, Final

import pytest
from playwright.sync_api import Page

from tests.e2e.runs import ROOT

__all__ = ["find_serious", "load_axe"]

_AXE: Final = ROOT / "web/node_modules/axe-core/axe.min.js"


def load_axe(page: Page) -> None:
    """Have axe in the page; skips where it is not installed."""
    if not _AXE.exists():
        pytest.skip("axe is not installed: `make build` does it")
    # Not as an element of the page, which its policy forbids.
    page.evaluate(_AXE.read_text())


def find_serious(page: Page, rules: list[str] | None) -> list[tuple[str, str, list[str]]]:
    """What axe holds against the page by these rules, by all if None: rule, what it wants, elements."""
    found: list[dict[str, Any]] = page.evaluate(
        "async (rules) => (await axe.run({ resultTypes: ['violations'], preload: false,"
        " ...(rules && { runOnly: rules }) })).violations",
        rules,
    )
    return [
        (one["id"], one["help"], [node["html"][:200] for node in one["nodes"]][:3])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
