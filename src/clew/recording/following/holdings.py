"""Which threads are stopped, of all processes of a recording.

Runs in the controller, in its one thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from clew.errors import TargetError
from clew.recording.following.followed import FollowedProcess

if TYPE_CHECKING:
    from clew.recording.following.holding import Holding

__all__ = ["Holdings"]


class Holdings:
    """One for each process that somebody asked about; most have none.

    `bring_in` makes a process's threads come to the dispatcher; it raises TargetError.
    """

    def __init__(self, bring_in: Callable[[FollowedProcess], None]) -> None:
        self._bring_in = bring_in
        self._by_process: dict[FollowedProcess, Holding] = {}
        self.tell_birth: Callable[[FollowedProcess, FollowedProcess], None] = lambda child, parent: None
        """Is told of each child of a process that is held, and of its parent, before the child runs."""

    def of(self, followed: FollowedProcess) -> Holding:
        """Which of its threads are stopped, and how to have them do so."""
        if followed not in self._by_process:
            from clew.recording.following.holding import Holding

            self._by_process[followed] = Holding(followed, lambda: self._bring_in(followed))
        return self._by_process[followed]

    def is_held(self, followed: FollowedProcess) -> bool:
        """Whether its threads are to stop."""
        return followed in self._by_process and self._by_process[followed].is_held

    def inherit(self, child: FollowedProcess, parent: FollowedProcess) -> None:
        """Note the breakpoints of a child that was just born: its region has its parent's."""
        if parent in self._by_process:
            holding, of_parent = self.of(child), self._by_process[parent]
            holding.breakpoints = list(of_parent.breakpoints)
            holding.visits.on_visit = dict(of_parent.visits.on_visit)
            holding.visits.on_block = of_parent.visits.on_block
            holding.captures = dict(of_parent.captures)
            holding.visits.note_overdue = of_parent.visits.note_overdue
            if of_parent.visits.hear is not None:
                holding.be_heard(of_parent.visits.hear)
            self.tell_birth(child, parent)

    def advance(self, live: Collection[FollowedProcess]) -> None:
        """Do what came up while the rings were emptied, of those that are followed still."""
        for followed, holding in list(self._by_process.items()):
            if followed not in live:
                del self._by_process[followed]
                continue
            with contextlib.suppress(TargetError):
                holding.advance()

    def release(self, live: Collection[FollowedProcess]) -> None:
        """Let all threads go on, for good, of those that are followed still."""
        for followed, holding in self._by_process.items():
            if followed in live:
                holding.release()
