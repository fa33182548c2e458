"""Which of a thread's events are those of the body that is followed.

Pure. The thread makes a system call in front of its body and behind it that hardly anybody makes: getppid. The events
between are the body's; of what it takes to make that call nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.protocol.codec import FlowKind
from clew.protocol.codec_layouts import FLOW_EVENT

__all__ = ["OwnRows", "Ranges"]

Array = npt.NDArray[Any]

AROUND_BYTES: Final = 16
"""The function that makes the call begins and ends so near to it."""
AROUND_ROWS: Final = 64
"""And is so few events."""
MOST_HELD_ROWS: Final = 1 << 20
"""More events than that are none of what follows the body."""


_INTERPRETER, _LIBRARY, _ELSEWHERE = 0, 1, 2

Ranges = Sequence[tuple[int, int]]
"""Of addresses, from the first up to the second."""


class OwnRows:
    """`marker` is the number of the system call, `kinds` are bits of FlowKind.

    Of code in `interpreter` nothing is told but calls and returns that lead to other code than that in `library`. Of
    code in `library` nothing is told while it was the interpreter that called it. Nothing is left out where there is
    no `interpreter`; otherwise events are needed that tell of all calls and returns, or of all blocks.
    """

    def __init__(self, kinds: int, marker: int, interpreter: Ranges, library: Ranges) -> None:
        self._marker = marker
        self._is_wanted = np.array([kinds >> kind & 1 for kind in range(256)], np.bool_)
        self._has_interpreter = bool(interpreter)
        self._edges, self._places_between = _find_edges(interpreter, library)
        self._was_elsewhere = False
        """Whether the thread was last in code that is neither the interpreter's nor the library's."""
        self._has_begun = self._is_behind_marker = False
        self._marker_address = 0
        self._held = np.zeros(0, FLOW_EVENT)
        """What may be behind the body, from a system call on that may be the last; or just the last few rows."""
        self._holds_marker = False
        self._n_told = 0

    def take(self, rows: Array) -> Iterator[Array]:
        """Further events of the thread: those of them, and of what came before, that are the body's for certain."""
        if not self._has_begun:
            markers = self._find_markers(rows)
            if not len(markers):
                return
            self._has_begun = self._is_behind_marker = True
            self._marker_address = int(rows["address"][markers[0]])
            rows = rows[markers[0] + 1 :]
        if self._is_behind_marker:
            elsewhere = np.flatnonzero(~self._is_around(rows["address"]))
            if not len(elsewhere):
                return
            self._is_behind_marker = False
            rows = rows[elsewhere[0] :]
        yield from self._hold(rows)

    def end(self, *, is_marked: bool) -> Iterator[Array]:
        """Nothing more comes. Where `is_marked` the last marker ends the body."""
        if not (is_marked and self._holds_marker):
            yield from self._tell(self._held)
        self._held = self._held[:0]

    def _hold(self, rows: Array) -> Iterator[Array]:
        n_before, markers = len(self._held), self._find_markers(rows)
        if not len(markers) and not self._holds_marker and len(rows) > AROUND_ROWS:
            # As nearly always: nothing is copied.
            held, self._held = self._held, rows[-AROUND_ROWS:].copy()
            yield from self._tell(held)
            yield from self._tell(rows[:-AROUND_ROWS])
            return
        rows = np.concatenate([self._held, rows])
        if len(markers):
            start, self._holds_marker = self._cut(rows, n_before + int(markers[-1])), True
        elif self._holds_marker and len(rows) <= MOST_HELD_ROWS:
            start = 0
        else:
            start, self._holds_marker = max(len(rows) - AROUND_ROWS, 0), False
        self._held = rows[start:].copy()
        yield from self._tell(rows[:start])

    def _cut(self, rows: Array, marker: int) -> int:
        """Where what it takes to make the system call begins."""
        start = marker
        first = max(marker - AROUND_ROWS, 0)
        is_around = self._is_around(rows["address"][first:marker])
        elsewhere = np.flatnonzero(~is_around)
        start = first + int(elsewhere[-1]) + 1 if len(elsewhere) else first
        if start and rows["kind"][start - 1] == FlowKind.CALL and self._is_around(rows["target"][start - 1 : start])[0]:
            start -= 1
        return start

    def _find_markers(self, rows: Array) -> Array:
        found: Array = np.flatnonzero((rows["kind"] == FlowKind.SYSCALL) & (rows["target"] == self._marker))
        return found

    def _is_around(self, addresses: Array) -> Array:
        low, high = max(self._marker_address - AROUND_BYTES, 0), self._marker_address + AROUND_BYTES
        found: Array = (addresses >= np.uint64(low)) & (addresses < np.uint64(high))
        return found

    def _tell(self, rows: Array) -> Iterator[Array]:
        is_told = self._is_wanted[rows["kind"]]
        if self._has_interpreter and len(rows):
            is_told &= self._is_elsewhere(rows)
        own = rows if is_told.all() else rows[is_told]
        if len(own):
            own["sequence"] = np.arange(self._n_told, self._n_told + len(own), dtype=np.uint64)
            self._n_told += len(own)
            yield own

    def _is_elsewhere(self, rows: Array) -> Array:
        """Which events are not the interpreter's own."""
        kinds = rows["kind"]
        is_border = (kinds == FlowKind.CALL) | (kinds == FlowKind.RET)
        addresses, targets = np.ascontiguousarray(rows["address"]), np.ascontiguousarray(rows["target"])
        places = np.empty((len(rows), 2), np.int8)
        places[:, 0] = self._places(addresses)
        # Most lead to where the next one is.
        places[:-1, 1] = places[1:, 0]
        others = np.flatnonzero(np.append(targets[:-1] != addresses[1:], True))
        places[others, 1] = self._places(targets[others])
        places[~(is_border | (kinds == FlowKind.BLOCK)), 1] = _LIBRARY
        if self._was_elsewhere and (places[:, 0] == _ELSEWHERE).all() and places[-1, 1] != _INTERPRETER:
            return np.ones(len(rows), np.bool_)
        # The library's code belongs to whoever the thread came from.
        known = np.concatenate([[_ELSEWHERE if self._was_elsewhere else _INTERPRETER], places.reshape(-1)])
        last = np.maximum.accumulate(np.where(known != _LIBRARY, np.arange(len(known)), 0))
        belongs = known[last][1:].reshape(-1, 2)
        self._was_elsewhere = bool(belongs[-1, 1] == _ELSEWHERE)
        found: Array = (belongs[:, 0] == _ELSEWHERE) | (is_border & (places[:, 1] == _ELSEWHERE))
        return found

    def _places(self, addresses: Array) -> Array:
        found: Array = self._places_between[np.searchsorted(self._edges, addresses, side="right")]
        return found


def _find_edges(interpreter: Ranges, library: Ranges) -> tuple[Array, Array]:
    """Edges (u64) at which code of one becomes that of another, and what lies in front of, between and behind them."""
    ranges = [(*one, _INTERPRETER) for one in interpreter] + [(*one, _LIBRARY) for one in library]
    edges, places = [], [_ELSEWHERE]
    for start, end, place in sorted(ranges):
        edges += [start, end]
        places += [place, _ELSEWHERE]
    return np.array(edges, np.uint64), np.array(places, np.int8)
