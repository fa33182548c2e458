"""Wakes the controller when a thread of a target begins to wait for it, and tells the targets that it is there.

Runs in the controller, in a thread of its own that does nothing but wait: a target's futex can't be polled together
with files, and the controller may have to wait for a disk. What the target writes there is compared and nothing else.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Final

from clew.dataclass import dataclass
from clew.process.futexes import MAX_WORDS, wait_for_change
from clew.process.linux import futex_wake
from clew.process.shared_memory import SharedMemory
from clew.protocol.layout import field_offset

__all__ = ["MAX_BELLS", "Doorbell"]

MAX_BELLS: Final = MAX_WORDS - 1
"""Regions whose bells are heard: one word is our own."""

HEARTBEAT_SECONDS: Final = 1.0
END_SECONDS: Final = 5.0


@dataclass(frozen=True)
class _Bell:
    """Two words of a region's status page. They keep the mapping alive for as long as the thread may look at it."""

    rung: ctypes.c_uint32
    heartbeat: ctypes.c_uint32


class Doorbell:
    """`fd` becomes readable when a bell rang; `answer` makes it quiet again.

    `is_working` is False where the kernel can't wait for several futexes (before Linux 5.16).
    """

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.is_working = True
        self._own = ctypes.c_uint32(0)
        self._bells: dict[SharedMemory, _Bell] = {}
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="doorbell", daemon=True)
        self._thread.start()

    def watch(self, shared: SharedMemory) -> None:
        """Hear the bell of a region, whose threads wait as long as that goes on."""
        names = "doorbell", "heartbeat"
        offsets = (shared.layout.status_offset + field_offset("StatusPage", name) for name in names)
        self._change({**self._bells, shared: _Bell(*(ctypes.c_uint32.from_buffer(shared.map, at) for at in offsets))})

    def forget(self, shared: SharedMemory) -> None:
        """Hear it no longer; who waits there takes clew for gone soon."""
        self._change({one: bell for one, bell in self._bells.items() if one is not shared})

    def answer(self) -> None:
        """Take note: what rings from now on rings again."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            return

    def close(self) -> None:
        """End the thread."""
        self._is_closing.set()
        self._change({})
        self._thread.join(END_SECONDS)
        os.close(self.fd)

    def _change(self, bells: dict[SharedMemory, _Bell]) -> None:
        # The thread sees the old mapping of names or the new one, both whole.
        self._bells = bells
        self._own.value += 1
        futex_wake(ctypes.addressof(self._own))

    def _listen(self) -> None:
        heard: dict[SharedMemory, int] = {}
        while not self._is_closing.is_set():
            due = time.monotonic() + HEARTBEAT_SECONDS
            while self.is_working and time.monotonic() < due and not self._is_closing.is_set():
                heard = self._wait(heard, due)
            if not self.is_working:
                self._is_closing.wait(HEARTBEAT_SECONDS)
            self._beat()

    def _beat(self) -> None:
        # No bell may stay in a variable of a loop that goes on: its region would stay mapped.
        for bell in self._bells.values():
            bell.heartbeat.value += 1

    def _wait(self, heard: dict[SharedMemory, int], due: float) -> dict[SharedMemory, int]:
        """Wait for a bell that did not ring as often as `heard`, or until `due`; how often they have rung then."""
        own = self._own.value
        bells = dict(list(self._bells.items())[:MAX_BELLS])
        heard = {shared: heard.get(shared, 0) for shared in bells}
        words = [(self._own, own), *((bell.rung, heard[shared]) for shared, bell in bells.items())]
        if not wait_for_change(words, due):
            self.is_working = False
            return heard
        rung = {shared: bell.rung.value for shared, bell in bells.items() if bell.rung.value != heard[shared]}
        if rung:
            os.eventfd_write(self.fd, 1)
        return heard | rung
