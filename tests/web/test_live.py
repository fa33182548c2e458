"""The page beside a program that runs: what it runs appears, what breaks comes back, in the end its trace is there."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.live_recording import LiveRecording, build_new_code
from tests.web.accessibility import find_serious, load_axe
from tests.web.recorded_page import RecordedPage, record, watch

MOST_SECONDS = 0.5
LONG_SECONDS = float(os.environ.get("CLEW_LIVE_SECONDS", "180"))

_KEEP_SOCKETS = """
    window.sockets = [];
    window.told = [];
    window.WebSocket = class extends WebSocket {
        constructor(...words) {
            super(...words);
            window.sockets.push(this);
            this.addEventListener("message", ({ data }) => {
                const size = new DataView(data).getUint32(12, true);
                const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 16, size)));
                window.told.push([header.meta.since, header.meta.sequence]);
            });
        }
    };
"""


class LivePage(RecordedPage):
    """A page that is open on a recording of the program that runs new code."""

    def run(self, line: str) -> None:
        """Have the program do something, and wait until it has."""
        self.recording.say(line)
        assert self.recording.hear() == line

    def wait_for_newest(self, name: str) -> None:
        """Until a block or call of that name is among the newest."""
        self.page.wait_for_function(
            "(name) => document.querySelector('.live-newest').textContent.includes(name)", arg=name
        )

    def wait_for_function(self, name: str) -> None:
        """Until the table of functions has it."""
        self.page.get_by_role("searchbox", name="Filter functions").fill(name)
        expect(self.viewer.rows).to_have_count(1)

    def wait_for_more_nodes(self, before: int) -> None:
        """Until the picture has more nodes than so many."""
        self.page.wait_for_function(
            "(before) => Number(document.querySelector('.graph-canvas').dataset.drawnNodes) > before", arg=before
        )

    def wait_for_drawn(self) -> None:
        """Until the picture is there."""
        self.viewer.wait_for_data(".graph-canvas", "quality", ["whole"])


Open = Callable[..., LivePage]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRecording]:
    """A recording of the program that runs new code when told to. Tests share it: each has it run other code."""
    with record(build_new_code(), tmp_path_factory.mktemp("live")) as shared:
        yield shared


@pytest.fixture
def open_live(browser: Browser, recording: LiveRecording) -> Iterator[Open]:
    """Opens pages on the recording that tests share."""
    with watch(browser, LivePage) as make:
        yield lambda **context: _open(make(recording, **context))


@pytest.fixture
def open_own(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a page on a recording of its own, for tests that end it, keep it busy, or measure it."""
    with record(build_new_code(), tmp_path) as own, watch(browser, LivePage) as make:
        yield lambda **context: _open(make(own, **context))


def _open(live: LivePage) -> LivePage:
    live.viewer.context.add_init_script(_KEEP_SOCKETS)
    live.page.goto(live.recording.url)
    live.viewer.rows.first.wait_for()
    live.wait_for_drawn()
    return live


@pytest.mark.glance
@pytest.mark.long
def test_what_runs_anew_is_named_drawn_and_counted(open_live: Open) -> None:
    live = open_live()
    page = live.page
    nodes = int(live.viewer.dataset(".graph-canvas")["drawnNodes"])
    live.run("12")
    live.wait_for_newest("found_12")
    live.wait_for_newest("main calls")
    live.wait_for_function("found_12")
    live.wait_for_more_nodes(nodes)
    # What is selected stays selected while indices change around it.
    live.viewer.rows.first.click()
    expect(page.get_by_role("heading", name="found_12")).to_be_visible()
    entered = live.viewer.fact("entries")
    expect(entered).to_have_text("1")
    live.run("12")
    expect(entered).to_have_text("2")
    page.get_by_role("searchbox", name="Filter functions").fill("")
    live.run("t25")
    live.wait_for_newest("found_25")
    expect(page.get_by_role("heading", name="found_12")).to_be_visible()
    expect(page.locator(".live-threads li")).to_have_count(2)


def test_what_is_busy_pulses(open_own: Open) -> None:
    live = open_own()
    live.recording.say("s100000000")
    live.page.wait_for_function("() => Number(document.querySelector('.graph-canvas').dataset.lastNode) >= 0")
    # It is the loop that runs, which has run by now.
    live.wait_for_function("spin")
    expect(live.page.locator(".live-threads .count").first).to_contain_text(re.compile(r"[1-9][\d.]*[kMG]/s"))


@pytest.mark.timing
def test_a_new_block_is_seen_soon_after_it_ran(open_own: Open) -> None:
    live = open_own()
    # The first line brings all that reads and writes lines with it.
    live.run("10")
    live.wait_for_newest("found_10")
    needed: dict[str, list[float]] = {"named": [], "drawn": []}
    for number in range(11, 20):
        nodes = int(live.viewer.dataset(".graph-canvas")["drawnNodes"])
        told = time.monotonic()
        live.run(str(number))
        live.wait_for_newest(f"found_{number}")
        needed["named"].append(time.monotonic() - told)
        live.wait_for_more_nodes(nodes)
        needed["drawn"].append(time.monotonic() - told)
    # Seconds from the line to the program on, as `pytest -s` shows them.
    print(*(f"{how}: {median(times):.3f}, at most {max(times):.3f}" for how, times in needed.items()), sep="; ")
    for how, times in needed.items():
        assert median(times) < MOST_SECONDS, (how, times)


def test_a_connection_that_breaks_comes_back_without_loss_or_doubles(open_own: Open) -> None:
    live = open_own()
    page = live.page
    for number in (13, 14, 15):
        # While it counts up, and while nothing happens.
        live.recording.say("s100000")
        page.evaluate("() => window.sockets.at(-1).close()")
        assert live.recording.hear() == "s100000"
        live.run(str(number))
        live.wait_for_newest(f"found_{number}")
        live.run(str(number))
    told = page.evaluate("() => window.told")
    known, has_followed = -1, False
    for since, sequence in told:
        # Each frame follows what was there: nothing is missing, and nothing is told anew but what was never answered.
        assert since == known or (since < 0 and not has_followed), told
        known, has_followed = sequence, has_followed or since >= 0
    assert has_followed
    assert page.evaluate("() => window.sockets.length") >= 4

    def read_counts() -> dict[str, tuple[int, int]]:
        """Entries and instructions of functions, as the details have them."""
        found = {}
        for name in ("found_13", "found_14", "found_15", "spin"):
            live.wait_for_function(name)
            live.viewer.rows.first.click()
            expect(page.get_by_role("heading", name=name)).to_be_visible()
            expect(live.viewer.fact("entries")).to_have_text("3" if name == "spin" else "2")
            found[name] = live.viewer.number("entries"), live.viewer.number("instructions")
        return found

    seen = read_counts()
    live.recording.close_input()
    expect(page.locator(".live-panel")).to_have_count(0)
    live.viewer.wait_for_counts()
    assert read_counts() == seen, "what was told by and by is what the trace has"


def test_a_paused_picture_says_that_the_program_runs_on(open_live: Open) -> None:
    live = open_live()
    page = live.page
    page.get_by_role("button", name="Pause picture").click()
    note = page.locator(".live-paused")
    expect(note).to_contain_text("Picture paused; the program runs on")
    live.run("21")
    live.wait_for_newest("found_21")
    page.wait_for_function(
        "() => /; [1-9]\\d* frames? behind/.test(document.querySelector('.live-paused').textContent)"
    )
    page.get_by_role("searchbox", name="Filter functions").fill("found_21")
    expect(live.viewer.rows).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    expect(live.viewer.rows).to_have_count(1)
    expect(note).to_be_empty()


def test_when_the_program_has_ended_its_trace_is_there(open_own: Open) -> None:
    live = open_own()
    page = live.page
    live.run("12")
    live.wait_for_function("found_12")
    live.viewer.rows.first.click()
    page.get_by_role("searchbox", name="Filter functions").fill("")
    views = page.get_by_role("navigation", name="Views")
    for name in ("Function", "Listing", "Processes"):
        expect(views.get_by_role("button", name=name)).to_be_disabled()
    expect(page.get_by_role("button", name="Search", exact=True)).to_be_disabled()
    page.locator(".graph-canvas").focus()
    page.keyboard.press("2")
    expect(page.locator(".notice")).to_contain_text("finished trace")
    live.recording.close_input()
    expect(page.get_by_role("button", name="nothing lost")).to_be_visible()
    expect(page.locator(".live-panel")).to_have_count(0)
    expect(page.get_by_role("heading", name="found_12")).to_be_visible()
    live.viewer.wait_for_state(process=0)
    assert "live" not in live.viewer.state()
    views.get_by_role("button", name="Function").click()
    expect(live.viewer.main("function").get_by_text("found_12", exact=True).first).to_be_visible()
    # The address of the recording goes to the trace as well.
    live.viewer.load(live.recording.url)
    live.viewer.wait_for_counts()
    expect(page.get_by_role("button", name="nothing lost")).to_be_visible()
    assert live.recording.stop() == 3


def test_another_process_can_be_watched(open_live: Open) -> None:
    live = open_live()
    page = live.page
    live.run("f17")
    choice = page.get_by_role("combobox", name="Process")
    expect(choice.locator("option")).to_have_count(2)
    choice.select_option("1")
    live.wait_for_function("found_17")
    choice.select_option("0")
    expect(live.viewer.rows).to_have_count(0)
    page.get_by_role("searchbox", name="Filter functions").fill("main")
    live.viewer.rows.first.wait_for()


@pytest.mark.parametrize(("scheme", "number"), [("dark", 22), ("light", 23)])
def test_the_live_panel_is_accessible(open_live: Open, scheme: str, number: int) -> None:
    live = open_live(color_scheme=scheme, reduced_motion="reduce")
    live.run(str(number))
    live.wait_for_newest(f"found_{number}")
    load_axe(live.page)
    assert find_serious(live.page, None) == []
    button = live.page.get_by_role("button", name="Pause picture")
    button.focus()
    live.page.keyboard.press("Enter")
    expect(live.page.locator(".live-paused")).to_contain_text("the program runs on")
    # What is new can be reached and chosen by keys.
    first = live.page.locator(".live-newest button").first
    first.focus()
    live.page.keyboard.press("Enter")
    expect(live.page.get_by_role("region", name="Details").get_by_role("heading").first).to_be_visible()


@pytest.mark.stress
@pytest.mark.timeout(0)
def test_a_long_run_takes_no_more_memory_in_the_page_and_in_the_server(open_own: Open) -> None:
    live = open_own()
    viewer = _find_viewer(live.recording)
    browser = live.viewer.context.new_cdp_session(live.page)
    heap, resident = [], []
    until = time.monotonic() + LONG_SECONDS
    number = 0
    while time.monotonic() < until:
        # Busy for some time, in threads that come and go, with code that is known soon.
        live.run("s20000")
        live.run(f"t{10 + number % 20}")
        number += 1
        if number % 20 == 0:
            live.page.evaluate("() => { window.told.length = 0; }")
            browser.send("HeapProfiler.collectGarbage")
            heap.append(browser.send("Runtime.getHeapUsage")["usedSize"])
            resident.append(_resident_bytes(viewer))
    # Bytes in the page's heap that are in use, and of the server, as `pytest -s` shows them.
    for name, used in (("page", heap), ("server", resident)):
        print(f"{name} in {LONG_SECONDS:.0f} s, {number} threads:", *used[:: max(len(used) // 20, 1)], used[-1])
    assert len(heap) >= 6, heap
    half = len(heap) // 2
    for used, allowed in ((heap, 1 << 20), (resident, 8 << 20)):
        assert min(used[half:]) < 1.1 * max(used[1:half]) + allowed, used


def _find_viewer(recording: LiveRecording) -> int:
    text = Path(f"/proc/{recording.process.pid}/task/{recording.process.pid}/children").read_text()
    children = [int(word) for word in text.split()]
    return next(one for one in children if b"live-viewer" in Path(f"/proc/{one}/cmdline").read_bytes())


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
