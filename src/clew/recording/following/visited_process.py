"""One followed process with places at which its threads stop alone: what is captured there, and how they go on.

Runs in the controller: captures grow, and threads are let go, in the recording's thread and in the one that waits for
them (clew.sessions.visit_lane). Pauses and breakpoints, where all threads stop, are not known here.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import IO, TYPE_CHECKING

from clew.address import RemoteAddress, Tid
from clew.errors import ControlError, UsageError
from clew.process.processors.chosen import native_processor
from clew.protocol._constants import MAX_BLOCK_CHANGES_BYTES, CaptureAction, HoldReason, HoldReply
from clew.recording.following.stopped_thread import StoppedThread
from clew.recording.following.visits import BlockQuestion, OnVisit, Visits

if TYPE_CHECKING:
    from clew.process.capture_table import CaptureRow, CaptureTable
    from clew.recording.drain.request import Request
    from clew.recording.following.followed import FollowedProcess

__all__ = ["VisitedProcess"]


class VisitedProcess:
    """The process `followed`. What its threads tell of themselves is the target's word."""

    def __init__(self, followed: FollowedProcess) -> None:
        self.followed = followed
        self.processor = native_processor()
        self.captures: dict[CaptureRow, None] = {}
        """What is captured, in the order in which it was asked for."""
        self.visits = Visits()
        """Threads that wait at places of their own."""
        self._is_together = False
        self._lock = threading.Lock()
        """Of the captures, which grow where threads are told of, too."""

    def add_capture(self, row: CaptureRow, on_visit: OnVisit | None = None) -> None:
        """Capture something; `on_visit` is told of each thread that stops for it.

        The thread that is told of now may come there next; others see to it as they come. Raises ControlError.
        """
        with self._lock:
            if row not in self.captures:
                try:
                    self.followed.shared.append_capture(row, is_last=not self._is_together)
                except UsageError as error:
                    raise ControlError(error.message) from error
                self.captures[row] = None
            if on_visit is not None:
                self.visits.on_visit[RemoteAddress(row.pc)] = on_visit

    def add_captures(self, table: CaptureTable) -> None:
        """Capture all that a table has, for which no thread stops. Raises ControlError."""
        with self._lock:
            try:
                self.followed.shared.append_captures(table, is_last=not self._is_together)
            except UsageError as error:
                raise ControlError(error.message) from error
            self.captures |= dict.fromkeys(table.rows)

    @contextlib.contextmanager
    def capturing_together(self) -> Iterator[None]:
        """What is captured from here on the process is told of at once, at the end."""
        self._is_together = True
        try:
            yield
        finally:
            self._is_together = False
            with self._lock:
                self.followed.shared.tell_captures()

    def keep_captures(self, rows: Iterable[CaptureRow]) -> None:
        """Capture nothing but this; the process is held. Who is stopped at something else stays so."""
        with self._lock:
            self.captures = dict.fromkeys(row for row in rows if row in self.captures)
            stops = {row.pc for row in self.captures if row.action == CaptureAction.STOP}
            for address in self.visits.on_visit.keys() - stops:
                del self.visits.on_visit[address]
            self.followed.shared.set_captures(list(self.captures))

    def let_go(self, tid: Tid, registers: Sequence[int] | None = None) -> bool:
        """Let a thread go on that waits at a place; with other `registers`, in the architecture's order, if given.

        False: it has gone on by itself.
        """
        slot = self.visits.let_go(tid)
        if slot is None:
            return False
        drain = self.followed.drain
        if drain is None:
            return False
        # At once, not when the rings are emptied next: it waits.
        if registers is not None:
            drain.write_held_registers(slot, registers)
        drain.reply(slot, HoldReply.GO_ON if registers is None else HoldReply.GO_ON_CHANGED)
        return True

    def change_block(self, question: BlockQuestion, changes: bytes) -> None:
        """Let a thread go on that asked about a block, unless it has gone on by itself, with what is to be changed in
        it."""
        slot, drain = self.visits.let_go(question.tid), self.followed.drain
        if slot is None or drain is None:
            return
        reply = HoldReply.GO_ON
        # The place is the thread's as long as it waits.
        if changes and len(changes) <= MAX_BLOCK_CHANGES_BYTES:
            with contextlib.suppress(OSError, OverflowError):
                if os.pwrite(self.memory.fileno(), changes, question.place) == len(changes):
                    drain.answer_more(slot, (len(changes), 0, 0, 0))
                    reply = HoldReply.CHANGED_BLOCK
        drain.reply(slot, reply)

    @cached_property
    def memory(self) -> IO[bytes]:
        """The process' memory, whatever is protected. Raises OSError."""
        return open(f"/proc/{self.followed.memory_pid}/mem", "r+b", buffering=0)

    def _read_thread(self, request: Request, reason: HoldReason) -> StoppedThread:
        """What a thread shows of itself that asks how to go on."""
        drain = self.followed.drain
        assert drain is not None
        return StoppedThread(Tid(request.tid), reason, *drain.read_held(request.slot), self.processor.definition)
