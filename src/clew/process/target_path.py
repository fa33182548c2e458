"""Paths as a thread of a target sees them: from its own root and working directory, with its own /proc/self.

Runs in the controller. Nothing is opened for reading: what is found may be a pipe or a device. A file system that does
not answer makes the caller wait.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from clew.address import Pid, Tid
from clew.process.attachable import tid_inside
from clew.process.identity import read_group
from clew.process.linux import PROC_SUPER_MAGIC, file_system_type

__all__ = ["TargetPaths"]

MAX_LINKS: Final = 40
"""As many symbolic links as the kernel follows (path_resolution(7))."""

_PROC_ROOT_INODE: Final = 1
_PATH: Final = os.O_PATH | os.O_CLOEXEC


class TargetPaths:
    """The view of thread `tid`. A context manager."""

    def __init__(self, tid: Tid) -> None:
        """Raises OSError if it is gone, or may not be looked at."""
        self._tid = tid
        self._root = os.open(f"/proc/{tid}/root", _PATH | os.O_DIRECTORY)

    def __enter__(self) -> TargetPaths:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def open(self, path: bytes, descriptor: int | None = None) -> int:
        """What the thread finds at `path`, as an O_PATH descriptor, which is the caller's.

        A relative path starts at the directory that the thread has as `descriptor`, None: at its working directory; an
        empty one means what that descriptor is of. Raises OSError.
        """
        start = "cwd" if descriptor is None else f"fd/{descriptor}"
        at = os.open(f"/proc/{self._tid}/{start}", _PATH)
        try:
            names = path.split(b"/")[::-1]
            if path.startswith(b"/"):
                at = _replace(at, os.dup(self._root))
            n_links = 0
            while names:
                name = names.pop()
                if name in (b"", b".") or (name == b".." and os.path.sameopenfile(at, self._root)):
                    continue
                found = os.open(name, _PATH | os.O_NOFOLLOW, dir_fd=at)
                if not stat.S_ISLNK(os.fstat(found).st_mode):
                    at = _replace(at, found)
                    continue
                n_links += 1
                try:
                    target = self._read_link(at, name, found)
                finally:
                    os.close(found)
                if n_links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if target is None:
                    at = _replace(at, os.open(name, _PATH, dir_fd=at))
                    continue
                names += target.split(b"/")[::-1]
                if target.startswith(b"/"):
                    at = _replace(at, os.dup(self._root))
            return at
        except BaseException:
            os.close(at)
            raise

    def _read_link(self, directory: int, name: bytes, link: int) -> bytes | None:
        """Where a symbolic link leads; None for one of /proc that leads to a file itself, not to a name (proc(5))."""
        if file_system_type(directory) != PROC_SUPER_MAGIC:
            return os.readlink(b"", dir_fd=link)
        if os.fstat(directory).st_ino != _PROC_ROOT_INODE:
            return None
        if name not in (b"self", b"thread-self"):
            return os.readlink(b"", dir_fd=link)
        # The link itself would tell who is reading it.
        pid, tid = read_group(self._tid), self._tid
        if os.fstat(directory).st_dev != os.stat("/proc").st_dev:
            pid, tid = Pid(tid_inside(Tid(pid))), tid_inside(tid)
        return f"{pid}".encode() if name == b"self" else f"{pid}/task/{tid}".encode()


def _replace(old: int, new: int) -> int:
    os.close(old)
    return new
