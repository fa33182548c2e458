"""Waits for several words in shared memory at a time.

Runs in the controller, in a thread that may sleep.
"""

from __future__ import annotations

import ctypes
import errno
import time
from collections.abc import Sequence
from typing import Final

from clew.process.linux import libc

__all__ = ["MAX_WORDS", "wait_for_change"]

MAX_WORDS: Final = 128
"""As many as the kernel waits for (FUTEX_WAITV_MAX)."""

_SYS_FUTEX_WAITV: Final = 449
_FUTEX_32: Final = 2


class _Waiter(ctypes.Structure):
    """struct futex_waitv of the kernel."""

    _fields_ = [
        ("value", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class _Timespec(ctypes.Structure):
    """struct __kernel_timespec."""

    _fields_ = [("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_int64)]


def wait_for_change(words: Sequence[tuple[ctypes.c_uint32, int]], due: float) -> bool:
    """Wait until somebody wakes who waits for a word, if each is as given; or until `due`, by `time.monotonic`.

    False: the kernel can't wait for several (before Linux 5.16).
    """
    waiters = (_Waiter * len(words))(*(_Waiter(value, ctypes.addressof(word), _FUTEX_32, 0) for word, value in words))
    seconds, rest = divmod(due, 1.0)
    result = libc.syscall(
        ctypes.c_long(_SYS_FUTEX_WAITV),
        waiters,
        ctypes.c_long(len(waiters)),
        ctypes.c_long(0),
        ctypes.byref(_Timespec(int(seconds), int(rest * 1e9))),
        ctypes.c_long(time.CLOCK_MONOTONIC),
    )
    return result >= 0 or ctypes.get_errno() in (errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT)
