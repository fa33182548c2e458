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

__all__ = ["MAX_WORDS", "WordWaiter", "wait_for_change"]

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


class WordWaiter:
    """Waits for some words, each of which somebody changes before they wake who waits for it."""

    def __init__(self, words: Sequence[ctypes.c_uint32]) -> None:
        # The words are kept, with whatever they lie in.
        self._words = list(words)
        places = (_Waiter(0, ctypes.addressof(word), _FUTEX_32, 0) for word in words)
        self._waiters = (_Waiter * len(words))(*places)
        self._due = _Timespec()
        self._arguments = (
            ctypes.c_long(_SYS_FUTEX_WAITV),
            self._waiters,
            ctypes.c_long(len(words)),
            ctypes.c_long(0),
            ctypes.byref(self._due),
            ctypes.c_long(time.CLOCK_MONOTONIC),
        )

    def wait(self, values: Sequence[int], due: float) -> bool:
        """Wait until somebody wakes who waits for a word, if each is as given; or until `due`, by `time.monotonic`.

        False: the kernel can't wait for several (before Linux 5.16).
        """
        for waiter, value in zip(self._waiters, values, strict=True):
            waiter.value = value
        seconds, rest = divmod(due, 1.0)
        self._due.seconds = int(seconds)
        self._due.nanoseconds = int(rest * 1e9)
        result = libc.syscall(*self._arguments)
        return result >= 0 or ctypes.get_errno() in (errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT)


def wait_for_change(words: Sequence[tuple[ctypes.c_uint32, int]], due: float) -> bool:
    """As `WordWaiter.wait`, once."""
    return WordWaiter([word for word, _ in words]).wait([value for _, value in words], due)
