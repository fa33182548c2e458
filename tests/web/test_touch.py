"""Fingers: one turns or moves what is seen, two move and enlarge it, a tap selects."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect
from pytest import approx

from tests.web.conftest import OpenViewer
from tests.web.graph_page import GraphPage
from tests.web.touch import Fingers
from tests.web.viewer import Viewer

FLOW = "canvas[data-flow-canvas]"
WRITTEN_MS = 450
"""After so long the address has where the picture rests."""
LANES = "canvas[data-timeline-canvas]"


def _camera(viewer: Viewer) -> list[float]:
    """Yaw, pitch, distance and target, once the address has another one than before."""
    return [float(number) for number in viewer.state()["camera"].split(",")]


def _wait_for_other_camera(viewer: Viewer, before: str) -> list[float]:
    viewer.page.wait_for_function(
        "(before) => location.hash.includes('camera=') && !location.hash.includes(before)", arg=before
    )
    # A finger that the browser is slow to follow is at rest on its way, too: what counts is where it came to.
    now = viewer.state()["camera"]
    viewer.page.wait_for_timeout(WRITTEN_MS)
    return _camera(viewer) if viewer.state()["camera"] == now else _wait_for_other_camera(viewer, now)


def test_fingers_turn_enlarge_and_select_in_the_graph(open_viewer: OpenViewer) -> None:
    viewer = open_viewer(has_touch=True)
    viewer.open("shapes-counts", select="b9", layout="circle")
    graph = GraphPage(viewer)
    graph.wait_for_layout()
    place = graph.place_of_selected()
    # Another block of the same function: the picture stays as it is.
    viewer.go("shapes-counts", select="b12", layout="circle")
    viewer.page.wait_for_function("() => document.querySelector('[data-selected-place]').dataset.node === '12'")
    fingers = Fingers(viewer, graph.canvas)
    fingers.tap(place)
    viewer.wait_for_state(select="b9")
    fingers.move(((400, 500), (500, 530)))
    turned = _wait_for_other_camera(viewer, "camera=none")
    before = viewer.state()["camera"]
    fingers.move(((400, 400), (300, 400)), ((500, 400), (600, 400)))
    nearer = _wait_for_other_camera(viewer, before)
    assert nearer[:2] == turned[:2]
    assert nearer[2] == approx(turned[2] / 3, rel=1e-4)
    before = viewer.state()["camera"]
    fingers.move(((400, 400), (440, 430)), ((500, 400), (540, 430)))
    moved = _wait_for_other_camera(viewer, before)
    assert moved[:3] == approx(nearer[:3], rel=1e-4)
    assert moved[3:] != nearer[3:]
    assert viewer.state()["select"] == "b9"


def test_fingers_move_and_enlarge_a_function(open_viewer: OpenViewer) -> None:
    viewer = open_viewer(has_touch=True)
    page = viewer.open("shapes-counts", select="b9", view="function")
    canvas = page.locator(FLOW)
    page.wait_for_function(f"() => document.querySelector('{FLOW}')?.dataset.scale > 0")
    fingers = Fingers(viewer, canvas)
    x, y, scale = before = _at_rest(viewer)
    fingers.move(((300, 300), (340, 280)))
    moved = (x - 40 / scale, y + 20 / scale, scale)
    _wait_for_seen(viewer, moved)
    # The middle of both goes 15 to the right; what is at it stays there, and is half as large again.
    fingers.move(((300, 300), (290, 300)), ((400, 300), (440, 300)))
    scale *= 1.5
    at = (350 / before[2] + moved[0], 300 / before[2] + moved[1])
    _wait_for_seen(viewer, (at[0] - 365 / scale, at[1] - 300 / scale, scale), within=20)
    assert viewer.state()["select"] == "b9"


def _seen(viewer: Viewer) -> list[float]:
    data = viewer.dataset(FLOW)
    return [float(data[name]) for name in ("x", "y", "scale")]


def _at_rest(viewer: Viewer) -> list[float]:
    """Where the picture is once it stays there: what comes to be beside it has it fit anew."""
    viewer.wait_for_quiet()
    seen = _seen(viewer)
    viewer.page.wait_for_timeout(WRITTEN_MS)
    return seen if _seen(viewer) == seen else _at_rest(viewer)


def _wait_for_seen(viewer: Viewer, wanted: tuple[float, float, float], within: float = 0.01) -> None:
    """Until the picture's place is the one wanted: a slow browser shows some of those on the way.

    `within`: how far its corner may be off.
    """
    until = time.monotonic() + 30
    while not (is_there := _seen(viewer) == [approx(place, abs=within) for place in wanted]):
        if time.monotonic() > until:
            break
        viewer.page.wait_for_timeout(50)
    assert is_there, (_seen(viewer), wanted)


@pytest.mark.glance
def test_fingers_zoom_and_choose_in_the_lanes(open_viewer: OpenViewer) -> None:
    viewer = open_viewer(has_touch=True)
    page = viewer.open("shapes-full", view="processes")
    fingers = Fingers(viewer, page.locator(LANES))
    fingers.tap((600, 40))
    page.wait_for_url("**&at=*")
    at = viewer.state()["at"]
    fingers.move(((500, 60), (400, 60)), ((600, 60), (700, 60)))
    expect(page.get_by_role("button", name="Show all of time")).to_be_visible()
    viewer.wait_for_quiet()
    assert (viewer.state()["at"], "range" in viewer.state()) == (at, False)
    fingers.move(((500, 60), (650, 60)))
    page.wait_for_url("**range=*")
    assert viewer.state()["at"] == at
