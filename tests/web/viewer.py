"""The viewer's page as the tests use it: opened with a state, watched for errors, asked what it shows.

Knows the hooks that the page gives (`data-...`, roles, names); does not know how it draws.
"""

from __future__ import annotations

import re
import shutil
import time
import urllib.parse
from collections.abc import Iterable
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Locator, Page, Playwright, Request

from tests.web.serving import Server

__all__ = ["CHROMIUM", "LARGE", "Viewer", "launch", "parse_number"]

CHROMIUM: Final = shutil.which("chromium")
_FLAGS: Final = (
    "--no-sandbox",
    "--enable-unsafe-swiftshader",
    # No processor for graphics: WebGL by SwiftShader, and the page itself put together by the CPU.
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
    "--enable-precise-memory-info",
)
_SECONDS: Final = 30
_LOCAL: Final = ("data:", "blob:")
_USUAL: Final = {"width": 1280, "height": 800}
LARGE: Final = {"width": 1600, "height": 1000}
"""What limits of time hold for; drawing so much takes the processor half as long again as the usual frame."""
_OF_THE_DRIVER: Final = re.compile(r"GL Driver Message \(OpenGL, Performance")
"""What the browser's own driver says of its speed, which where the CPU draws is no news."""


def launch(playwright: Playwright, *flags: str) -> Browser:
    """A headless Chromium that draws in software."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=[*_FLAGS, *flags])


class Viewer:
    """One page, in a browser context of its own, of one server.

    Errors of the console, exceptions, and requests to other origins are kept in `complaints`; those that `expected`
    (regular expressions) match are not.
    """

    def __init__(self, browser: Browser, server: Server, **options: Any) -> None:
        self.server = server
        self.complaints: list[str] = []
        self.expected: list[str] = []
        self._running: set[Request] = set()
        self.context: BrowserContext = browser.new_context(**{"viewport": _USUAL, "color_scheme": "dark"} | options)
        self.context.set_default_timeout(1000 * _SECONDS)
        self.page: Page = self.context.new_page()
        self._watch(self.page)

    def _watch(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._complain(f"exception: {error}"))
        page.on("request", self._on_request)
        page.on("requestfinished", lambda request: self._running.discard(request))
        page.on("requestfailed", lambda request: self._running.discard(request))
        page.on("dialog", self._on_dialog)

    def address(self, trace: str | None = None, **words: object) -> str:
        """The address of a state: `words` are those of the fragment, with _ for -."""
        if trace is not None:
            words = {"trace": self.server.names.index(trace), **words}
        told = [
            f"{name.replace('_', '-')}={urllib.parse.quote(str(value), safe=',:')}" for name, value in words.items()
        ]
        return "&".join([self.server.url, *told])

    def open(self, trace: str | None = None, **words: object) -> Page:
        """Load the page with a state, and wait until its functions are there, with their counts."""
        self.load(self.address(trace, **words))
        self.wait_for_counts()
        return self.page

    def load(self, address: str) -> None:
        """Load the page at an address of the server. (To another fragment a browser would go without loading it.)"""
        if not self.page.url.startswith(f"{self.server.origin}/"):
            self.page.goto(address)
            return
        # Within its process, which takes half as long; in one step, so that the page writes no address between.
        with self.page.expect_event("domcontentloaded"):
            self.page.evaluate(
                "(address) => void setTimeout(() => { history.replaceState(null, '', address); location.reload(); })",
                address,
            )

    def go(self, trace: str | None = None, **words: object) -> None:
        """Go to another state of the page that is open, as links do: nothing is loaded anew."""
        self.page.goto(self.address(trace, **words))

    def clear(self) -> None:
        """Forget what the page stored and complained of; what is opened next is loaded anew."""
        if self.page.url.startswith(self.server.origin):
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.page.mouse.move(0, 0)
        self._running.clear()
        self.complaints.clear()
        self.expected.clear()

    def main(self, view: str) -> Locator:
        """What a view shows, the panels around it left out."""
        return self.page.get_by_role("region", name=f"{view} view".capitalize(), exact=True)

    def wait_for_counts(self) -> None:
        """Until the table of functions has rows with numbers; in the view of calls until entities are there instead."""
        self.page.wait_for_function(
            "() => document.querySelector('[role=listbox][aria-label=Entities]') ||"
            " [...document.querySelectorAll('[role=listbox][aria-label=Functions] .count')]"
            ".some((one) => one.title !== '' && one.title !== '0')"
        )

    @property
    def rows(self) -> Locator:
        """Rows of the table of functions, those that are in sight."""
        return self.page.locator("[role=listbox][aria-label=Functions] [role=option]")

    def wait_for_quiet(self) -> None:
        """Until nothing that was asked for is still to come, and the page has drawn twice since."""
        self.page.wait_for_function("() => document.readyState === 'complete'")
        self._wait_for_answers()
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self._wait_for_answers()

    def _wait_for_answers(self) -> None:
        limit = time.monotonic() + _SECONDS
        while self._running:
            assert time.monotonic() < limit, f"no answer: {[request.url for request in self._running]}"
            self.page.wait_for_timeout(20)

    def state(self) -> dict[str, str]:
        """The words of the address, without the token."""
        words = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.page.url).fragment, keep_blank_values=True))
        words.pop("token", None)
        return words

    def wait_for_state(self, **words: object) -> None:
        """Until the address has these words; the page writes it a little later than it changes."""
        for name, value in words.items():
            wanted = re.escape(f"{name.replace('_', '-')}={value}")
            self.page.wait_for_url(re.compile(rf"[#&]{wanted}(&|$)"))

    def fact(self, name: str) -> Locator:
        """What the panel of details says of something."""
        return self.page.locator(f"[data-fact={name}]")

    def number(self, name: str) -> int:
        """The number that a fact begins with."""
        return parse_number(self.fact(name).inner_text())

    def dataset(self, selector: str) -> dict[str, str]:
        """The data of an element."""
        found: dict[str, str] = self.page.locator(selector).first.evaluate("(element) => ({...element.dataset})")
        return found

    def wait_for_data(self, selector: str, name: str, wanted: Iterable[str], timeout_seconds: float = 30.0) -> str:
        """Until an element's `data-name` has one of the values `wanted`; gives it."""
        found = self.page.wait_for_function(
            "([selector, name, wanted]) => {"
            " const value = document.querySelector(selector)?.getAttribute(`data-${name}`);"
            " return value !== null && value !== undefined && wanted.includes(value) ? value : null; }",
            arg=[selector, name, list(wanted)],
            timeout=timeout_seconds * 1000,
        )
        value: str = found.json_value()
        return value

    def close(self) -> None:
        """Close it; AssertionError tells what it complained of."""
        self.context.close()
        assert not self.complaints, self.complaints

    def _complain(self, text: str) -> None:
        if not any(re.search(pattern, text) for pattern in self.expected):
            self.complaints.append(text)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert") and not _OF_THE_DRIVER.search(message.text):
            self._complain(f"console {message.type}: {message.text}")

    def _on_dialog(self, dialog: Dialog) -> None:
        self._complain(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        self._running.add(request)
        if not request.url.startswith((f"{self.server.origin}/", *_LOCAL)):
            self._complain(f"a request to another origin: {request.url}")


def parse_number(text: str) -> int:
    """The number that a text begins with, as the page writes numbers: 1,234."""
    found = re.match(r"\s*([\d,]+)", text)
    assert found is not None, text
    return int(found[1].replace(",", ""))
