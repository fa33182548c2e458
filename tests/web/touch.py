"""Fingers on the page: what a touch screen sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from playwright.sync_api import Locator

from tests.web.viewer import Viewer

__all__ = ["Fingers", "Place"]

Place = tuple[float, float]
_STEPS: Final = 4


class Fingers:
    """Up to two fingers, of a page opened with `has_touch`. Places are pixels from an element's top left corner."""

    def __init__(self, viewer: Viewer, on: Locator) -> None:
        self._session = viewer.context.new_cdp_session(viewer.page)
        box = on.bounding_box()
        assert box is not None
        self._corner = box["x"], box["y"]

    def tap(self, at: Place) -> None:
        """One finger, down and up."""
        self._send("touchStart", [at])
        self._send("touchEnd", [])

    def move(self, *ways: tuple[Place, Place]) -> None:
        """One or two fingers, each down at one place, moved to another, and up."""
        for n in range(len(ways)):
            self._send("touchStart", [begin for begin, _ in ways[: n + 1]])
        for step in range(1, _STEPS + 1):
            part = step / _STEPS
            self._send("touchMove", [tuple(a + (b - a) * part for a, b in zip(*way, strict=True)) for way in ways])
        for n in reversed(range(len(ways))):
            self._send("touchEnd", [end for _, end in ways[:n]])

    def _send(self, kind: str, places: Sequence[Sequence[float]]) -> None:
        points = [
            {"x": self._corner[0] + place[0], "y": self._corner[1] + place[1], "id": number}
            for number, place in enumerate(places)
        ]
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
