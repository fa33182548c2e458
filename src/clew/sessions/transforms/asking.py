"""A thread that waits for what is to be changed in the block in front of it.

Runs in the controller.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from clew.protocol._constants import MAX_FRAGMENT_BYTES

if TYPE_CHECKING:
    from clew.recording.following.holding import Holding
    from clew.recording.following.visits import BlockQuestion

__all__ = ["Asking"]


class Asking(NamedTuple):
    """Who asks, and what."""

    holding: Holding
    question: BlockQuestion

    def read_code(self) -> bytes:
        """The block's bytes; fewer where the target says what can't be."""
        size_bytes = min(self.question.size_bytes, MAX_FRAGMENT_BYTES)
        try:
            return os.pread(self.holding.memory.fileno(), size_bytes, self.question.pc)
        except (OSError, OverflowError):
            return b""

    def let_go(self) -> None:
        """Let it go on with the block as it is."""
        self.holding.let_go(self.question.tid)

    def answer(self, changes: bytes) -> None:
        """Let it go on with what is to be changed in the block, as it is packed."""
        self.holding.change_block(self.question, changes)
