"""Asks an application as a server would, without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.server.container import decode_container
from clew.server.security import HostNames
from clew.store.columns import Array

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

__all__ = ["LOOPBACK", "TOKEN", "Answer", "ask", "ask_well"]

TOKEN = "the-secret"
LOOPBACK = HostNames(frozenset({"127.0.0.1", "localhost", "[::1]"}))
_HOST = "127.0.0.1:7777"


@dataclass(frozen=True)
class Answer:
    """What an application answered."""

    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        """What it says, as JSON."""
        return json.loads(self.content)

    def arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What the container that it is has as `meta`, and its arrays."""
        _, meta, arrays = decode_container(self.content)
        return meta, arrays


def ask(app: ASGIApp, target: str, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> Answer:
    """Send GET `target` with just these headers; POST with a `body`."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET" if body is None else "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7777),
    }
    sent: list[Message] = []
    received = False

    async def receive() -> Message:
        nonlocal received
        if received:
            # Whoever asks stays until all is sent.
            await asyncio.Event().wait()
        received = True
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    # In a thread of its own: tests in a browser leave a loop in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, app(scope, receive, send)).result()  # type: ignore[arg-type]
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}, content)


def ask_well(app: ASGIApp, target: str) -> Answer:
    """Send GET `target` as the page does."""
    return ask(app, target, [("Host", _HOST), ("Authorization", f"Bearer {TOKEN}")])
