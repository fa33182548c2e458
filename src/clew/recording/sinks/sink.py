"""What a recording hands out while it goes on, to the journal and to whoever else takes it: the interface `Sink`.

Runs in the controller, in the recording's one thread: whoever takes something keeps all processes waiting meanwhile.
What comes from the target is as it came, unchecked. Nothing heavy is imported here: the target is not running yet when
this is.

The life of a process: `begin`; its threads, records, events and counters; `end`. That of a thread: `begin_thread`; its
records; its counters, and `tell_thread`, which says how it ended; `end_thread`. Threads that ended before anything of
them was taken come together instead, in `take_ended`. A fork's child may show its first thread before it begins.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clew.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from clew.address import Pid
    from clew.process.maps import Mapping
    from clew.process.shared_memory import SharedMemory

__all__ = ["Fork", "Identity", "ProcessEnd", "ProcessSink", "ProcessStart", "Sink", "ThreadRow"]


@dataclass(frozen=True)
class Fork:
    """Where a process comes from that nobody started here: the number of its parent in the recording, and when."""

    parent_number: int
    tsc: int


@dataclass(frozen=True)
class Identity:
    """Who a process is, as /proc shows it."""

    pid: Pid
    parent_pid: Pid
    executable: str
    command: list[str]
    name: str
    has_own_namespace: bool


@dataclass(frozen=True)
class ProcessStart:
    """How a process began: with the executable `mappings`, or from a `fork`; `architecture` is what its code is for.

    `start_ns` is CLOCK_REALTIME. `shared` is what it speaks through; None: it had ended before it could.
    """

    who: Identity
    architecture: str
    mode: int
    start_ns: int
    mappings: list[Mapping]
    fork: Fork | None
    shared: SharedMemory | None


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended; exit code and signal both None: by another program, or it goes on, or that is not known.

    `is_lost`: it could not be followed to its end. `warnings` are lines for people.
    """

    end_ns: int
    exit_code: int | None
    signal: int | None
    is_lost: bool
    warnings: list[str]


@dataclass(frozen=True)
class ThreadRow:
    """What a thread's slot says of it, and the kernel of its name. `lost_records` found no room on the way here."""

    tid: int
    parent_tid: int
    name: str
    start_tsc: int
    end_tsc: int
    end_kind: int
    lost_records: int
    has_ended: bool


class ProcessSink:
    """Takes what one process brings; this one nothing: others define what they want.

    Threads are told apart by `stream`, a number of the process' own for each; `slot` is its place in the shared memory,
    which others have before and after it.
    """

    @property
    def is_slow(self) -> bool:
        """Whether taking records takes longer than copying them: then threads need not wait for it.

        Asked when it is opened, of all but the journal.
        """
        return False

    @property
    def has_room(self) -> bool:
        """Whether more can be taken now. Else it stays in the rings, and threads that have no room there wait."""
        return True

    @property
    def wants_tails(self) -> bool:
        """Whether `take_open_tail` is to be told now and then of threads that go on (mode full)."""
        return False

    def begin(self, start: ProcessStart) -> None:
        """It is followed from now on, or its end comes at once."""

    def expect_paths(self) -> None:
        """From now on there may be records of paths (mode full)."""

    def begin_thread(self, stream: int, slot: int, tid: int) -> None:
        """A thread was seen first; `tid` as the target tells it."""

    def take_records(self, stream: int, slot: int, first: memoryview, second: memoryview) -> None:
        """Whole records of a thread, the second of two pieces after the first. Both may change after this."""

    def take_captures(self, records: npt.NDArray[np.uint8]) -> None:
        """What a thread captured, with continuations, of shape (n, RECORD_BYTES); its own copy."""

    def take_ended(self, n_threads: int, packed: bytes) -> bool:
        """Threads that ended before anything of them was taken, all that they left, as `ended_threads` has it.

        False: there is no room for so much; they come one after the other then.
        """
        return True

    def tell_position(self, stream: int, read_cells: Callable[[], bytes]) -> None:
        """A thread goes on, in mode full: `read_cells` reads how far its path has come, as `path_tail` has it."""

    def take_open_tail(self, stream: int, readings: tuple[bytes, bytes, bytes], accesses: bytes) -> None:
        """What is in the buffers of a thread that goes on, as `read_open_tail` of `path_tail` has it, and `access_tail`
        what it did with memory, if that is told.

        All that its ring had then has been taken.
        """

    def end_round(self) -> None:
        """All rings have been looked at once more, if there was anything in one of them."""

    def take_accesses(self, stream: int, accesses: bytes) -> None:
        """What had not left the target of what a thread did with memory, as `access_tail` has it."""

    def take_path_tail(self, stream: int, slot: int, tail: bytes) -> None:
        """What of a thread's path had not left the target, as `path_tail` has it."""

    def take_counters(self, stream: int, slot: int, first: int, values: bytes) -> None:
        """Counters of a thread, u64, from index `first` on; all others are 0."""

    def tell_thread(self, stream: int, slot: int, row: ThreadRow) -> None:
        """How a thread ended, after all that it left."""

    def end_thread(self, stream: int) -> None:
        """Nothing more comes of a thread."""

    def take_status(self, page: bytes) -> None:
        """The status page, when the process had ended."""

    def end(self, end: ProcessEnd) -> None:
        """Nothing more comes of the process."""


class Sink:
    """Takes what a recording brings, of all its processes."""

    max_delay_seconds: float = math.inf
    """What comes may wait for so long before it is handed out."""

    def open_process(self, number: int) -> ProcessSink:
        """What takes process `number`, the first 0. It may never begin."""
        raise NotImplementedError

    def end(self) -> None:
        """Nothing more comes: all processes have ended, or were left."""
