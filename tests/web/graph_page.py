"""The graph view as the tests use it: its canvas, what it tells of its frames, and its pixels."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
from playwright.sync_api import Locator

from clew.store.columns import Array
from tests.web.viewer import Viewer

__all__ = ["CANVAS", "GraphPage", "decode_png"]

CANVAS: Final = "canvas[data-layout-state]"


class GraphPage:
    """The graph view of an open page."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.canvas: Locator = viewer.page.locator(CANVAS)

    def wait_for_layout(self, *states: str, timeout_seconds: float = 60.0) -> None:
        """Until nodes are drawn as the layout wanted has them; by default as they stay."""
        self.viewer.wait_for_data(CANVAS, "layout-state", states or ("final",), timeout_seconds)
        self.viewer.page.wait_for_function(
            "(selector) => Number(document.querySelector(selector).dataset.drawnNodes) > 0", arg=CANVAS
        )

    def wait_for_whole(self) -> None:
        """Until all edges are drawn, too, and the panels around it have what they ask for, and so their heights."""
        self.viewer.wait_for_quiet()
        self.wait_for_layout()
        self.viewer.wait_for_data(CANVAS, "quality", ("whole",), 60.0)

    def number(self, name: str) -> float:
        """A number that the canvas tells: `drawnNodes`, `inFrame`, ..."""
        return float(self.viewer.dataset(CANVAS)[name])

    def place_of_selected(self) -> tuple[float, float]:
        """Where the selected node is, in pixels from the canvas' top left corner."""
        self.viewer.page.wait_for_function(
            "() => document.querySelector('[data-selected-place]')?.dataset.x !== undefined"
        )
        data = self.viewer.dataset("[data-selected-place]")
        return float(data["x"]), float(data["y"])

    def pixels(self, around: tuple[float, float], radius: int) -> Array:
        """What is seen around a place of the canvas: rows of pixels of red, green, blue, 0 to 255."""
        box = self.canvas.bounding_box()
        assert box is not None
        left, top = box["x"] + around[0] - radius, box["y"] + around[1] - radius
        clip = {"x": left, "y": top, "width": 2 * radius + 1, "height": 2 * radius + 1}
        return decode_png(self.viewer.page.screenshot(clip=clip))  # type: ignore[arg-type]


def decode_png(content: bytes) -> Array:
    """Pixels of a PNG of 8 bits a channel, not interlaced, as browsers write them: u8, [row, column, channel]."""
    width, height, depth, kind = struct.unpack_from(">IIBB", content, 16)
    assert depth == 8 and kind in (2, 6) and content[28] == 0
    n = 3 if kind == 2 else 4
    packed, at = b"", 8
    while at < len(content):
        length, name = struct.unpack_from(">I4s", content, at)
        packed += content[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    data = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * n).astype(int)
    rows = np.zeros((height + 1, width + 1, n), int)  # with a row above and a column to the left, of 0
    for y in range(height):
        line = data[y, 1:].reshape(width, n)
        above, row = rows[y], rows[y + 1]
        for x in range(width):
            left, up, corner = row[x], above[x + 1], above[x]
            match data[y, 0]:
                case 1:
                    guess = left
                case 2:
                    guess = up
                case 3:
                    guess = (left + up) // 2
                case 4:
                    far = [abs(left + up - corner - one) for one in (left, up, corner)]
                    from_left = (far[0] <= far[1]) & (far[0] <= far[2])
                    guess = np.where(from_left, left, np.where(far[1] <= far[2], up, corner))
                case _:
                    guess = np.zeros(n, int)
            row[x + 1] = (line[x] + guess) % 256
    found: Array = rows[1:, 1:, :3].astype(np.uint8)
    return found
