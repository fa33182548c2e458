"""Children that are about to be made: a region of the shared memory for each, until the child speaks through it.

Runs in the controller. What is asked comes from the target and is checked: a process number counts only if that process
maps the region.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from clew.address import Pid
from clew.dataclass import dataclass
from clew.errors import ClewError
from clew.process.identity import is_ending, is_mapped, maps_region, read_parent
from clew.process.injection_plan import InjectionPlan
from clew.process.shared_memory import SharedMemory
from clew.process.tasks import find_process
from clew.protocol._constants import FULL_WAIT_SECONDS
from clew.recording.followed import FollowedProcess, read_identity

__all__ = ["Unborn"]

STILLBORN_INTERVAL_SECONDS: Final = 0.05


@dataclass
class _Child:
    process: FollowedProcess
    parent: FollowedProcess
    asked_at: float


class Unborn:
    """Those that did not speak yet. `make` makes what follows one in its region, `forget` ends what that began; `warn`
    takes lines for people, `lose` is told of those that can't be followed though they are there.
    """

    def __init__(
        self,
        make: Callable[[SharedMemory, InjectionPlan], FollowedProcess],
        forget: Callable[[SharedMemory], None],
        warn: Callable[[str], None],
        lose: Callable[[str], None],
    ) -> None:
        self._make = make
        self._forget = forget
        self._warn = warn
        self._lose = lose
        self._children: dict[SharedMemory, _Child] = {}
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._children)

    def __contains__(self, process: FollowedProcess) -> bool:
        return process.shared in self._children

    def __iter__(self) -> Iterator[FollowedProcess]:
        return iter([child.process for child in self._children.values()])

    def regions(self) -> list[tuple[SharedMemory, Pid]]:
        """The regions of all, each with the process in whose copy of memory they begin."""
        return [(shared, child.parent.memory_pid) for shared, child in self._children.items()]

    def expect(self, parent: FollowedProcess) -> int:
        """The number of a region for a child of `parent`; 0: there is none left."""
        try:
            shared = parent.shared.fork()
        except ClewError as error:
            self._warn(f"a child of process {parent.pid} runs unfollowed: {error.message}")
            return 0
        self._children[shared] = _Child(self._make(shared, parent.plan), parent, time.monotonic())
        return shared.region

    def cancel(self, parent: FollowedProcess, region: int) -> None:
        """The fork for which `parent` asked for a region has failed."""
        for shared, child in list(self._children.items()):
            if shared.region == region and shared.file is parent.shared.file:
                self.discard(child.process)

    def adopt(self, process: FollowedProcess, claimed: Pid) -> FollowedProcess | None:
        """It speaks, and says that it is process `claimed`: its parent. None: it can't be followed."""
        if process not in self:
            return None
        pidfd = -1
        try:
            # In a namespace of its own it knows itself by another number.
            pid = claimed if maps_region(claimed, process.shared) else find_process(process.shared)
            if pid is None:
                if not is_ending(claimed):
                    self._lose("a child runs unfollowed: the kernel does not let it be looked at")
                    self.discard(process, is_unused=False)
                return None
            pidfd = os.pidfd_open(pid)
            process.identify(read_identity(pid, self._find_maker(process, pid)), pidfd)
            if not maps_region(pid, process.shared):
                raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        except OSError as error:
            if pidfd >= 0:
                os.close(pidfd)
            if error.errno != errno.ESRCH:
                self._lose(f"a child runs unfollowed: {error}")
            # It goes on natively, and has the region mapped.
            self.discard(process, is_unused=False)
            return None
        return self._children.pop(process.shared).parent

    def _find_maker(self, process: FollowedProcess, pid: Pid) -> Pid:
        """Who made `process`: its parent may have ended since, and then the kernel names who adopted it."""
        parent = self._children[process.shared].parent
        present = read_parent(pid)
        # A task that shares the parent's memory, as a vfork's child, is no process of its own here.
        is_maker = present and present != parent.pid and maps_region(present, parent.shared)
        return present if is_maker else parent.pid

    def discard(self, process: FollowedProcess, *, is_unused: bool = True) -> None:
        """It will not come: its region is nobody's if it `is_unused`."""
        del self._children[process.shared]
        self._forget(process.shared)
        if process.drain is not None:
            process.drain.close()
        process.shared.close(is_unused=is_unused)

    def forget_stillborn(self, *, are_others_live: bool) -> None:
        """Those that never came: killed at once, or never made by a parent that was killed."""
        now = time.monotonic()
        if not self._children or now < self._look_at:
            return
        # Where it can't be told they are waited for.
        with contextlib.suppress(OSError):
            for shared, child in list(self._children.items()):
                is_late = now - child.asked_at > 2 * FULL_WAIT_SECONDS
                if (is_late and not is_mapped(shared.file, shared.offset)) or not (
                    are_others_live or is_mapped(shared.file)
                ):
                    self.discard(child.process)
        self._look_at = time.monotonic() + STILLBORN_INTERVAL_SECONDS
