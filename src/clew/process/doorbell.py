"""Wakes the controller when a thread of a target begins to wait for it.

Runs in the controller, in a thread of its own that does nothing but wait: a target's futex can't be polled together
with files. What the target writes there is compared and nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from typing import Final

from clew.process.linux import futex_wake, libc
from clew.process.shared_memory import SharedMemory
from clew.protocol.layout import field_offset

__all__ = ["MAX_BELLS", "Doorbell"]

MAX_BELLS: Final = 127
"""Regions whose bells are heard; the kernel waits for 128 futexes at a time (FUTEX_WAITV_MAX), and one is our own."""

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


class Doorbell:
    """`fd` becomes readable when a bell rang; `answer` makes it quiet again.

    `is_working` is False where the kernel can't wait for several futexes (before Linux 5.16).
    """

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.is_working = True
        self._own = ctypes.c_uint32(0)
        self._bells: dict[SharedMemory, ctypes.c_uint32] = {}
        self._is_closing = False
        self._thread = threading.Thread(target=self._listen, name="doorbell", daemon=True)
        self._thread.start()

    def watch(self, shared: SharedMemory) -> None:
        """Hear the bell of a region."""
        offset = shared.layout.status_offset + field_offset("StatusPage", "doorbell")
        # It keeps the mapping alive for as long as the thread may look at it.
        self._change({**self._bells, shared: ctypes.c_uint32.from_buffer(shared.map, offset)})

    def forget(self, shared: SharedMemory) -> None:
        """Hear it no longer."""
        self._change({one: bell for one, bell in self._bells.items() if one is not shared})

    def answer(self) -> None:
        """Take note: what rings from now on rings again."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            return

    def close(self) -> None:
        """End the thread."""
        self._is_closing = True
        self._change({})
        self._thread.join()
        os.close(self.fd)

    def _change(self, bells: dict[SharedMemory, ctypes.c_uint32]) -> None:
        # The thread sees the old mapping of names or the new one, both whole.
        self._bells = bells
        self._own.value += 1
        futex_wake(ctypes.addressof(self._own))

    def _listen(self) -> None:
        heard: dict[SharedMemory, int] = {}
        while not self._is_closing:
            own = self._own.value
            bells = dict(list(self._bells.items())[:MAX_BELLS])
            heard = {shared: heard.get(shared, 0) for shared in bells}
            # No bell may stay in a variable of this loop: its region would stay mapped.
            waiters = (_Waiter * (len(bells) + 1))(
                _Waiter(own, ctypes.addressof(self._own), _FUTEX_32, 0),
                *(_Waiter(heard[shared], ctypes.addressof(bell), _FUTEX_32, 0) for shared, bell in bells.items()),
            )
            result = libc.syscall(
                ctypes.c_long(_SYS_FUTEX_WAITV), waiters, ctypes.c_long(len(waiters)), ctypes.c_long(0), None, None
            )
            if result < 0 and ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
                self.is_working = False
                return
            rung = {shared: bell.value for shared, bell in bells.items() if bell.value != heard[shared]}
            if rung:
                heard |= rung
                os.eventfd_write(self.fd, 1)
