"""How frames go out: at most so many a second, one at a time, each behind the one that the page has."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect

from clew.server.live_session import LiveSession
from clew.server.live_socket import LiveBroadcast

SECONDS = 1.0


@dataclass
class Session:
    """A recording that changes all the time."""

    epoch: str = "one"
    on_news: Callable[[], None] = lambda: None
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def sequence(self) -> int:
        return time.monotonic_ns()

    def watch(self, process: int) -> None:
        pass

    unwatch = watch

    def encode(self, process: int, epoch: str, sequence: int, has: int) -> tuple[bytes, int, int]:
        self.asked.append((process, epoch, sequence, has))
        return b"frame", len(self.asked), 7


class Page:
    """A page in the place of a WebSocket: it says where it is, and acknowledges `n_acknowledged` frames at once."""

    def __init__(self, n_acknowledged: int) -> None:
        self.n_frames = 0
        self._left = n_acknowledged
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._said.put_nowait(json.dumps({"epoch": "old", "sequence": 5, "has": 7, "process": 7}))

    async def accept(self, subprotocol: str) -> None:
        assert subprotocol == "clew.live"

    async def receive_text(self) -> str:
        said = await self._said.get()
        if not said:
            raise WebSocketDisconnect
        return said

    async def send_bytes(self, frame: bytes) -> None:
        assert frame == b"frame"
        self.n_frames += 1
        if self._left:
            self._left -= 1
            self._said.put_nowait(json.dumps({"ack": self.n_frames}))

    def go(self) -> None:
        self._said.put_nowait("")

    async def close(self) -> None:
        pass


def serve(n_acknowledged: int) -> tuple[Session, Page]:
    """What a page was told that is there for `SECONDS`, while there is something new all the time."""
    session = Session()

    async def run() -> Page:
        page = Page(n_acknowledged)
        broadcast = LiveBroadcast(cast(LiveSession, session))
        serving = asyncio.create_task(broadcast.serve(cast(WebSocket, page)))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            session.on_news()
            await asyncio.sleep(0.001)
        page.go()
        await asyncio.wait_for(serving, 10)
        return page

    # A browser's tests in the same process have a loop in this thread.
    with ThreadPoolExecutor(1) as other:
        return session, other.submit(asyncio.run, run()).result()


def test_no_more_than_thirty_frames_go_out_a_second() -> None:
    session, page = serve(1 << 30)
    assert 5 < page.n_frames <= 30 * SECONDS + 1
    # The first one is told where it was, each other one what it was told last.
    assert session.asked[:3] == [(7, "old", 5, 7), (7, "one", 1, 7), (7, "one", 2, 7)]


@pytest.mark.parametrize("n_acknowledged", [0, 3])
def test_a_page_that_is_slow_gets_no_more_than_it_takes(n_acknowledged: int) -> None:
    assert serve(n_acknowledged)[1].n_frames == n_acknowledged + 1
