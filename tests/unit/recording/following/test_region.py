"""What one speaks through lets go of its drain as soon as nothing more is taken."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from clew.protocol._constants import Mode
from clew.recording.following.region import FollowedRegion


class _Drain:
    """Asks its region, as a drain does through what answers it."""

    def __init__(self, region: FollowedRegion) -> None:
        self.answer = lambda: region
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_nothing_waits_for_a_collection_of_garbage() -> None:
    nothing: Any = None
    region = FollowedRegion(nothing, nothing, nothing, nothing, Mode.COUNTS)
    drain: Any = _Drain(region)
    region.drain = drain
    kept = weakref.ref(drain)
    gc.disable()
    try:
        region.close_drain()
        assert drain.is_closed
        del drain
        assert kept() is None
    finally:
        gc.enable()
    region.close_drain()
