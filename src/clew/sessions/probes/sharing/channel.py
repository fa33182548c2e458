"""What two sessions of probes tell each other through a socket: messages of JSON, with bytes and descriptors beside it.

Runs in the controller, in one thread at each end. What comes from the other end is not believed: sizes are bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["Channel", "Message"]

_HEAD: Final = struct.Struct("<III")
"""Bytes of JSON, bytes beside it, descriptors."""
_MAX_TEXT_BYTES: Final = 1 << 26
_MAX_DATA_BYTES: Final = 1 << 30
_MAX_DESCRIPTORS: Final = 4
_PIECE_BYTES: Final = 1 << 20


class Message(NamedTuple):
    """`told` has a `do`, which says what it is."""

    told: dict[str, Any]
    data: bytes
    fds: list[int]

    @property
    def do(self) -> str:
        """What it is."""
        found = self.told.get("do")
        return found if isinstance(found, str) else ""


class Channel:
    """Of a connected socket, which it owns. Nothing here waits but `ask` and `flush`."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._came = bytearray()
        self._fds: list[int] = []
        self._waiting: list[tuple[memoryview, list[int]]] = []
        """What is not sent yet, with the descriptors that go with its first byte."""
        self.n_waiting = 0
        """Bytes that are not sent yet."""
        self.is_closed = False

    def fileno(self) -> int:
        """Of the socket; -1 once it is closed."""
        return self._connection.fileno()

    def send(self, told: dict[str, Any], data: bytes = b"", fds: Sequence[int] = ()) -> None:
        """Send a message, as far as there is room; the rest later. `fds` stay the caller's."""
        if self.is_closed:
            return
        text = json.dumps(told).encode("ascii")
        own = [os.dup(fd) for fd in fds]
        self._waiting.append((memoryview(_HEAD.pack(len(text), len(data), len(own)) + text + data), own))
        self.n_waiting += _HEAD.size + len(text) + len(data)
        self.advance()

    def advance(self) -> None:
        """Send what there is room for."""
        while self._waiting and not self.is_closed:
            data, fds = self._waiting[0]
            try:
                n = socket.send_fds(self._connection, [data], fds) if fds else self._connection.send(data)
            except BlockingIOError:
                return
            except OSError:
                # What it has said before it ended is there to be received still.
                self._drop_waiting()
                return
            for fd in fds:
                os.close(fd)
            self.n_waiting -= n
            self._waiting[0] = (data[n:], [])
            if n == len(data):
                del self._waiting[0]

    def flush(self, seconds: float) -> None:
        """Wait until all is sent, or for so long."""
        deadline = time.monotonic() + seconds
        while self._waiting and not self.is_closed and time.monotonic() < deadline:
            select.select([], [self._connection], [], deadline - time.monotonic())
            self.advance()

    def wait(self, seconds: float) -> bool:
        """Wait until something comes, or for so long; whether it has."""
        with contextlib.suppress(OSError, ValueError):
            return bool(select.select([self._connection], [], [], max(seconds, 0))[0])
        return False

    def receive_one(self) -> Message | None:
        """The next message, if it has come."""
        # What has come behind it is there to be received still.
        return next(self.receive(), None)

    def receive(self) -> Iterator[Message]:
        """The messages that have come. At the end of what comes it `is_closed`."""
        yield from self._take_messages()
        while not self.is_closed:
            try:
                piece, fds, _, _ = socket.recv_fds(self._connection, _PIECE_BYTES, _MAX_DESCRIPTORS)
            except BlockingIOError:
                return
            except OSError:
                piece, fds = b"", []
            self._fds += fds
            if not piece:
                self.close()
                return
            self._came += piece
            yield from self._take_messages()

    def _take_messages(self) -> Iterator[Message]:
        while len(self._came) >= _HEAD.size:
            n_text, n_data, n_fds = _HEAD.unpack_from(self._came)
            if n_text > _MAX_TEXT_BYTES or n_data > _MAX_DATA_BYTES or n_fds > _MAX_DESCRIPTORS:
                self.close()
                return
            end = _HEAD.size + n_text + n_data
            if len(self._came) < end:
                return
            text = bytes(self._came[_HEAD.size : _HEAD.size + n_text])
            data = bytes(self._came[_HEAD.size + n_text : end])
            del self._came[:end]
            fds, self._fds = self._fds[:n_fds], self._fds[n_fds:]
            try:
                told = json.loads(text)
            except ValueError:
                told = None
            if not isinstance(told, dict) or len(fds) < n_fds:
                for fd in fds:
                    os.close(fd)
                self.close()
                return
            yield Message(told, data, fds)

    def close(self) -> None:
        """Say and hear nothing more."""
        self.is_closed = True
        self._connection.close()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        self._drop_waiting()

    def _drop_waiting(self) -> None:
        for fd in (fd for _, fds in self._waiting for fd in fds):
            os.close(fd)
        self._waiting.clear()
        self.n_waiting = 0
