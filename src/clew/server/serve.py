"""Starts the server: makes the token, says the address, serves until it is told to stop.

Runs in the controller.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.errors import ViewerError
from clew.recording.control.sockets import peer_of
from clew.server.app import PAGE_DIRECTORY, make_app
from clew.server.listening import ALL_ADDRESSES, make_token, make_url
from clew.server.live_control import LiveControl
from clew.server.live_session import LiveSession
from clew.server.live_socket import LiveBroadcast
from clew.server.security import HostNames
from clew.server.served_trace import ServedTrace

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["Address", "serve", "serve_recording"]

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MOST_SAID_BYTES: Final = 1 << 16
"""A page says little over a WebSocket."""


@dataclass(frozen=True)
class Address:
    """Where the server listens: what it was told, and the port it has."""

    host: str
    port: int

    @property
    def hosts(self) -> HostNames:
        """What requests may call it."""
        if self.host in ALL_ADDRESSES:
            return HostNames(frozenset({"localhost", socket.gethostname().lower()}), any_address=True)
        names = {f"[{self.host}]" if ":" in self.host else self.host.lower()}
        return HostNames(frozenset(names | _LOOPBACK if names & _LOOPBACK else names))

    def url(self, token: str) -> str:
        """The address to open; what is behind # stays in the browser."""
        return make_url(self.host, self.port, token)


def serve(
    directories: Sequence[Path],
    listening: socket.socket,
    host: str,
    on_ready: Callable[[str], None],
    token: str | None = None,
    events: Sequence[Path] = (),
) -> bool:
    """Serve the traces in `directories` until SIGINT or SIGTERM, or until the page says so: whether the page did.

    `events` are folders of events of probes, which are shown with the first one.

    `on_ready` is given the address once they are open. A signal then does what it does to this process anyway, which
    may be nothing.

    Raises TraceError where one can't be opened, ViewerError where the page was not built into this package.
    """
    _check_page()
    served = [ServedTrace(one, index, () if index else events) for index, one in enumerate(directories)]
    address = Address(host, listening.getsockname()[1])
    token = token or make_token()
    on_ready(address.url(token))
    return _run(lambda stop: make_app(served, token, address.hosts, commands={"stop": stop}), listening)


def serve_recording(
    directory: Path,
    listening: socket.socket,
    host: str,
    token: str,
    recorder: socket.socket,
    journal: int,
    on_ready: Callable[[], None],
) -> None:
    """Serve the recording into `directory` while it goes on, and then its trace.

    Until SIGINT, SIGTERM, or the recorder, which is at the other end of `recorder`, is gone. `journal` is a descriptor
    of its journal.
    """
    served: list[ServedTrace] = []
    session = LiveSession(directory, recorder, journal, served)
    broadcast = LiveBroadcast(session)
    hosts = Address(host, listening.getsockname()[1]).hosts
    recorder_pid, _ = peer_of(recorder)
    control = LiveControl(session, recorder_pid)
    _run(lambda _: make_app(served, token, hosts, live=broadcast, control=control), listening, session, on_ready)


def _check_page() -> None:
    """Raises ViewerError where the page was not built into this package."""
    if not (PAGE_DIRECTORY / "index.html").is_file():
        raise ViewerError(PAGE_DIRECTORY, "the viewer's page is not built; `make build` in the repository does it")


def _run(
    make: Callable[[Callable[[], None]], Starlette],
    listening: socket.socket,
    session: LiveSession | None = None,
    on_ready: Callable[[], None] = lambda: None,
) -> bool:
    """Serve the application that `make` makes, given what stops it; whether that was called."""
    import uvicorn

    is_stopped = False

    def stop() -> None:
        nonlocal is_stopped
        is_stopped = server.should_exit = True

    config = uvicorn.Config(
        make(stop),
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
        # In Python alone, by those of h11, which serves HTTP here: what is large goes out, where nothing is masked.
        ws="none" if session is None else "wsproto",
        ws_max_size=_MOST_SAID_BYTES,
        ws_per_message_deflate=False,
    )
    server = uvicorn.Server(config)
    if session is not None:
        session.on_recorder_gone = stop
        session.start()
    on_ready()
    server.run(sockets=[listening])
    return is_stopped
