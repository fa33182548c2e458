"""What the viewer's tests share: a browser, servers of traces, pages that may not complain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.web.serving import Server
from tests.web.traces import find_trace
from tests.web.viewer import CHROMIUM, Viewer, launch

OpenViewer = Callable[..., Viewer]
Serve = Callable[..., Server]

EVERYDAY = ("shapes-full", "shapes-counts", "shapes-region", "shapes-coverage", "gzip", "small", "hostile", "calls")
"""Traces that are served together. Larger ones have servers of their own."""

_TO_BE_SAID = re.compile(r"^(clew: stopped|WARNING: +Invalid HTTP request received\.)\n", re.MULTILINE)
"""What servers say: tests ask them things that are no HTTP."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs a browser: most of what a test takes then is drawing in software."""
    for item in items:
        if "playwright" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def serve() -> Iterator[Serve]:
    """A server of the traces of these names, the everyday ones if none are named; started when first asked for."""
    running: dict[tuple[str, ...], Server] = {}

    def start(*names: str) -> Server:
        wanted = names or EVERYDAY
        if wanted not in running:
            running[wanted] = Server([find_trace(name) for name in wanted])
        return running[wanted]

    yield start
    said = []
    for server in running.values():
        status = server.stop()
        said.append((status, _TO_BE_SAID.sub("", server.said)))
    assert all(status in (0, 130) and not text for status, text in said), said


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright; skips what needs it where there is no browser."""
    if CHROMIUM is None:
        pytest.skip("there is no `chromium` on PATH: the viewer was not looked at")
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """The browser that most tests share."""
    browser = launch(playwright)
    yield browser
    browser.close()


@pytest.fixture
def open_viewer(browser: Browser, serve: Serve) -> Iterator[OpenViewer]:
    """Makes pages, each in a context of its own; of the everyday traces, or of the server given.

    At the end none of them may have complained.
    """
    opened: list[Viewer] = []

    def make(server: Server | None = None, **options: Any) -> Viewer:
        viewer = Viewer(browser, server or serve(), **options)
        opened.append(viewer)
        return viewer

    yield make
    complaints = [complaint for viewer in opened for complaint in viewer.complaints]
    for viewer in opened:
        viewer.context.close()
    assert not complaints, complaints


@pytest.fixture(scope="session")
def _shared_viewer(browser: Browser, serve: Serve) -> Iterator[Viewer]:
    viewer = Viewer(browser, serve())
    yield viewer
    viewer.context.close()


@pytest.fixture
def viewer(_shared_viewer: Viewer) -> Iterator[Viewer]:
    """A page of the everyday traces, on which nothing was done yet; all that ask for one share it, one after another.

    At the end it may not have complained.
    """
    _shared_viewer.clear()
    yield _shared_viewer
    complaints = list(_shared_viewer.complaints)
    assert not complaints, complaints
