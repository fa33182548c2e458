"""What a thread is about to execute, and whether that can be followed: a look before the call is made.

Runs in the controller. Most of what stands against following is seen when the new program is there. Not so privileges:
the kernel gives a program none that its tracer does not have (cap_bprm_creds_from_file, security/commoncap.c), so that
a set-uid program may have no tracer when the call is made. And what can be told is in the trace before the call.

The target can change the file afterwards. Then it loses privileges of its own.
"""

from __future__ import annotations

import mmap
import os
import queue
import stat
import threading
import time
from typing import TYPE_CHECKING, Final

from clew.address import Tid
from clew.dataclass import dataclass
from clew.process.identity import read_status
from clew.process.privileges import explain_privileges, has_ptrace_capability
from clew.process.program import MAX_INTERPRETERS, SCRIPT_LINE_BYTES, is_for_32_bits, script_interpreter
from clew.process.target_path import TargetPaths

if TYPE_CHECKING:
    from typing import ClassVar

__all__ = ["LOOK_SECONDS", "Look", "Verdict", "look_at_executed"]

LOOK_SECONDS: Final = 1.0
"""After that it is given up."""

MAX_BLOCKED: Final = 32
"""Looks at a time that a file system leaves without an answer."""

_USUAL_SECONDS: Final = 0.005
_MAX_PATH_BYTES: Final = 4096
_AT_FDCWD: Final = (1 << 64) - 100
_AT_EMPTY_PATH: Final = 0x1000


@dataclass(frozen=True)
class Verdict:
    """Whether to follow; `reason`: why not, for people, empty where the call will fail anyhow."""

    is_followed: bool
    reason: str = ""


class _Looker(threading.Thread):
    """A thread that looks, one look after the other: a file system, or memory of the target, may never answer."""

    idle: ClassVar[list[_Looker]] = []
    """Those that wait for something to look at. All others are at it."""
    n_all: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__(name="look", daemon=True)
        self.asked: queue.SimpleQueue[Look] = queue.SimpleQueue()

    @classmethod
    def take(cls) -> _Looker | None:
        """One that has nothing to do; None: too many wait for an answer."""
        if cls.idle:
            return cls.idle.pop()
        if cls.n_all >= MAX_BLOCKED:
            return None
        cls.n_all += 1
        looker = cls()
        looker.start()
        return looker

    def run(self) -> None:
        while True:
            look = self.asked.get()
            look.run()
            _Looker.idle.append(self)
            look.is_done.release()
            del look


class Look:
    """A look under way, in another thread."""

    def __init__(self, tid: Tid, path_address: int, directory: int, flags: int) -> None:
        self.asked = (tid, path_address, directory, flags)
        self.since = time.monotonic()
        self._verdict: Verdict | None = None
        self.is_done = threading.Lock()
        self.is_done.acquire()
        looker = _Looker.take()
        if looker is None:
            self._verdict = Verdict(is_followed=False, reason="too many file systems do not answer")
            return
        looker.asked.put(self)
        self.is_done.acquire(timeout=_USUAL_SECONDS)

    @property
    def verdict(self) -> Verdict | None:
        """None while there is none."""
        if self._verdict is None and time.monotonic() - self.since > LOOK_SECONDS:
            # A tracee that waits for it could not be killed but by SIGKILL, nor be let go.
            self._verdict = Verdict(is_followed=False, reason="the file system does not answer")
        return self._verdict

    def run(self) -> None:
        """Look, in the thread that this is for."""
        try:
            verdict = look_at_executed(*self.asked)
        except (OSError, ValueError, OverflowError) as error:
            verdict = _unknown(str(error))
        self._verdict = self._verdict or verdict


def look_at_executed(tid: Tid, path_address: int, directory: int, flags: int) -> Verdict:
    """What to make of execve of the string at `path_address` by thread `tid`; arguments as execveat's, unchecked."""
    try:
        path = _read_path(tid, path_address)
    except (OSError, OverflowError):
        return Verdict(is_followed=False)
    descriptor = None if directory == _AT_FDCWD else directory & 0xFFFFFFFF
    if not path and not (flags & _AT_EMPTY_PATH and descriptor is not None):
        return Verdict(is_followed=False)
    name = os.fsdecode(path)
    with TargetPaths(tid) as paths:
        for _ in range(MAX_INTERPRETERS + 1):
            try:
                fd = paths.open(path, descriptor)
            except (FileNotFoundError, NotADirectoryError):
                return Verdict(is_followed=False)
            except OSError as error:
                return _unknown(f"{name}: {error.strerror}")
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return Verdict(is_followed=False)
                head = _read_head(fd)
                interpreter = None if head is None else script_interpreter(head)
                if interpreter is None:
                    return _judge(tid, fd, name, head)
            finally:
                os.close(fd)
            path, descriptor = interpreter, None
    return Verdict(is_followed=False)


def _judge(tid: Tid, fd: int, name: str, head: bytes | None) -> Verdict:
    if head is not None and is_for_32_bits(head):
        return Verdict(is_followed=False, reason=f"{name}: a 32-bit program; clew follows 64-bit programs")
    if has_ptrace_capability():
        return Verdict(is_followed=True)
    if head is None:
        return Verdict(is_followed=False, reason=f"{name}: may be executed but not read; run clew as root to follow it")
    what = explain_privileges(read_status(str(tid)) or {}, fd)
    if what:
        return Verdict(
            is_followed=False,
            reason=f"{name}: {what}: the kernel takes its privileges away while it is traced; run clew as root",
        )
    return Verdict(is_followed=True)


def _unknown(reason: str) -> Verdict:
    """What could not be looked at may be privileged."""
    return Verdict(is_followed=True) if has_ptrace_capability() else Verdict(is_followed=False, reason=reason)


def _read_path(tid: Tid, address: int) -> bytes:
    with open(f"/proc/{tid}/mem", "rb", buffering=0) as memory:
        room = _MAX_PATH_BYTES
        data = b""
        while room and b"\0" not in data:
            # Up to the end of a page: the next one may not be there.
            part_bytes = min(room, mmap.PAGESIZE - (address + len(data)) % mmap.PAGESIZE)
            data += os.pread(memory.fileno(), part_bytes, address + len(data))
            room -= part_bytes
    return data.split(b"\0", 1)[0]


def _read_head(fd: int) -> bytes | None:
    """The first bytes of a regular file; None if it may not be read."""
    try:
        readable = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None
    try:
        return os.read(readable, SCRIPT_LINE_BYTES)
    finally:
        os.close(readable)
