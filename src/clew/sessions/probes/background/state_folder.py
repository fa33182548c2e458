"""Where sessions of probes are found: a socket and a log of each, in a folder that is the user's alone.

Runs in the controller, and in whoever speaks to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path
from typing import Final

from clew.errors import ControlError, UsageError
from clew.recording.control.sockets import folder_to_listen_in

__all__ = ["DEFAULT_SESSION", "SessionPlace", "find_names", "place_of"]

DEFAULT_SESSION: Final = "default"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,47}")
_FOLDER: Final = "probes"
_SOCKET, _LOG = ".socket", ".log"
_MAX_SOCKET_BYTES: Final = 107
"""Of a path that a socket can have (unix(7))."""


class SessionPlace:
    """The files of the session `name`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.socket, self.log = folder / f"{name}{_SOCKET}", folder / f"{name}{_LOG}"

    def take(self) -> int | None:
        """Have the log, and with it the name, as long as the descriptor that is given is open; None: somebody has it.

        Raises OSError.
        """
        while True:
            log = os.open(self.log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(log)
                return None
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(log), os.stat(self.log)):
                    os.ftruncate(log, 0)
                    return log
            # Who had it has taken it away meanwhile.
            os.close(log)


def place_of(name: str) -> SessionPlace:
    """Where the session of that name is, or will be. Raises UsageError, ControlError."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a session: letters, digits, _ . -, at most 48, were expected")
    place = SessionPlace(_folder(), name)
    if len(os.fsencode(place.socket)) > _MAX_SOCKET_BYTES:
        raise ControlError(f"{place.socket}: too long for a socket; set XDG_RUNTIME_DIR to a shorter path")
    return place


def find_names() -> list[str]:
    """The sessions that there may be, of this user. Raises ControlError."""
    names = (path.name.removesuffix(_SOCKET) for path in _folder().glob(f"*{_SOCKET}"))
    return sorted(filter(_NAME.fullmatch, names))


def _folder() -> Path:
    """Nobody else can reach into what it is in, nor make one in its place."""
    above = folder_to_listen_in()
    if above is None:
        raise ControlError("there is no place for sessions: neither XDG_RUNTIME_DIR nor /tmp has a folder of your own")
    folder = above / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
