"""How long pictures take: measured from the navigation on, on two cores that draw in software. Run alone."""

from __future__ import annotations

import itertools
import statistics
import time

import pytest

from tests.web.conftest import OpenViewer, Serve
from tests.web.graph_page import CANVAS, GraphPage
from tests.web.limits import assert_within
from tests.web.viewer import LARGE, Viewer

pytestmark = pytest.mark.timing


def _time_to_picture(viewer: Viewer, trace: str, **words: object) -> float:
    """Seconds from the navigation until nodes are drawn where the layout has them."""
    viewer.page.goto("about:blank")
    begin = time.monotonic()
    viewer.page.goto(viewer.address(trace, **words), wait_until="commit")
    GraphPage(viewer).wait_for_layout("moving", "final")
    return time.monotonic() - begin


def _moving_frame_ms(viewer: Viewer) -> float:
    """The median time from frame to frame while the pointer turns the picture."""
    box = GraphPage(viewer).canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    viewer.page.mouse.move(x, y)
    viewer.page.mouse.down()
    viewer.page.evaluate(
        "(selector) => { const canvas = document.querySelector(selector); window.frameTimes = [];"
        " window.frameObserver?.disconnect();"
        " window.frameObserver = new MutationObserver(() => window.frameTimes.push(performance.now()));"
        " window.frameObserver.observe(canvas, { attributes: true, attributeFilter: ['data-frames'] }); }",
        CANVAS,
    )
    for step in range(40):
        viewer.page.mouse.move(x + 4 * step, y + step)
    viewer.page.mouse.up()
    times: list[float] = viewer.page.evaluate("() => window.frameTimes")
    between = [after - before for before, after in itertools.pairwise(times)]
    assert len(between) >= 5, between
    return statistics.median(between)


def _heap_megabytes(viewer: Viewer) -> float:
    """What the page's scripts hold once the garbage is gone, typed arrays among it."""
    session = viewer.context.new_cdp_session(viewer.page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return float(usage["usedSize"] + usage["backingStorageSize"]) / 1e6


@pytest.mark.parametrize(("trace", "most_seconds"), [("small", 2.0), ("large", 3.0)])
def test_the_first_picture_is_there_in_time(
    open_viewer: OpenViewer, serve: Serve, trace: str, most_seconds: float
) -> None:
    viewer = open_viewer(serve() if trace == "small" else serve(trace), viewport=LARGE)
    assert_within(most_seconds, lambda: _time_to_picture(viewer, trace))


def test_frames_of_a_picture_in_movement_are_quick(open_viewer: OpenViewer, serve: Serve) -> None:
    viewer = open_viewer(serve("large"), viewport=LARGE)
    viewer.open("large")
    GraphPage(viewer).wait_for_layout()
    assert_within(150, lambda: _moving_frame_ms(viewer))


def test_a_million_blocks_are_shown_by_function(open_viewer: OpenViewer, serve: Serve) -> None:
    viewer = open_viewer(serve("huge"), viewport=LARGE)
    assert_within(10, lambda: _time_to_picture(viewer, "huge"), tries=3)
    assert _heap_megabytes(viewer) < 300
