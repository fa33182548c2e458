"""How often functions were called in all processes of a session so far, without a trace of it.

Runs in the controller, in any thread. The journal is read as it grows, and counters of threads that run out of the
shared memory, by the thread that owns the target: then the rings are emptied, so that all that counted is known.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.errors import ControlError
from clew.recording.assembly.images.images import ImageFiles
from clew.recording.journal.frames import FrameKind
from clew.recording.live.calls import CallCounts
from clew.recording.live.counters import LiveCounters
from clew.recording.live.processes import LiveProcesses
from clew.store.names import JOURNAL_NAME

if TYPE_CHECKING:
    from clew.recording.control.commands import Control
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.live.process import LiveProcess
    from clew.sessions.target import SessionTarget

__all__ = ["LiveCalls"]

MAX_ENDED: Final = 32
"""Processes that ended are kept up to so many: children of theirs may be told of only then."""


class LiveCalls:
    """Of the session that records into `recorded`. Raises OSError: there is no journal any more."""

    def __init__(self, target: SessionTarget, recorded: Path) -> None:
        self._target = target
        self._processes = LiveProcesses(recorded / JOURNAL_NAME)
        self._files = ImageFiles()
        self._counts: dict[int, CallCounts] = {}
        self._ended: Counter[str] = Counter()
        self._kept: list[int] = []
        self._is_partial = False

    def count(self) -> Counter[str] | None:
        """How often each function was called so far, by `IMAGE!FUNCTION`; None: it takes a trace to say that, now and
        later."""
        if self._is_partial:
            return None
        worker = self._target.worker
        try:
            if not worker.has_ended:
                self._target.run(self._read_counters)
        except ControlError:
            worker.result()
        total: Counter[str] | None = None
        # What the target made up, or what was overwritten: a trace leaves out what can't be.
        with contextlib.suppress(ValueError, KeyError, OSError):
            for process, frame in self._processes.iter_new():
                if frame.kind == FrameKind.PROCESS_END:
                    self._settle(process)
            total = self._add_up()
        self._is_partial |= total is None
        return None if self._is_partial else total

    def close(self) -> None:
        """Let go of the journal and the shared memory."""
        self._processes.close()

    def _read_counters(self, control: Control) -> Iterator[bool]:
        live = list(control.processes.live)
        for followed in live:
            self._read_of(followed)
        for followed in live:
            followed.attempt(lambda drain: drain.poll())
        yield True

    def _read_of(self, followed: FollowedProcess) -> None:
        process = self._processes.find(followed.number)
        if process.end is not None:
            return
        try:
            if process.counters is None:
                shared = followed.shared
                process.counters = LiveCounters(os.dup(shared.fd), shared.offset, shared.layout)
            process.counters.read(process.mode, sys.maxsize)
        except (OSError, ValueError):
            self._is_partial = True

    def _settle(self, process: LiveProcess) -> None:
        """Nothing more comes of a process."""
        calls = self._counts_of(process).count()
        if calls is None:
            self._is_partial = True
            return
        self._ended += calls
        del self._counts[process.number]
        self._kept.append(process.number)
        if len(self._kept) > MAX_ENDED:
            self._processes.by_number.pop(self._kept.pop(0), None)

    def _counts_of(self, process: LiveProcess) -> CallCounts:
        if process.number not in self._counts:
            self._counts[process.number] = CallCounts(process, self._files)
        return self._counts[process.number]

    def _add_up(self) -> Counter[str] | None:
        total = Counter(self._ended)
        for process in self._processes.by_number.values():
            if process.end is not None:
                continue
            calls = self._counts_of(process).count()
            if calls is None:
                return None
            total += calls
        return total
