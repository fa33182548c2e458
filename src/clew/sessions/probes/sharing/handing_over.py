"""Has processes go on with the probes of guests when the session ends that had them: in a process of its own.

Runs in the controller; what goes on is a copy of it (fork(2)), which has all that is known of the processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import warnings
from collections.abc import Callable, Collection
from typing import Final

__all__ = ["go_on_elsewhere"]

_READY: Final = b"1"
_KEPT_LINKS: Final = ("/memfd:", "/proc/", "anon_inode:[pidfd]")


def go_on_elsewhere(begin: Callable[[], Collection[int]], go_on: Callable[[Callable[[], bool]], None]) -> bool:
    """Have `go_on` go on in another process, a child of nobody's: whether it does. There `begin` is called first, which
    gives the sockets that are needed; then this returns here, while `go_on` is called there with something that says
    whether it is to end."""
    told, tells = os.pipe()
    with warnings.catch_warnings():
        # Threads of whoever runs this are not there in the copy, nor needed.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            # Whoever waits for children waits for none that it does not know.
            if os.fork() == 0:
                _be_alone(begin, go_on, tells)
        finally:
            os._exit(0)
    os.close(tells)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    with os.fdopen(told, "rb") as file:
        return file.read() == _READY


def _be_alone(begin: Callable[[], Collection[int]], go_on: Callable[[Callable[[], bool]], None], tells: int) -> None:
    is_told = False

    def hear(_number: int, _frame: object) -> None:
        nonlocal is_told
        is_told = True

    os.setsid()
    os.chdir("/")
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, hear)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _close_others({*begin(), tells})
    os.write(tells, _READY)
    os.close(tells)
    go_on(lambda: is_told)


def _close_others(needed: Collection[int]) -> None:
    """Keep no pipe, file or terminal open that somebody else waits for the end of."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number > 2 and number not in needed:
            with contextlib.suppress(OSError):
                if not _is_kept(number):
                    os.close(number)


def _is_kept(number: int) -> bool:
    """What processes are reached by, and files that are read."""
    link = os.readlink(f"/proc/self/fd/{number}")
    if link.startswith(_KEPT_LINKS):
        return True
    is_written = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    return stat.S_ISREG(os.fstat(number).st_mode) and not is_written
