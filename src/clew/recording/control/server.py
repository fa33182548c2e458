"""Listens to whoever controls a running recording or session, in its own loop: nothing here ever waits.

Runs in the controller, in its one thread. Only processes of the same user are heard, and none of those that are
recorded: a target could otherwise end its own recording.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from clew.address import Pid
from clew.dataclass import dataclass
from clew.errors import ClewError
from clew.recording.control.sockets import MAX_LINE_BYTES, folder_to_listen_in, name_of_socket, peer_of, remove_left

__all__ = ["Command", "ControlServer"]

MAX_CLIENTS: Final = 32

Command = Callable[[dict[str, Any]], Iterator[dict[str, Any] | None]]
"""Does what is asked, step by step: None while it has to wait for the target, then its answer. Raises ClewError."""


@dataclass
class _Client:
    connection: socket.socket
    asked: bytes = b""
    answer: bytes = b""
    steps: Iterator[dict[str, Any] | None] | None = None
    is_over: bool = False


class ControlServer:
    """A socket and who speaks through it. `watch` and `forget` have the loop wake for a descriptor, or no longer.

    `is_refused` says whether a process may not be heard. `place` is where the socket is made, in a folder that nobody
    else can reach into; None: where those of recordings are. Where none can be made nobody is heard: `path` is None.
    """

    def __init__(
        self,
        do: Command,
        is_refused: Callable[[Pid], bool],
        watch: Callable[[int], None],
        forget: Callable[[int], None],
        place: Path | None = None,
    ) -> None:
        self._do, self._is_refused, self._watch, self._forget = do, is_refused, watch, forget
        self._clients: list[_Client] = []
        self._listener: socket.socket | None = None
        self.path: Path | None = None
        folder = folder_to_listen_in() if place is None else place.parent
        if folder is None:
            return
        remove_left(folder)
        path = name_of_socket(folder) if place is None else place
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            # One of that name is of a process that is gone. Whoever finds a socket that nobody listens at removes it.
            unfinished = path.with_suffix(".unfinished")
            unfinished.unlink(missing_ok=True)
            listener.bind(os.fspath(unfinished))
            listener.listen(MAX_CLIENTS)
            os.replace(unfinished, path)
        except OSError:
            listener.close()
            return
        self._listener, self.path = listener, path
        self._watch(listener.fileno())

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return any(client.steps is not None for client in self._clients)

    def advance(self) -> None:
        """Hear who has come, go on with what is asked, answer."""
        if self._listener is None:
            return
        self._accept()
        for client in list(self._clients):
            if client.steps is None and not client.answer:
                self._read(client)
            if client.steps is not None:
                self._go_on(client)
            if client.answer:
                self._write(client)
            if client.is_over:
                self._clients.remove(client)
                self._forget(client.connection.fileno())
                client.connection.close()

    def close(self) -> None:
        """Listen no more; who waits for an answer gets none."""
        for client in self._clients:
            self._forget(client.connection.fileno())
            client.connection.close()
        self._clients.clear()
        if self._listener is not None and self.path is not None:
            self._forget(self._listener.fileno())
            self._listener.close()
            self._listener = None
            with contextlib.suppress(OSError):
                self.path.unlink()

    def _accept(self) -> None:
        assert self._listener is not None
        with contextlib.suppress(OSError):
            while len(self._clients) < MAX_CLIENTS:
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                pid, uid = peer_of(connection)
                if uid not in (os.geteuid(), 0) or self._is_refused(pid):
                    connection.close()
                    continue
                self._clients.append(_Client(connection))
                self._watch(connection.fileno())

    def _read(self, client: _Client) -> None:
        try:
            piece = client.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        client.asked += piece
        line, separator, rest = client.asked.partition(b"\n")
        if not separator:
            client.is_over = not piece or len(client.asked) > MAX_LINE_BYTES
            return
        client.asked = rest
        try:
            question = json.loads(line)
            if not isinstance(question, dict):
                raise ValueError("no object")
        except ValueError as error:
            client.answer = _encode({"error": f"not a question: {error}"})
            return
        client.steps = self._do(question)

    def _go_on(self, client: _Client) -> None:
        assert client.steps is not None
        try:
            answer = next(client.steps)
        except StopIteration:
            answer = {}
        except ClewError as error:
            answer = {"error": error.message}
        except Exception as error:
            # Whatever went wrong with one question: the recording goes on.
            answer = {"error": f"internal error: {type(error).__name__}: {error}"}
        if answer is not None:
            client.steps, client.answer = None, _encode(answer)

    def _write(self, client: _Client) -> None:
        try:
            client.answer = client.answer[client.connection.send(client.answer) :]
        except BlockingIOError:
            return
        except OSError:
            client.is_over, client.answer = True, b""


def _encode(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode("ascii") + b"\n"
