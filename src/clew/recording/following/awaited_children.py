"""Children that a thread waits for, as the kernel has a parent wait in vfork: until they execute a program or end.

Runs in the controller, in its one thread. Which region such a child began in is a number that the target gave.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from clew.address import Pid
from clew.process.identity import is_ending, maps_region
from clew.recording.following.followed import FollowedProcess
from clew.recording.following.region import FollowedRegion
from clew.recording.following.roster import Roster
from clew.recording.following.unborn import Unborn

if TYPE_CHECKING:
    from clew.recording.drain.request import Request

__all__ = ["AwaitedChildren"]

CHILD_POLL_SECONDS: Final = 0.005


class AwaitedChildren:
    """Of all followed processes."""

    def __init__(self, roster: Roster, unborn: Unborn) -> None:
        self._roster, self._unborn = roster, unborn
        self._awaited: dict[tuple[int, int], FollowedRegion] = {}
        """By the number of the parent and its thread's slot."""

    @property
    def delay_seconds(self) -> float:
        """How long to wait at most before those who wait ask again."""
        return CHILD_POLL_SECONDS if self._awaited else math.inf

    def forget_ended(self) -> None:
        """Nobody waits in a process that is followed no more."""
        if self._awaited:
            numbers = {followed.number for followed in self._roster.live}
            self._awaited = {key: child for key, child in self._awaited.items() if key[0] in numbers}

    def answer(self, parent: FollowedProcess, request: Request) -> int | None:
        """0 once who began in a region of its parent's file has executed a program or ended; None until then."""
        key = (parent.number, request.slot)
        region, number = request.arguments[:2]
        found = self._awaited.get(key) or self._find(parent, region)
        if found is not None:
            if found in self._unborn:
                is_there = parent.has_own_namespace or not is_ending(Pid(number))
            else:
                is_there = self._has_region(found)
            if is_there:
                # By the time of the next question the number may be another's.
                self._awaited[key] = found
                return None
        self._awaited.pop(key, None)
        return 0

    def _has_region(self, region: FollowedRegion) -> bool:
        """Whether who spoke through a region goes on there."""
        child = region.process
        return child is not None and child in self._roster.live and maps_region(child.memory_pid, child.shared)

    def _find(self, parent: FollowedProcess, number: int) -> FollowedRegion | None:
        """The region of that number in its parent's file, if it is a child's."""
        candidates: list[FollowedRegion] = [*(followed.region for followed in self._roster.live), *self._unborn]
        for found in candidates:
            shared = found.shared
            if shared.region == number and shared.file is parent.shared.file and found is not parent.region:
                return found
        return None
