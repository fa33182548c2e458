"""The paths of a process' threads as one sequence, in the order of time as far as times are known.

Runs in the controller. A thread's path is cut where a time is known: at its system calls, signals, checkpoints and
samples. The pieces follow each other by the time at which they had ended: so what a thread did before it woke
another in the kernel stands in front of what that did then. Between two known times a thread's blocks stay together.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clew.analysis.order.thread_path import PathPiece, ThreadPath
from clew.analysis.replay.thread_times import read_path_times
from clew.export.este.code import NO_BLOCK
from clew.export.este.interruptions import Interruptions
from clew.store.columns import Array

if TYPE_CHECKING:
    from clew.analysis.order.path_code import ProcessCode
    from clew.store.trace import Trace

__all__ = ["EsteThread", "Run", "ThreadOrder"]

MAX_RUN: Final = 1 << 16
"""Blocks that are handed on at once."""
MAX_OPEN: Final = 64
"""Paths that are open at a time; others are opened again where they were left."""


@dataclass(frozen=True)
class EsteThread:
    """A thread: `pin_tid` counts those of a process in the order of their creation. `path` is its row of the table
    `paths`, None if it has none."""

    pin_tid: int
    os_tid: int
    row: dict[str, Any]
    path: dict[str, Any] | None


@dataclass(frozen=True)
class Run:
    """Blocks (i64) that a thread executed one after the other, and the one that it executed next, NO_BLOCK if that is
    not known. `is_after_loss`: what it executed in front of these was not recorded; `n_lost` blocks, as was counted.
    `find_interrupted` tells which address would have come in front of one of them, by its number in `blocks`, or in
    front of `next`, had no signal and no fault come; None for nothing."""

    thread: EsteThread
    blocks: Array
    next: int
    is_after_loss: bool
    n_lost: int
    find_interrupted: Callable[[int], int | None]


class _Reader:
    """Reads the path of a thread on and on. It may be closed in between."""

    def __init__(self, trace: Trace, code: ProcessCode, thread: EsteThread, at_once: int) -> None:
        self.thread = thread
        self._trace, self._code, self._at_once = trace, code, at_once
        self._path: ThreadPath | None = None
        self._pieces: Iterator[PathPiece] = iter(())
        self._interruptions = Interruptions()
        self._reached = 0
        self._buffer: tuple[int, Array, bool] | None = None
        """Number of the first one, blocks, and whether they are behind a loss."""

    def open(self) -> ThreadPath:
        if self._path is None:
            assert self.thread.path is not None
            self._path = ThreadPath(self._trace, self.thread.path, self._code)
            self._pieces = self._path.iter_pieces(self._reached, self._at_once)
        return self._path

    def close(self) -> None:
        if self._path is not None:
            self._path.stretches.file.close()
            self._path, self._pieces, self._buffer = None, iter(()), None

    @property
    def n_unknown(self) -> int:
        """How many blocks the thread executed, as was counted, behind those that were read."""
        assert self.thread.path is not None
        executed: int = self.thread.path["block_executions"]
        return max(executed - self._reached, 0)

    def read_until(self, end: int) -> Iterator[Run]:
        """What was executed up to number `end`."""
        while self._fill() and self._buffer is not None and self._buffer[0] < end:
            start, blocks, is_after_loss = self._buffer
            n = min(end - start, len(blocks))
            n_lost, self._reached = start - self._reached, start + n
            self._buffer = (start + n, blocks[n:], False) if n < len(blocks) else None
            find = partial(self._find_interrupted, start)
            yield Run(self.thread, blocks[:n], self._peek(), is_after_loss or n_lost > 0, max(n_lost, 0), find)

    def _find_interrupted(self, start: int, number: int) -> int | None:
        return self._interruptions.find(self.open(), start + number)

    def _fill(self) -> bool:
        """Have something in the buffer, if there is anything left."""
        if self._buffer is None:
            self.open()
            piece = next(self._pieces, None)
            if piece is not None:
                self._buffer = piece.place.execution, piece.indices.astype(np.int64), piece.is_after_loss
        return self._buffer is not None

    def _peek(self) -> int:
        """The block at the place that was reached."""
        if not self._fill() or self._buffer is None or self._buffer[2] or self._buffer[0] != self._reached:
            return NO_BLOCK
        return int(self._buffer[1][0])


class ThreadOrder:
    """The runs of all threads of a process; iterating raises TraceDamagedError. `n_unknown` tells, once all runs were
    taken, how many blocks each thread executed at its end that are not known, by its `pin_tid`."""

    def __init__(self, trace: Trace, code: ProcessCode, threads: list[EsteThread]) -> None:
        self._threads = [thread for thread in threads if thread.path is not None]
        at_once = max(MAX_RUN // max(min(len(self._threads), MAX_OPEN), 1), 1 << 10)
        self._readers = [_Reader(trace, code, thread, at_once) for thread in self._threads]
        self._open: OrderedDict[int, _Reader] = OrderedDict()
        self.n_unknown: dict[int, int] = {}

    def __iter__(self) -> Iterator[Run]:
        marks = [self._read_marks(number) for number in range(len(self._readers))]
        heap = [
            (int(ns[0]), thread.pin_tid, number, 0)
            for number, (thread, (ns, _)) in enumerate(zip(self._threads, marks, strict=True))
            if len(ns)
        ]
        heapq.heapify(heap)
        try:
            while heap:
                _, pin_tid, number, at = heapq.heappop(heap)
                ns, ends = marks[number]
                yield from self._use(number).read_until(int(ends[at]))
                if at + 1 < len(ns):
                    heapq.heappush(heap, (int(ns[at + 1]), pin_tid, number, at + 1))
                else:
                    self._end(number)
        finally:
            for reader in self._open.values():
                reader.close()

    def _use(self, number: int) -> _Reader:
        reader = self._readers[number]
        self._open[number] = reader
        self._open.move_to_end(number)
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)[1].close()
        return reader

    def _read_marks(self, number: int) -> tuple[Array, Array]:
        """Times (i64) and how many blocks (i64) the thread had executed by then, both rising; the last is its end."""
        reader, thread = self._use(number), self._threads[number]
        path = reader.open()
        times = read_path_times(path, thread.row["start_ns"], thread.row["end_ns"])
        ends, first = np.unique(times.mark, return_index=True)
        # The first time at which a place was reached, so that what comes next is not in front of it.
        ns = times.mark_ns[first]
        if len(self._threads) > MAX_OPEN:
            reader.close()
            self._open.pop(number, None)
        is_behind = ends > 0
        return np.append(ns[is_behind], 1 << 62), np.append(ends[is_behind], 1 << 62)

    def _end(self, number: int) -> None:
        reader = self._readers[number]
        self.n_unknown[self._threads[number].pin_tid] = reader.n_unknown
        reader.close()
        self._open.pop(number, None)
