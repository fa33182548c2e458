"""Which of the calls that are read `clew api` tells.

Runs in the controller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.api.entities.scene import Touch
    from clew.sessions.api_calls import ApiCall
    from clew.sessions.call_world import LiveWorld

__all__ = ["CallChoice", "is_path_meant"]


@lru_cache(maxsize=1 << 12)
def is_path_meant(name: str, asked: str) -> bool:
    """Whether a file is meant by a path or a pattern: of a path, as this process sees it, by whatever other path."""
    if fnmatchcase(name, asked):
        return True
    if not name.startswith("/") or any(sign in asked for sign in "*?["):
        return False
    return os.path.realpath(name) == os.path.realpath(asked)


@dataclass(frozen=True)
class CallChoice:
    """Calls that were asked for (`is_told`) and, if that is wanted, `failed`; that are about one of `paths`, which are
    patterns, or name one of the descriptors `numbers`. `world`: what calls are about, where that is wanted."""

    is_told: Callable[[ApiCall], bool]
    world: LiveWorld | None = None
    failed: bool = False
    paths: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    def choose(self, calls: Sequence[ApiCall]) -> Iterator[ApiCall]:
        """Those of some calls, which come in the order in which they were over."""
        touched: Iterable[tuple[ApiCall, list[Touch]]] = ((call, []) for call in calls)
        if self.world is not None:
            # All are seen, since what is not told changes who holds what, too.
            touched = self.world.see(calls)
        for call, touches in touched:
            if self.is_told(call) and (call.has_failed or not self.failed) and self._is_about(call, touches):
                yield call

    def _is_about(self, call: ApiCall, touches: Sequence[Touch]) -> bool:
        if self.world is None or not (self.paths or self.numbers):
            return True
        names = [self.world.name(touch.entity_id) for touch in touches]
        if any(is_path_meant(name, pattern) for name in names for pattern in self.paths):
            return True
        return any(number in self.numbers for number in self.world.descriptors(call).values())
