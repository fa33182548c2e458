"""What is told of the events of a thread's path themselves: system calls, signals, where it begins and ends.

Runs in the controller, in the thread that makes events.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.process.processors.chosen import native_processor
from clew.protocol._constants import PATH_START, EventKind
from clew.protocol._generated import PathEventKind
from clew.protocol.codec import FlowKind
from clew.protocol.codec_layouts import TOLD_EVENT

__all__ = ["TOLD_KINDS", "ToldEvents", "is_unmade", "without_unmade"]

Array = npt.NDArray[Any]

TOLD_KINDS: Final = sum(1 << kind for kind in (FlowKind.SYSCALL, FlowKind.SIGNAL, FlowKind.EXCEPTION, FlowKind.THREAD))
"""What is made here, as bits by FlowKind."""

MOST_SIGNALS: Final = 1 << 16
"""More cannot wait for what the path says of them: each comes right before it."""


_PLACE: Final = ("surprise_bytes", "decisions", "symbol_bytes", "depth")
"""Where an event of a path is in it."""


class ToldEvents:
    """Of one thread. A path says that it went to a handler, and a record before it which signal that was for."""

    def __init__(self) -> None:
        self._signals: deque[tuple[int, int, int, FlowKind]] = deque(maxlen=MOST_SIGNALS)
        """Time stamp, address, number, kind."""
        self._by_stamp: dict[int, tuple[int, FlowKind]] = {}
        """By time stamp of an event of the path: the signal's number and kind."""

    def add(self, records: Array) -> None:
        """Records of dtype EVENT_RECORD, in their order."""
        kinds = {int(EventKind.SIGNAL): FlowKind.SIGNAL, int(EventKind.FAULT): FlowKind.EXCEPTION}
        for record in records[np.isin(records["event_kind"], list(kinds))]:
            kind = kinds[int(record["event_kind"])]
            self._signals.append((int(record["tsc"]), int(record["app_pc"]), int(record["a"]), kind))

    def note(self, records: Array) -> None:
        """What came of the path, behind what was said of its signals."""
        if not self._signals:
            return
        for record in records[records["event_kind"] == PathEventKind.RESUME]:
            stamp, pc = int(record["tsc"]), int(record["pc"])
            # What no handler is there for is not in the path.
            while self._signals and self._signals[0][0] <= stamp:
                _, address, number, kind = self._signals.popleft()
                if address == pc:
                    self._by_stamp[stamp] = number, kind
                    break

    def forget(self, passed: Array) -> None:
        """These events of the path are behind the walk."""
        for stamp in passed["tsc"].tolist() if self._by_stamp else ():
            self._by_stamp.pop(stamp, None)

    def of(self, records: Array, numbers: Array, kinds: int, *, is_end: bool) -> Array:
        """What is told (TOLD_EVENT) of events of the path: of each number, an index into the records, once.

        `is_end`: where the path ends the thread does.
        """
        if not kinds & TOLD_KINDS:
            return np.zeros(0, TOLD_EVENT)
        told = np.zeros(len(records), TOLD_EVENT)
        what = records["event_kind"]
        told["address"], told["target"] = records["pc"], records["value"]
        is_call = what == PathEventKind.NOTE
        told["kind"][is_call] = FlowKind.SYSCALL
        # Where the thread was when it was told: behind the instruction.
        told["address"][is_call] -= np.uint64(native_processor().architecture.system_call_bytes)
        is_start = (what == PathEventKind.RESUME) & (records["pc"] == np.uint64(PATH_START))
        told["address"][is_start], told["target"][is_start] = records["value"][is_start], 1
        ends = (what == PathEventKind.END) & is_end
        told["target"][ends] = 0
        told["kind"][is_start | ends] = FlowKind.THREAD
        told["is_told"] = is_call | is_start | ends
        resumed = np.flatnonzero((what == PathEventKind.RESUME) & ~is_start) if self._by_stamp else ()
        for index in resumed:
            found = self._by_stamp.get(int(records["tsc"][index]))
            if found is not None:
                told["target"][index], told["kind"][index] = found
                told["is_told"][index] = 1
        rows = told[numbers]
        rows["is_told"][1:][numbers[1:] == numbers[:-1]] = 0
        return np.ascontiguousarray(rows)


def is_unmade(call: np.void, event: np.void) -> bool:
    """Whether an event says that a thread went elsewhere in front of the call that was told just before."""
    width = native_processor().architecture.system_call_bytes
    return (
        (call["event_kind"], event["event_kind"]) == (PathEventKind.NOTE, PathEventKind.RESUME)
        and int(call["pc"]) - width == int(event["pc"])
        and all(call[name] == event[name] for name in _PLACE)
    )


def without_unmade(records: Array) -> Array:
    """Events of a path without the calls that are told, and then not made, for a signal came first."""
    notes = np.flatnonzero(records["event_kind"][:-1] == PathEventKind.NOTE)
    unmade = [number for number in notes.tolist() if is_unmade(records[number], records[number + 1])]
    return np.delete(records, unmade) if unmade else records
