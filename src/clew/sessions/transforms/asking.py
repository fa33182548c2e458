"""A thread that waits for what is to be changed in the block in front of it.

Runs in the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.recording.following.holding import Holding, StoppedThread
    from clew.recording.following.visits import BlockQuestion

__all__ = ["Asking"]


@dataclass(frozen=True)
class Asking:
    """Thread `thread`, which asks `question`."""

    holding: Holding
    thread: StoppedThread
    question: BlockQuestion

    def let_go(self) -> None:
        """Let it go on with the block as it is."""
        self.holding.let_go(self.thread.tid)

    def answer(self, changes: bytes) -> None:
        """Let it go on with what is to be changed in the block, as it is packed."""
        if changes and len(changes) <= self.question.room_bytes:
            self.holding.change_block(self.thread.tid, self.question, changes)
        else:
            self.let_go()
