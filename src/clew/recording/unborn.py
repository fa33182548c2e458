"""Children that are about to be made: a region of the shared memory for each, until the child speaks through it.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from clew.process.doorbell import Doorbell
from clew.process.identity import is_mapped
from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import FULL_WAIT_SECONDS
from clew.recording.followed import FollowedProcess

__all__ = ["Unborn"]

STILLBORN_INTERVAL_SECONDS: Final = 0.05


@dataclass
class _Child:
    process: FollowedProcess
    parent: FollowedProcess
    asked_at: float


class Unborn:
    """Those that did not speak yet, by their regions."""

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell
        self._children: dict[SharedMemory, _Child] = {}
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._children)

    def __contains__(self, process: FollowedProcess) -> bool:
        return process.shared in self._children

    def __iter__(self) -> Iterator[FollowedProcess]:
        return iter([child.process for child in self._children.values()])

    def add(self, process: FollowedProcess, parent: FollowedProcess) -> None:
        """Expect `process`, a child of `parent`."""
        self._children[process.shared] = _Child(process, parent, time.monotonic())

    def take(self, process: FollowedProcess) -> FollowedProcess:
        """It is born: its parent."""
        return self._children.pop(process.shared).parent

    def discard(self, process: FollowedProcess, *, is_unused: bool = True) -> None:
        """It will not come: its region is nobody's if it `is_unused`."""
        del self._children[process.shared]
        self._doorbell.forget(process.shared)
        if process.drain is not None:
            process.drain.close()
        process.shared.close(is_unused=is_unused)

    def discard_region(self, sibling: SharedMemory, region: int) -> None:
        """It will not come, as who asked for it says: the region of that number in the file of `sibling`."""
        for shared, child in list(self._children.items()):
            if shared.region == region and shared.file is sibling.file:
                self.discard(child.process)

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
