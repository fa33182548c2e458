"""Waits for threads of a session's target that stop at places, and has them told of at once.

Runs in the controller, in a thread of its own, which is the one that runs callbacks: from a thread that stops to the
callback no other thread of clew's has to wake up.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from clew.dataclass import dataclass
from clew.process.futexes import MAX_WORDS, WordWaiter
from clew.process.linux import futex_wake
from clew.protocol.layout import field_offset

if TYPE_CHECKING:
    from clew.recording.following.holding import Holding

__all__ = ["VisitLane"]

LOOK_SECONDS: Final = 1.0
SOON_SECONDS: Final = 0.001
AWAKE_SECONDS: Final = 100e-6
"""So long it looks for who comes next without sleeping."""


@dataclass
class _Heard:
    """A process, its bell, and how often that had rung when it was answered last."""

    holding: Holding
    bell: ctypes.c_uint32
    n_rung: int = 0


class VisitLane:
    """Of one session. `fail` is told of what goes wrong here, and no callback has to do with."""

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail
        self.is_working = True
        """The kernel can wait for several processes (since Linux 5.16)."""
        self._own = ctypes.c_uint32(0)
        self._lock = threading.Lock()
        """Of the list, which grows where processes begin, and shrinks where they are waited for."""
        self._heard: list[_Heard] = []
        self._is_closing = False
        self._thread: threading.Thread | None = None

    def hear(self, holding: Holding) -> bool:
        """Wait for the threads of a process, too; False: there is no room, or it can't be done."""
        shared = holding.followed.shared
        offset = shared.layout.status_offset + field_offset("StatusPage", "visit_bell")
        with self._lock:
            if not self.is_working or len(self._heard) >= MAX_WORDS - 1:
                return False
            # The thread sees the list before, or this one, whole.
            self._heard = [*self._heard, _Heard(holding, ctypes.c_uint32.from_buffer(shared.map, offset))]
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="clew-callbacks", daemon=True)
            self._thread.start()
        self._wake()
        return True

    @property
    def is_here(self) -> bool:
        """Whether this is the thread that waits, and runs callbacks."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Wait for nobody any more."""
        self._is_closing = True
        self._wake()
        if self._thread is not None and not self.is_here:
            self._thread.join()
        self._heard = []

    def _wake(self) -> None:
        self._own.value += 1
        futex_wake(ctypes.addressof(self._own))

    def _run(self) -> None:
        heard: list[_Heard] = []
        waiter = WordWaiter([self._own])
        awake_until = 0.0
        while not self._is_closing:
            own, seconds = self._own.value, LOOK_SECONDS
            if heard is not self._heard:
                heard = self._heard
                waiter = WordWaiter([self._own, *(one.bell for one in heard)])
            values, is_visited = [own], False
            for one in heard:
                n_rung = one.bell.value
                values.append(n_rung)
                if n_rung == one.n_rung:
                    continue
                if one.holding.followed.drain is None:
                    # A program that has just begun: nobody looks at its threads yet.
                    seconds = SOON_SECONDS
                    continue
                one.n_rung, is_visited = n_rung, True
                self._meet_visitors(one.holding)
            now = time.monotonic()
            if is_visited:
                awake_until = now + AWAKE_SECONDS
            if now < awake_until and seconds == LOOK_SECONDS:
                # The next one comes soon, more often than not: to fall asleep and wake up takes longer.
                os.sched_yield()
                continue
            self._forget_ended()
            if heard is self._heard and not waiter.wait(values, now + seconds):
                self._give_up()
                return

    def _forget_ended(self) -> None:
        with self._lock:
            if any(one.holding.followed.has_ended for one in self._heard):
                self._heard = [one for one in self._heard if not one.holding.followed.has_ended]

    def _meet_visitors(self, holding: Holding) -> None:
        try:
            holding.meet_visitors()
        except Exception as error:
            # A process that ends takes with it what is looked at.
            if not holding.followed.has_ended:
                self._fail(error)
                holding.be_unheard()

    def _give_up(self) -> None:
        """The recording's own thread waits for all of them from now on."""
        with self._lock:
            self.is_working = False
            heard, self._heard = self._heard, []
        for one in heard:
            one.holding.be_unheard()
