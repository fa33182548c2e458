"""Takes what a recording brings of paths and code, and hands it to the thread that makes events of it.

Runs in the controller, in the thread that owns the target. As long as nobody asks for events only the code is kept, and
what threads did first: a session that is followed before its program runs has all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clew.dataclass import dataclass
from clew.protocol._generated import RECORD_BYTES
from clew.recording.raw.code_records import CodeRecords
from clew.recording.raw.path_records import PathRecords
from clew.recording.sinks.sink import ProcessEnd, ProcessSink, ProcessStart, Sink, ThreadRow
from clew.sessions.events.path_states import PassedPath

if TYPE_CHECKING:
    from clew.sessions.events.live_code import LiveCode

__all__ = ["ENOUGH_ROUNDS", "EventSink", "Told", "ToldQueue", "What"]

ENOUGH_ROUNDS: Final = 2
"""All is known of the code that a thread executed when all rings have been looked at so often since it told of that."""
DELAY_SECONDS: Final = 0.01
"""What came may wait for so long before it is handed out, where events are asked for."""
MOST_WAITING_BYTES: Final = 1 << 26
"""Where more waits to be read the rings are emptied no further: threads that write to them wait, too."""
MOST_EARLY_BYTES: Final = 1 << 20
"""What threads did before anybody asked is kept as long as it is no more."""


class What:
    """What is told of a process, or of one of its threads (`stream`)."""

    BEGIN = "begin"
    """The process begins: its ProcessStart, and what is known of its code."""
    THREAD = "thread"
    """A thread does: its number (tid)."""
    RECORDS = "records"
    """What came out of its ring."""
    PASSED = "passed"
    """It did more than was kept: its PassedPath, and the PathRecords that go on behind that."""
    PATHS = "paths"
    """What came out of its ring before anybody asked: only what is of paths counts, the rest is known."""
    ENDED = "ended"
    """So many threads (in place of `stream`) ended, as `ended_threads` has it."""
    OPEN_TAIL = "open tail"
    """What is in its buffers, while it goes on."""
    ACCESSES = "accesses"
    """What of its accesses to memory was in its buffer when it ended."""
    TAIL = "tail"
    """What was in its buffers when it ended."""
    NAME = "name"
    """What it is called, and its number, when it ended."""
    LEFT = "left"
    """Nothing more comes of it."""
    ROUND = "round"
    """All rings of the process have been looked at."""
    GONE = "gone"
    """Nothing more comes of the process."""


@dataclass(frozen=True)
class Told:
    """Something of a process, by its number in the recording."""

    process: int
    what: str
    stream: int
    content: Any

    @property
    def n_bytes(self) -> int:
        """How much of the target's is in it; of what is little, 0."""
        return len(self.content) if isinstance(self.content, bytes) else 0


class ToldQueue:
    """From the sink to the thread that makes events. Functions are called there, in turn; None: nothing follows."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Told | Callable[[], None] | None] = SimpleQueue()
        self._n_put = self._n_taken = 0
        self._is_closed = False

    def put(self, told: Told | Callable[[], None] | None) -> None:
        """Have something told."""
        if not self._is_closed:
            self._n_put += told.n_bytes if isinstance(told, Told) else 0
            self._queue.put(told)

    def get(self, timeout: float | None = None) -> Told | Callable[[], None] | None:
        """The next one. Raises queue.Empty after so many seconds."""
        return self._queue.get(timeout=timeout)

    def note_taken(self, n_bytes: int) -> None:
        """So many bytes of what was told are read."""
        self._n_taken += n_bytes

    def close(self) -> None:
        """Nobody takes anything any more."""
        self._is_closed = True

    @property
    def has_room(self) -> bool:
        """Whether not too much waits. Each of two threads counts for itself."""
        return self._is_closed or self._n_put - self._n_taken < MOST_WAITING_BYTES


class EventSink(Sink):
    """Of a whole session."""

    def __init__(self) -> None:
        self._processes: list[_Process] = []
        self._queue: ToldQueue | None = None
        self._has_ended = False
        self.must_take: Callable[[], bool] = bool
        """Whether everything has to be taken, though there is no room."""

    @property
    def max_delay_seconds(self) -> float:  # type: ignore[override]
        return DELAY_SECONDS if self._queue is not None else Sink.max_delay_seconds

    def open_process(self, number: int) -> ProcessSink:
        process = _Process(number, self._queue, lambda: self.must_take())
        self._processes.append(process)
        return process

    def ask(self, queue: ToldQueue) -> None:
        """From now on all goes to `queue`, first what was kept. In the thread that owns the target."""
        self._queue = queue
        for process in self._processes:
            process.ask(queue)
        if self._has_ended:
            queue.put(None)

    def end(self) -> None:
        self._has_ended = True
        if self._queue is not None:
            self._queue.put(None)


class _Process(ProcessSink):
    def __init__(self, number: int, queue: ToldQueue | None, must_take: Callable[[], bool]) -> None:
        self._number, self._queue, self._must_take = number, queue, must_take
        self._start: ProcessStart | None = None
        self._records: dict[int, CodeRecords] = {}
        self._threads: dict[int, int] = {}
        self._early: list[Told] = []
        self._paths: dict[int, tuple[PassedPath, PathRecords]] = {}
        self._n_early_bytes = 0
        self._has_paths = False
        self._has_missed = False

    def ask(self, queue: ToldQueue) -> None:
        """From now on all goes to `queue`."""
        self._queue = queue
        if self._start is not None:
            self._put(What.BEGIN, 0, (self._start, self._code()))
        for stream, tid in self._threads.items():
            self._put(What.THREAD, stream, tid)
        for stream, path in self._paths.items():
            if self._has_missed:
                self._put(What.PASSED, stream, path)
        for told in self._early:
            queue.put(told)
        self._early, self._paths = [], {}

    @property
    def has_room(self) -> bool:
        return self._queue is None or self._queue.has_room or self._must_take()

    @property
    def wants_tails(self) -> bool:
        return self._queue is not None

    def expect_paths(self) -> None:
        self._has_paths = True

    def begin(self, start: ProcessStart) -> None:
        self._start = start
        if self._queue is not None:
            self._put(What.BEGIN, 0, (start, self._code()))

    def begin_thread(self, stream: int, slot: int, tid: int) -> None:
        self._threads[stream] = tid
        self._put(What.THREAD, stream, tid)

    def take_records(self, stream: int, slot: int, first: memoryview, second: memoryview) -> None:
        # What nobody else writes to need not be copied.
        whole = first.obj
        if not isinstance(whole, bytes) or len(first) != len(whole) or len(second):
            whole = b"".join((first, second))
        data: bytes = whole
        if self._queue is not None:
            self._put(What.RECORDS, stream, data)
            return
        records = np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES)
        if self._has_paths:
            self._keep(Told(self._number, What.PATHS, stream, data))
            records = self._path_of(stream).take(records)
        self._records.setdefault(stream, CodeRecords()).add(records)

    def _code(self) -> LiveCode | None:
        """What is known of its code, for those who asked; None: nothing."""
        if not self._records:
            return None
        # Late: most sessions have no events.
        from clew.sessions.events.live_code import LiveCode

        code, self._records = LiveCode(self._records), {}
        return code

    def _path_of(self, stream: int) -> PathRecords:
        known = self._paths.get(stream)
        if known is None:
            passed = PassedPath()
            known = self._paths[stream] = passed, PathRecords(passed)
        return known[1]

    def take_ended(self, n_threads: int, packed: bytes) -> bool:
        told = Told(self._number, What.ENDED, n_threads, packed)
        if self._queue is not None:
            self._queue.put(told)
        else:
            self._keep(told)
        return True

    def take_open_tail(self, stream: int, readings: tuple[bytes, bytes, bytes], accesses: bytes) -> None:
        self._put(What.OPEN_TAIL, stream, (readings, accesses))

    def take_accesses(self, stream: int, accesses: bytes) -> None:
        self._put(What.ACCESSES, stream, accesses)

    def end_round(self) -> None:
        self._put(What.ROUND, 0, None)

    def end(self, end: ProcessEnd) -> None:
        self._put(What.GONE, 0, None)

    def take_path_tail(self, stream: int, slot: int, tail: bytes) -> None:
        if self._queue is None:
            self._keep(Told(self._number, What.TAIL, stream, tail))
        else:
            self._put(What.TAIL, stream, tail)

    def end_thread(self, stream: int) -> None:
        self._put(What.LEFT, stream, b"")
        if self._queue is not None or self._has_missed:
            self._threads.pop(stream, None)
            self._paths.pop(stream, None)
        else:
            self._keep(Told(self._number, What.LEFT, stream, b""))

    def tell_thread(self, stream: int, slot: int, row: ThreadRow) -> None:
        """How it ended is told by its path."""
        self._put(What.NAME, stream, (row.name, row.tid))

    def _keep(self, told: Told) -> None:
        """Keep what came before anybody asked, if it is not too much."""
        self._n_early_bytes += len(told.content)
        if self._n_early_bytes > MOST_EARLY_BYTES:
            self._has_missed, self._early = True, []
        elif not self._has_missed:
            self._early.append(told)

    def _put(self, what: str, stream: int, content: Any) -> None:
        if self._queue is not None:
            self._queue.put(Told(self._number, what, stream, content))
