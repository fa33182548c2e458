"""How often the rings are looked at.

Runs in the controller.
"""

from __future__ import annotations

import math
import time
from typing import Final

__all__ = ["Pace"]

MIN_DELAY_SECONDS: Final = 0.0005


class Pace:
    """How long to wait before the rings are looked at again: about until one of them would be a quarter full.

    Where nothing comes that grows without end: the longest time is the business of who waits.
    """

    def __init__(self, ring_bytes: int) -> None:
        self._ring_bytes = ring_bytes
        self._last = time.monotonic()
        self.delay_seconds = MIN_DELAY_SECONDS

    def note(self, moved_bytes: int) -> float:
        """Take note of how much came since the last time; what time it is."""
        now = time.monotonic()
        wanted = (now - self._last) * self._ring_bytes / 4 / moved_bytes if moved_bytes else math.inf
        self.delay_seconds = min(max(wanted, MIN_DELAY_SECONDS), 2 * self.delay_seconds)
        self._last = now
        return now
