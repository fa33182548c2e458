"""Places in one followed process at which a thread that comes there waits alone, while the others run on.

Runs in the controller, in the recording's thread, or in the one that waits for them. A place is a capture that stops to
the runtime: its condition is asked where the thread is. Who asked for it is told of each thread that comes, and says
when it is to go on; a thread that is forgotten goes on by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from clew.address import RemoteAddress, Tid
from clew.dataclass import dataclass, field
from clew.protocol._constants import HoldReply

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.following.holding import Holding
    from clew.recording.following.stopped_thread import StoppedThread

__all__ = ["BlockQuestion", "OnBlock", "OnVisit", "Visits"]

MAX_SECONDS: Final = 2.0
"""So long a thread waits at most, unless somebody else says so."""

OnVisit = Callable[["FollowedProcess", "StoppedThread"], bool]
"""Is told of a thread that came to a place; whether it waits there, or was let go already. False: it goes on."""


class BlockQuestion(NamedTuple):
    """Thread `tid` is about to translate the block at `pc` of `size_bytes`: what is to be changed in it can be
    written into the target's memory at `place`, up to MAX_BLOCK_CHANGES_BYTES. All of it is the target's word."""

    tid: Tid
    size_bytes: int
    place: int
    pc: int


OnBlock = Callable[["Holding", BlockQuestion], bool]
"""Is told of it; whether the thread waits, or was let go already. False: it goes on."""


class _Visit(NamedTuple):
    slot: int
    ends_at: float


@dataclass
class Visits:
    """Of one process. `on_visit` is by place what is told of threads that come there.

    `hear` has somebody else than the recording's thread wait for them, of a process and of its children, where
    `is_heard`.
    """

    on_visit: dict[RemoteAddress, OnVisit] = field(default_factory=dict)
    on_block: OnBlock | None = None
    """Is told of threads that ask about blocks."""
    max_seconds: float = MAX_SECONDS
    note_overdue: Callable[[], object] = lambda: None
    """Is told of each thread that goes on by itself."""
    waiting: dict[Tid, _Visit] = field(default_factory=dict)
    hear: Callable[[Holding], bool] | None = None
    is_heard: bool = False

    def is_waiting(self, tid: Tid) -> bool:
        """Whether a thread waits at a place."""
        return tid in self.waiting

    def meet(self, followed: FollowedProcess, thread: StoppedThread, slot: int) -> HoldReply | None:
        """What a thread is told that came to a place; None: later, or it was told already."""
        # First: who is told of it may let it go at once, in another thread.
        self.waiting[thread.tid] = _Visit(slot, time.monotonic() + self.max_seconds)
        if self.on_visit[thread.pc](followed, thread):
            return None
        return None if self.let_go(thread.tid) is None else HoldReply.GO_ON

    def wait(self, tid: Tid, slot: int) -> None:
        """Have a thread wait at a place that was told of before."""
        self.waiting[tid] = _Visit(slot, time.monotonic() + self.max_seconds)

    def ask(self, holding: Holding, slot: int, question: BlockQuestion) -> HoldReply | None:
        """The same of a thread that asks about a block."""
        self.waiting[question.tid] = _Visit(slot, time.monotonic() + self.max_seconds)
        if self.on_block is not None and self.on_block(holding, question):
            return None
        return None if self.let_go(question.tid) is None else HoldReply.GO_ON

    def let_go(self, tid: Tid) -> int | None:
        """A thread waits no longer: its slot; None: it does not wait, it has gone on already."""
        visit = self.waiting.pop(tid, None)
        return None if visit is None else visit.slot

    def find_overdue(self) -> list[Tid]:
        """Threads that nobody let go in time: they are to go on."""
        if not self.waiting:
            return []
        now = time.monotonic()
        overdue = [tid for tid, visit in list(self.waiting.items()) if visit.ends_at <= now]
        for _ in overdue:
            self.note_overdue()
        return overdue
