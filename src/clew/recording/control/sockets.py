"""Where running recordings can be spoken to: one socket for each, in a folder that is the user's alone.

Runs in the controller, and in whoever speaks to it. One line of JSON asks, one line of JSON answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from clew.address import Pid
from clew.errors import ControlError

__all__ = [
    "MAX_LINE_BYTES",
    "ask",
    "connect_to_each",
    "find_sessions",
    "folder_to_listen_in",
    "name_of_socket",
    "peer_of",
    "remove_left",
]

MAX_LINE_BYTES: Final = 1 << 22
ANSWER_SECONDS: Final = 30.0
_SUFFIX: Final = ".socket"
_MOST_LOOKED_AT: Final = 64
_PEER: Final = struct.Struct("iII")
"""struct ucred: process, user, group (unix(7), SO_PEERCRED)."""


def _folders() -> list[Path]:
    """Where sockets may be, the best place first."""
    found = [Path("/tmp") / f"clew-{os.geteuid()}"]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime):
        found.insert(0, Path(runtime) / "clew")
    return found


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def folder_to_listen_in() -> Path | None:
    """A folder that nobody else can reach into, made if it is not there; None where there can be none."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_private(folder):
                return folder
    return None


def name_of_socket(folder: Path) -> Path:
    """A name for this process's socket."""
    return folder / f"{os.getpid()}{_SUFFIX}"


def remove_left(folder: Path) -> None:
    """Remove sockets at which nobody listens: those of recordings that were killed."""
    for _ in connect_to_each(sorted(folder.glob(f"*{_SUFFIX}"))[:_MOST_LOOKED_AT]):
        pass


def connect_to_each(paths: Iterable[Path]) -> Iterator[tuple[Path, socket.socket]]:
    """Connections to those sockets at which somebody listens, each of them closed then; the others are removed."""
    for path in paths:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as connection:
            try:
                connection.connect(os.fspath(path))
            except ConnectionRefusedError:
                with contextlib.suppress(OSError):
                    path.unlink()
                continue
            except OSError:
                # Busy, or not this user's: somebody's all the same.
                continue
            yield path, connection


def find_sessions() -> Iterator[Path]:
    """The sockets of recordings that may be running, those of this user."""
    for folder in _folders():
        if _is_private(folder):
            yield from sorted(folder.glob(f"*{_SUFFIX}"))


def peer_of(connection: socket.socket) -> tuple[Pid, int]:
    """The process at the other end, and its user: of a pair of sockets, who made the pair. Raises OSError."""
    pid, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return Pid(pid), uid


def ask(
    path: Path, question: dict[str, Any], timeout_seconds: float = ANSWER_SECONDS, whom: str = "the recording"
) -> dict[str, Any] | None:
    """What the recording, or `whom` else, answers that listens at `path`; None if there is none any more.

    Raises ControlError if it refuses, or does not answer in time. One that ends meanwhile is none.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_seconds)
        try:
            connection.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        except OSError as error:
            raise ControlError(f"{path}: {error.strerror or error}") from error
        try:
            connection.sendall(json.dumps(question).encode() + b"\n")
            line = _read_line(connection, whom)
        except TimeoutError as error:
            raise ControlError(f"{whom} did not answer within {timeout_seconds:g} s") from error
        except OSError:
            return None
    if not line:
        return None
    try:
        answer = json.loads(line)
    except ValueError as error:
        raise ControlError(f"{whom} answered what it should not") from error
    if not isinstance(answer, dict):
        raise ControlError(f"{whom} answered what it should not")
    if "error" in answer:
        raise ControlError(str(answer["error"]))
    return answer


def _read_line(connection: socket.socket, whom: str) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = connection.recv(1 << 16)
        if not piece:
            break
        line += piece
        if len(line) > MAX_LINE_BYTES:
            raise ControlError(f"{whom} answered more than it should")
    return line
