"""The WebSocket over which a page watches a recording: frames go out, one at a time, and are acknowledged.

Runs in the controller. A page says where it is, by epoch, process and number in the sequence, and is told what changed
since; so a page whose connection broke goes on where it was, and one that is slow gets fewer frames, not older ones.
What a page says is checked: anybody who has the token may write it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from clew.server.live_session import MOST_PER_SECOND, LiveSession
from clew.server.security import SUBPROTOCOL

__all__ = ["LiveBroadcast"]

STILL_SECONDS: Final = 1.0
"""A page hears so often that all is still there, also where nothing changes."""
ACKNOWLEDGED_SECONDS: Final = 30.0
"""A page that keeps silent for so long about a frame is gone."""
MAX_PROCESSES: Final = 1 << 32


@dataclass
class _Place:
    """What a page has: everything of `process` up to number `sequence` of `epoch`. It asks for process `asked`."""

    epoch: str = ""
    sequence: int = -1
    process: int = -1
    asked: int = -1
    is_told: bool = False
    """It said where it is."""
    is_awaited: bool = False
    """A frame is on its way that it did not acknowledge."""


class LiveBroadcast:
    """Serves pages that watch `session`."""

    def __init__(self, session: LiveSession) -> None:
        self._session = session
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: set[asyncio.Event] = set()
        session.on_news = self._spread

    async def serve(self, socket: WebSocket) -> None:
        """Serve one page until it goes."""
        self._loop = asyncio.get_running_loop()
        await socket.accept(subprotocol=SUBPROTOCOL)
        place, news = _Place(), asyncio.Event()
        self._news.add(news)
        self._session.watch(place.asked)
        listening = asyncio.create_task(self._listen(socket, place, news))
        try:
            await self._tell(socket, place, news, listening)
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            listening.cancel()
            self._news.discard(news)
            self._session.unwatch(place.asked)
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await socket.close()

    async def _tell(self, socket: WebSocket, place: _Place, news: asyncio.Event, listening: asyncio.Task[None]) -> None:
        session, last, told = self._session, 0.0, (-1, -2)
        while not listening.done():
            waited = time.monotonic() - last
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), STILL_SECONDS)
            news.clear()
            if place.is_awaited:
                if time.monotonic() - last > ACKNOWLEDGED_SECONDS:
                    return
                continue
            waited = time.monotonic() - last
            now = session.sequence, place.asked
            if not place.is_told or (now == told and waited < STILL_SECONDS):
                continue
            if waited < 1 / MOST_PER_SECOND:
                await asyncio.sleep(1 / MOST_PER_SECOND - waited)
            place.is_awaited = True
            frame, sequence, process = await run_in_threadpool(
                session.encode, place.asked, place.epoch, place.sequence, place.process
            )
            last, told = time.monotonic(), (sequence, place.asked)
            place.epoch, place.sequence, place.process = session.epoch, sequence, process
            await socket.send_bytes(frame)

    async def _listen(self, socket: WebSocket, place: _Place, news: asyncio.Event) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, ValueError):
            while True:
                said = json.loads(await socket.receive_text())
                if not isinstance(said, dict):
                    return
                self._take(said, place)
                news.set()
        news.set()

    def _take(self, said: dict[str, Any], place: _Place) -> None:
        """Take what a page says. Raises ValueError for what means nothing."""
        if "process" in said:
            asked = _number(said["process"], -1, MAX_PROCESSES)
            self._session.watch(asked)
            self._session.unwatch(place.asked)
            place.asked = asked
        if "epoch" in said:
            place.epoch = str(said["epoch"])[:64]
            place.sequence = _number(said.get("sequence", -1), -1, 1 << 62)
            place.process = _number(said.get("has", -1), -1, MAX_PROCESSES)
            place.is_told = True
        if "ack" in said:
            place.is_awaited = False

    def _spread(self) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        for news in self._news:
            news.set()


def _number(value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{value!r} is no number between {least} and {most}")
    return value
