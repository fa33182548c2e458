"""Has the runtimes see that somebody is there for them, whatever that is busy with.

Runs in the controller, in a thread of its own.
"""

from __future__ import annotations

import threading
from typing import Final

from clew.process.shared_memory import SharedMemory

__all__ = ["Pulse"]

_SECONDS: Final = 0.5


class Pulse:
    """The heartbeats of some processes (StatusPage.heartbeat)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: list[SharedMemory] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, shared: SharedMemory) -> None:
        """Have one more, from now on."""
        with self._lock:
            self._shared.append(shared)
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="clew-pulse", daemon=True)
            self._thread.start()

    def remove(self, shared: SharedMemory) -> None:
        """Have that one no more: it is about to be closed."""
        with self._lock:
            self._shared.remove(shared)

    def close(self) -> None:
        """Have none any more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _beat(self) -> None:
        n_beats = 0
        while not self._ended.wait(_SECONDS):
            n_beats += 1
            with self._lock:
                for shared in self._shared:
                    shared.set_status_ticket("heartbeat", n_beats)
