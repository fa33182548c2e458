"""Watches a recording as a page does: a WebSocket, and the rows that frames tell of.

Runs on the machine that tests. Knows the frames; does not know how the server makes them.
"""

from __future__ import annotations

import json
import socket
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, RejectConnection, Request, TextMessage

from clew.server.container import decode_container
from clew.store.columns import Array
from tests.e2e.attaching import LIMIT_SECONDS

__all__ = ["LiveClient", "LivePicture", "RefusedError"]


class RefusedError(Exception):
    """The server did not accept the WebSocket; `status` is what it answered."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


class LivePicture:
    """What the frames told so far: rows by their numbers, as dictionaries, those that are gone left out."""

    def __init__(self) -> None:
        self.epoch, self.sequence, self.process = "", -1, -1
        self.meta: dict[str, Any] = {}
        self.images: list[dict[str, Any]] = []
        self.processes: list[dict[str, Any]] = []
        self.rows: dict[str, dict[int, dict[str, Any]]] = {"function": {}, "block": {}, "edge": {}}
        self.counts: dict[str, dict[int, float]] = {"block": {}, "edge": {}}
        self.threads: list[dict[str, Any]] = []

    def apply(self, frame: bytes) -> None:
        """Take what a frame tells."""
        kind, meta, arrays = decode_container(frame)
        assert kind == "live"
        self.meta = meta
        if meta["since"] < 0:
            for table in self.rows.values():
                table.clear()
            for counts in self.counts.values():
                counts.clear()
            self.images = []
        else:
            assert (meta["epoch"], meta["since"], meta["process"]) == (self.epoch, self.sequence, self.process)
        self.epoch, self.sequence, self.process = meta["epoch"], meta["sequence"], meta["process"]
        self.images = meta["images"] if meta["images"] is not None else self.images
        self.processes = meta["processes"] if meta["processes"] is not None else self.processes
        for name, table in self.rows.items():
            if name in arrays:
                _apply_rows(name, table, arrays)
        for name, counts in self.counts.items():
            if f"counted_{name}" in arrays:
                executions = arrays[f"counted_{name}_executions"].tolist()
                counts.update(zip(arrays[f"counted_{name}"].tolist(), executions, strict=True))
        if "thread_tid" in arrays:
            names = _texts(arrays, "thread_name")
            columns = [arrays[f"thread_{name}"].tolist() for name in ("tid", "running", "instructions", "executions")]
            keys = ("name", "tid", "running", "instructions", "executions")
            self.threads = [dict(zip(keys, row, strict=True)) for row in zip(names, *columns, strict=True)]

    def named(self) -> dict[str, float]:
        """Executions of each function by its name, over all its blocks."""
        found: dict[str, float] = {}
        for number, block in self.rows["block"].items():
            name = self.rows["function"][block["function"]]["name"]
            found[name] = found.get(name, 0.0) + self.counts["block"].get(number, 0.0)
        return found


def _apply_rows(name: str, table: dict[int, dict[str, Any]], arrays: dict[str, Array]) -> None:
    prefix = f"{name}_"
    columns = {key.removeprefix(prefix): value.tolist() for key, value in arrays.items() if key.startswith(prefix)}
    columns = {key: value for key, value in columns.items() if "." not in key}
    if f"{name}_name.ends" in arrays:
        columns["name"] = _texts(arrays, f"{name}_name")
    for at, number in enumerate(arrays[name].tolist()):
        row = {key: value[at] for key, value in columns.items()}
        if row.pop("gone"):
            table.pop(number, None)
        else:
            table[number] = row


def _texts(arrays: dict[str, Array], name: str) -> list[str]:
    content, start, found = arrays[f"{name}.bytes"].tobytes(), 0, []
    for end in arrays[f"{name}.ends"].tolist():
        found.append(content[start:end].decode())
        start = end
    return found


class LiveClient:
    """A connection to the recording at `url`, which has the token. Raises RefusedError."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
        host: str | None = None,
        path: str = "/api/live",
    ) -> None:
        address = urllib.parse.urlsplit(url)
        assert address.hostname is not None and address.port is not None
        known = dict(urllib.parse.parse_qsl(address.fragment))["token"]
        self._socket = socket.create_connection((address.hostname, address.port), timeout=LIMIT_SECONDS)
        self._connection = WSConnection(ConnectionType.CLIENT)
        offered = ["clew.live", f"clew.token.{known if token is None else token}"]
        request = Request(
            host=host or f"{address.hostname}:{address.port}",
            target=path,
            subprotocols=offered,
            extra_headers=list(headers),
        )
        self._socket.sendall(self._connection.send(request))
        self._events = self._iter_events()
        event = next(self._events)
        if not isinstance(event, AcceptConnection):
            self.close()
            raise RefusedError(event.status_code if isinstance(event, RejectConnection) else 0)
        self.subprotocol = event.subprotocol

    def say(self, **words: Any) -> None:
        """Say something, as JSON."""
        self.say_text(json.dumps(words))

    def say_text(self, text: str) -> None:
        """Say anything."""
        self._socket.sendall(self._connection.send(TextMessage(data=text)))

    def read_frame(self) -> bytes:
        """The next frame. Raises ConnectionError if the server closes instead."""
        parts = []
        for event in self._events:
            if isinstance(event, BytesMessage):
                parts.append(bytes(event.data))
                if event.message_finished:
                    return b"".join(parts)
            elif isinstance(event, CloseConnection):
                break
        raise ConnectionError("the server closed")

    def begin(self, picture: LivePicture, process: int = -1) -> None:
        """Say what is there already, and what is wanted."""
        self.say(epoch=picture.epoch, sequence=picture.sequence, has=picture.process, process=process)

    def follow(
        self, picture: LivePicture, until: Callable[[LivePicture], bool], seconds: float = LIMIT_SECONDS
    ) -> None:
        """Take frames until something is so; AssertionError after `seconds`."""
        limit = time.monotonic() + seconds
        while not until(picture):
            assert time.monotonic() < limit, picture.meta
            picture.apply(self.read_frame())
            self.say(ack=picture.sequence)

    def close(self) -> None:
        """Go, without a word."""
        self._socket.close()

    def _iter_events(self) -> Iterator[Any]:
        while True:
            yield from self._connection.events()
            data = self._socket.recv(1 << 20)
            if not data:
                return
            self._connection.receive_data(data)
