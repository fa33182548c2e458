"""Where the session is found that has a process: by who has the shared memory open that its runtime has mapped.

Runs in the controller. Each session that has processes listens at a socket, in a folder that is the user's alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from clew.address import Pid
from clew.process.attachable import find_living_task
from clew.process.identity import find_holders
from clew.process.maps import read_maps
from clew.recording.control.sockets import connect_to_each, folder_to_listen_in, peer_of

__all__ = ["Listener", "connect_to_owners", "process_locked"]

_SUFFIX: Final = ".probes"
_N_WAITING: Final = 16
_MAX_PATH_BYTES: Final = 107
"""Of a path that a socket can have (unix(7))."""
_numbers = itertools.count()
_here: dict[str, int] = {}
"""Which thread of this process hears at which socket."""


class Listener:
    """A socket of this session; `path` is None where none can be made."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        folder = folder_to_listen_in()
        if folder is None:
            return
        for _ in _connect_to_all(folder):
            # What nobody hears at is removed.
            pass
        path = folder / f"{os.getpid()}-{next(_numbers)}{_SUFFIX}"
        if len(os.fsencode(path)) > _MAX_PATH_BYTES:
            return
        with contextlib.suppress(OSError):
            # Of a process of that number that is gone.
            path.unlink(missing_ok=True)
            self._socket.bind(os.fspath(path))
            self._socket.listen(_N_WAITING)
            self.path = path
            _here[os.fspath(path)] = threading.get_ident()

    def fileno(self) -> int:
        """Of the socket."""
        return self._socket.fileno()

    def accept(self) -> Iterator[tuple[socket.socket, Pid]]:
        """Who has come since, and which processes these are: of this user, or root's."""
        if self.path is None:
            return
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            try:
                pid, uid = peer_of(connection)
            except OSError:
                uid = -1
            if uid not in (os.geteuid(), 0):
                connection.close()
                continue
            yield connection, pid

    def take_over(self) -> None:
        """This process hears from now on, which is a child of the one that did: who comes sees that."""
        if self.path is not None:
            self._socket.listen(_N_WAITING)
            _here.clear()

    def close(self, *, is_gone: bool = True) -> None:
        """Hear nobody any more. With `is_gone` False somebody else hears there."""
        self._socket.close()
        if self.path is not None:
            _here.pop(os.fspath(self.path), None)
            if is_gone:
                self.path.unlink(missing_ok=True)
            self.path = None


def connect_to_owners(pid: Pid) -> Iterator[tuple[socket.socket, bool]]:
    """Connections to sessions that may have a process; and whether it is this very thread that would have to answer."""
    try:
        mappings = read_maps(find_living_task(pid))
    except OSError:
        return
    holders = set(find_holders(mappings))
    folder = folder_to_listen_in() if holders else None
    if folder is None:
        return
    for path, connection in _connect_to_all(folder):
        with contextlib.suppress(OSError):
            owner, uid = peer_of(connection)
            if uid in (os.geteuid(), 0) and owner in holders:
                own = socket.socket(fileno=os.dup(connection.fileno()))
                yield own, _here.get(os.fspath(path)) == threading.get_ident()


def _connect_to_all(folder: Path) -> Iterator[tuple[Path, socket.socket]]:
    """Connections to all sessions that have processes, each of them closed then."""
    return connect_to_each(sorted(folder.glob(f"*{_SUFFIX}")))


@contextlib.contextmanager
def process_locked(pid: Pid) -> Iterator[None]:
    """Nobody else of this user begins to have that process meanwhile."""
    folder = folder_to_listen_in()
    if folder is None:
        yield
        return
    path = folder / f"{pid}.lock"
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                break
        # Who had it has taken it away meanwhile.
        os.close(fd)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)
