"""A socket that listens, for a server that is started later.

Runs in the controller. `clew record --view` opens it before the target runs: nothing heavy is imported here.
"""

from __future__ import annotations

import errno
import secrets
import socket
from typing import Final

from clew.errors import UsageError

__all__ = ["ALL_ADDRESSES", "DEFAULT_PORT", "make_token", "make_url", "open_socket"]

DEFAULT_PORT: Final = 7777
_PORTS_TRIED: Final = 100
_TOKEN_BYTES: Final = 16
ALL_ADDRESSES: Final = ("0.0.0.0", "::")


def make_token() -> str:
    """A secret for those who may ask."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def make_url(host: str, port: int, token: str, *, is_live: bool = False) -> str:
    """The address to open; what is behind # stays in the browser. `is_live`: a recording that goes on."""
    name = socket.gethostname() if host in ALL_ADDRESSES else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/#token={token}{'&live=1' if is_live else ''}"


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
