"""Starts the server: finds a port, makes the token, says the address, serves until it is told to stop.

Runs in the controller.
"""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clew.errors import UsageError, ViewerError
from clew.server.app import PAGE_DIRECTORY, make_app
from clew.server.security import HostNames
from clew.server.served_trace import ServedTrace

__all__ = ["DEFAULT_PORT", "Address", "open_socket", "serve"]

DEFAULT_PORT: Final = 7777
_PORTS_TRIED: Final = 100
_TOKEN_BYTES: Final = 16
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ALL_ADDRESSES: Final = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Address:
    """Where the server listens: what it was told, and the port it has."""

    host: str
    port: int

    @property
    def hosts(self) -> HostNames:
        """What requests may call it."""
        if self.host in _ALL_ADDRESSES:
            return HostNames(frozenset({"localhost", socket.gethostname().lower()}), any_address=True)
        names = {f"[{self.host}]" if ":" in self.host else self.host.lower()}
        return HostNames(frozenset(names | _LOOPBACK if names & _LOOPBACK else names))

    def url(self, token: str) -> str:
        """The address to open; what is behind # stays in the browser."""
        name = socket.gethostname() if self.host in _ALL_ADDRESSES else self.host
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/#token={token}"


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises UsageError where the port is in use, with the next free one, or no address."""
    try:
        return _bind(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            free = next((other for other in range(port + 1, port + _PORTS_TRIED) if _is_free(host, other)), None)
            way_out = "" if free is None else f"; {free} is free: --port {free}"
            raise UsageError(f"port {port} is in use{way_out}") from error
        if error.errno == errno.EACCES:
            raise UsageError(f"port {port} needs privileges; choose one from 1024 on") from error
        raise UsageError(f"{host}: can't listen there: {error.strerror or error}") from error


def serve(
    directories: Sequence[Path],
    listening: socket.socket,
    host: str,
    on_ready: Callable[[str], None],
    token: str | None = None,
) -> None:
    """Serve the traces in `directories` until SIGINT or SIGTERM, or until the page says so.

    `on_ready` is given the address once they are open.

    Raises TraceError where one can't be opened, ViewerError where the page was not built into this package.
    """
    import uvicorn

    if not (PAGE_DIRECTORY / "index.html").is_file():
        raise ViewerError(PAGE_DIRECTORY, "the viewer's page is not built; `make build` in the repository does it")
    served = [ServedTrace(directory, index) for index, directory in enumerate(directories)]
    address = Address(host, listening.getsockname()[1])
    token = token or secrets.token_urlsafe(_TOKEN_BYTES)

    def stop() -> None:
        server.should_exit = True

    config = uvicorn.Config(
        make_app(served, token, address.hosts, commands={"stop": stop}),
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    server = uvicorn.Server(config)
    on_ready(address.url(token))
    server.run(sockets=[listening])


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        # A port whose last connections are only just over is not in use.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening


def _is_free(host: str, port: int) -> bool:
    try:
        _bind(host, port).close()
    except (OSError, OverflowError):
        return False
    return True
