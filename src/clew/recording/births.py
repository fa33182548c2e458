"""Children about to be born: the regions that processes asked for, until the child speaks or can't come any more.

Runs in the controller. What is asked comes from the target and is checked: a process number counts only if that process
maps the region.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clew.address import Pid
from clew.errors import ClewError
from clew.process.identity import find_sharers, is_mapped, maps_region, read_parent
from clew.process.injection_plan import InjectionPlan
from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import FULL_WAIT_SECONDS
from clew.recording.followed import FollowedProcess, Fork

__all__ = ["Births"]

LOOK_INTERVAL_SECONDS: Final = 0.05


@dataclass(frozen=True)
class _Unborn:
    """A region that `parent` asked for, for a child that did not speak yet."""

    process: FollowedProcess
    parent: FollowedProcess
    asked_at: float


class Births:
    """`make` makes what follows a child in its region; `forget` ends what it began for a child that never comes."""

    def __init__(
        self,
        make: Callable[[SharedMemory, InjectionPlan], FollowedProcess],
        forget: Callable[[SharedMemory], None],
        warn: Callable[[str], None],
    ) -> None:
        self._make = make
        self._forget = forget
        self._warn = warn
        self._unborn: dict[SharedMemory, _Unborn] = {}
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._unborn)

    def __contains__(self, shared: SharedMemory) -> bool:
        return shared in self._unborn

    @property
    def processes(self) -> list[FollowedProcess]:
        """Those that did not speak yet."""
        return [unborn.process for unborn in self._unborn.values()]

    def expect(self, parent: FollowedProcess) -> int:
        """The number of a region for a child of `parent`; 0: there is none left."""
        try:
            shared = parent.shared.fork()
        except ClewError as error:
            self._warn(f"a child of process {parent.pid} runs unfollowed: {error.message}")
            return 0
        self._unborn[shared] = _Unborn(self._make(shared, parent.plan), parent, time.monotonic())
        return shared.region

    def cancel(self, parent: FollowedProcess, region: int) -> None:
        """The fork for which `parent` asked for a region has failed."""
        for shared in list(self._unborn):
            if shared.region == region and shared.file is parent.shared.file:
                self._discard(shared)

    def adopt(self, followed: FollowedProcess, claimed: Pid, fork_tsc: int) -> Fork | None:
        """A child speaks, and says that it is process `claimed`, made at `fork_tsc`: where it comes from.

        None: it can't be told which process it is.
        """
        unborn = self._unborn.get(followed.shared)
        if unborn is None:
            return None
        # It may know itself by another number, in a namespace of its own.
        found = [claimed] if maps_region(claimed, followed.shared) else find_sharers(followed.shared)
        if not found:
            return None
        pidfd = -1
        try:
            pidfd = os.pidfd_open(found[0])
            followed.identify(found[0], read_parent(found[0]), pidfd)
            is_it = maps_region(found[0], followed.shared)
        except OSError:
            is_it = False
        if not is_it:
            if pidfd >= 0:
                os.close(pidfd)
            return None
        del self._unborn[followed.shared]
        return Fork(unborn.parent.number, fork_tsc)

    def forget_stillborn(self, *, has_parents: bool) -> None:
        """Give up the regions whose children never came: killed at once, or never made by a parent that was killed."""
        now = time.monotonic()
        if not self._unborn or now < self._look_at:
            return
        for shared, unborn in list(self._unborn.items()):
            is_late = now - unborn.asked_at > 2 * FULL_WAIT_SECONDS
            if (is_late and not is_mapped(shared.file, shared.offset)) or not (has_parents or is_mapped(shared.file)):
                self._discard(shared)
        self._look_at = time.monotonic() + LOOK_INTERVAL_SECONDS

    def _discard(self, shared: SharedMemory) -> None:
        unborn = self._unborn.pop(shared)
        self._forget(shared)
        if unborn.process.drain is not None:
            unborn.process.drain.close()
        shared.close()
