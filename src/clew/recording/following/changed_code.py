"""Code that changes behind a process' back: a probe of the kernel or a debugger's breakpoint comes or goes.

Runs in the controller, in its one thread. No record tells of it; but who writes to a page of a private file makes it
the process' own. So such pages of code are looked for from time to time, and the runtime is told of those that are
other than before. It judges by itself what of its translations is not what is there any more.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Final

from clew.errors import TargetError
from clew.process.private_pages import PrivatePages
from clew.recording.following.followed import FollowedProcess

__all__ = ["ChangedCode"]

INTERVAL_SECONDS: Final = 0.1
LOOKING_SHARE: Final = 0.005
"""Of the controller's time that looking may take."""

TELLING_SHARE: Final = 0.1
"""Of that in which a process may be told: its threads are stopped for it."""


class ChangedCode:
    """Looks at all processes. `bring_in` has the threads of one come to the dispatcher; it raises TargetError."""

    def __init__(self, bring_in: Callable[[FollowedProcess], None]) -> None:
        self._bring_in = bring_in
        self._seen: dict[FollowedProcess, dict[int, int]] = {}
        """Of each process a hash of each private page."""
        self._due = 0.0

    def look(self, live: Iterable[FollowedProcess]) -> None:
        """Look at processes `live`, if it is time to."""
        began = time.monotonic()
        if began < self._due:
            return
        seen, self._seen = self._seen, {}
        changed = []
        for followed in live:
            # One that has just ended, or may not be looked at.
            with contextlib.suppress(OSError):
                if self._has_changed(followed, seen.get(followed)):
                    changed.append(followed)
        looked = time.monotonic()
        for followed in changed:
            # Where it can't be done the threads see to it when they come to the dispatcher by themselves.
            with contextlib.suppress(TargetError):
                self._bring_in(followed)
        told = time.monotonic()
        pause_seconds = max((looked - began) / LOOKING_SHARE, (told - looked) / TELLING_SHARE, INTERVAL_SECONDS)
        self._due = told + pause_seconds

    def _has_changed(self, followed: FollowedProcess, before: dict[int, int] | None) -> bool:
        """Whether pages of it are other than `before`, None: when it came. Its runtime is told which."""
        pages = PrivatePages(followed.memory_pid)
        try:
            now = read_private_code(pages)
        finally:
            pages.close()
        self._seen[followed] = now
        if before is None:
            before = {page: there for page, there in followed.written_pages.items() if page in now}
        changed = [page for page in now.keys() | before.keys() if now.get(page) != before.get(page)]
        if changed:
            followed.shared.tell_changed(changed)
        return bool(changed)


def read_private_code(pages: PrivatePages) -> dict[int, int]:
    """A hash of each private page of code, by its address. Raises OSError."""
    return {
        page: hash(pages.read(page))
        for mapping in pages.read_code()
        for page in pages.iter_in(mapping.start, mapping.end)
    }
