"""What whoever asked for events has in hand: batches, as they come.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.protocol.codec import FlowKind
from clew.protocol.codec_layouts import FLOW_EVENT
from clew.sessions.events.gates import NO_GATES, Gates

__all__ = ["EventStream", "Wanted", "parse_kinds"]

Array = npt.NDArray[Any]


def parse_kinds(events: Iterable[str]) -> int:
    """Kinds of events by their names, as bits. Raises UsageError."""
    names = [events] if isinstance(events, str) else list(events)
    known = {kind.name.lower(): kind for kind in FlowKind}
    for name in names:
        if name not in known:
            raise UsageError(f"events {name!r}: there are {', '.join(known)}")
    return sum({1 << known[name] for name in names})


@dataclass
class Wanted:
    """Which events are wanted, and of whom: of all threads, or those that `is_followed` says yes to, by process, number
    (tid), and the name that a thread told when it ended; of what lies between the `gates`, which are addresses in
    process `pid`."""

    kinds: int = 0
    is_followed: Callable[[int, int, str], bool] | None = None
    gates: Gates = NO_GATES
    pid: int = 0

    def kinds_of(self, pid: int, tid: int, name: str) -> int:
        """What is wanted of a thread."""
        return self.kinds if self.is_followed is None or self.is_followed(pid, tid, name) else 0


class EventStream:
    """Events of a session's threads. Iterating gives batches, of its `dtype`, each of one thread and in its order.

    It ends when nothing is followed any more.

    At most `size` batches wait to be taken. If more come the program waits, or they are dropped and counted.
    """

    dtype: np.dtype[np.void] = FLOW_EVENT
    """Of batches: FLOW_EVENT or, from when `memory` is asked for, VALUE_EVENT. `sequence` numbers a thread's events
    from 0 on; `kind` is a `FlowKind`; `thread` its number (tid).

    `address` is that of the instruction, or of the block's first, `size` its bytes, `n_instructions` the block's.
    `target` is the address that it leads to, though a signal may come first; of a `syscall` its number, of a `signal`
    and an `exception` the signal's, of a `thread` 1 where it begins and 0 where it ends, of an `image` the offset in
    its file, of a `memory` event the address that the instruction at `address` accessed: as `access` says, an
    `AccessKind`, `size` bytes; `value` has the first eight of them, as they were read or are written. A signal is told
    where it has a handler, right before that; where it comes at the instruction of the `syscall` before it, that call
    was not made yet. `depth` is how many calls were open; `time`, in nanoseconds since 1970,
    is that of the last checkpoint, system call or signal before it.
    """

    def __init__(self, wanted: Wanted, size: int, *, drops: bool) -> None:
        self.wanted = wanted
        self._drops = drops
        self._batches: queue.Queue[Array | None] = queue.Queue(size)
        self._failure: BaseException | None = None
        self.is_closed = False
        """Whether nobody takes events any more."""
        self.n_received = self.n_dropped = 0
        """Events that could be taken, and those for which there was no room."""
        self.n_gaps = 0
        """How often some of what a thread did was not recorded: dropped on the way here, or left out by a budget."""
        self.n_unmatched = 0
        """Accesses to memory that are of nothing that a thread did, and were not told."""
        self.n_damaged = 0
        """Threads whose path contradicts the code, and of which nothing more is told."""

    def deliver(self, rows: Array) -> None:
        """Have a batch wait to be taken. In the thread that makes events."""
        while not self.is_closed:
            try:
                self._batches.put(rows, timeout=0 if self._drops else 0.1)
            except queue.Full:
                if self._drops:
                    self.n_dropped += len(rows)
                    return
                continue
            self.n_received += len(rows)
            return

    def end(self, failure: BaseException | None) -> None:
        """Nothing more comes."""
        self._failure = failure
        while not self.is_closed:
            try:
                self._batches.put(None, timeout=0.1)
            except queue.Full:
                continue
            return

    def close(self) -> None:
        """What comes from now on is of no interest; nobody waits for it to be taken."""
        self.is_closed = True
        while True:
            with contextlib.suppress(queue.Empty):
                while True:
                    self._batches.get_nowait()
            # Whoever makes events may have had one left.
            with contextlib.suppress(queue.Full):
                self._batches.put_nowait(None)
                return

    def take(self, timeout: float | None = None) -> Array | None:
        """The next batch, or None if nothing more comes. Raises TimeoutError, and what went wrong."""
        try:
            batch = self._batches.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no events within {timeout} seconds") from None
        if batch is None:
            # For whoever else takes some.
            self._batches.put_nowait(None)
            if self._failure is not None:
                raise self._failure
        return batch

    @property
    def is_full(self) -> bool:
        """Whether whoever makes events waits for one to be taken."""
        return self._batches.full()

    def take_waiting(self) -> Array:
        """All events that wait, in one array."""
        batches: list[Array] = []
        while not self._batches.empty():
            batch = self.take()
            if batch is None:
                break
            batches.append(batch)
        return np.concatenate([np.zeros(0, self.dtype), *batches])

    def __iter__(self) -> Iterator[Array]:
        while (batch := self.take()) is not None:
            yield batch
