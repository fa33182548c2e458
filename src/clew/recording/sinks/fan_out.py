"""Several sinks that are given the same, one of which decides whether there was room.

Runs in the controller, beside the target. What goes wrong in another sink than the first costs that sink the rest of
the process, and neither the recording nor the target anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from clew.recording.sinks.sink import ProcessEnd, ProcessSink, ProcessStart, Sink, ThreadRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FanOut", "fan_out"]


def fan_out(first: ProcessSink, others: Sequence[Sink], number: int, warn: Callable[[str], None]) -> ProcessSink:
    """What gives `first` all of process `number`, and then those that the `others` open for it.

    `warn` takes lines for people.
    """
    opened, are_slow = [], False
    for sink in others:
        try:
            process = sink.open_process(number)
            are_slow |= process.is_slow
            opened.append(process)
        except Exception as error:
            warn(f"{type(sink).__name__} is told nothing of a process: {type(error).__name__}: {error}")
    return FanOut(first, opened, warn, are_slow=are_slow) if opened else first


class FanOut(ProcessSink):
    """Gives each of several sinks all of a process. `are_slow`: one of the others is."""

    def __init__(
        self, first: ProcessSink, others: Sequence[ProcessSink], warn: Callable[[str], None], *, are_slow: bool
    ) -> None:
        self._first, self._others, self._warn, self._are_slow = first, list(others), warn, are_slow

    @property
    def is_slow(self) -> bool:
        return self._are_slow or self._first.is_slow

    @property
    def has_room(self) -> bool:
        return self._first.has_room and all(sink.has_room for sink in self._others)

    @property
    def wants_tails(self) -> bool:
        return any(sink.wants_tails for sink in self._others)

    def begin(self, start: ProcessStart) -> None:
        self._first.begin(start)
        self._tell(lambda sink: sink.begin(start))

    def expect_paths(self) -> None:
        self._first.expect_paths()
        self._tell(lambda sink: sink.expect_paths())

    def begin_thread(self, stream: int, slot: int, tid: int) -> None:
        self._first.begin_thread(stream, slot, tid)
        self._tell(lambda sink: sink.begin_thread(stream, slot, tid))

    def take_records(self, stream: int, slot: int, first: memoryview, second: memoryview) -> None:
        self._first.take_records(stream, slot, first, second)
        self._tell(lambda sink: sink.take_records(stream, slot, first, second))

    def take_captures(self, records: npt.NDArray[np.uint8]) -> None:
        self._first.take_captures(records)
        self._tell(lambda sink: sink.take_captures(records))

    def take_ended(self, n_threads: int, packed: bytes) -> bool:
        """Who is not the first has room."""
        if not self._first.take_ended(n_threads, packed):
            return False
        self._tell(lambda sink: sink.take_ended(n_threads, packed))
        return True

    def tell_position(self, stream: int, read_cells: Callable[[], bytes]) -> None:
        self._first.tell_position(stream, read_cells)
        self._tell(lambda sink: sink.tell_position(stream, read_cells))

    def take_open_tail(self, stream: int, readings: tuple[bytes, bytes, bytes], accesses: bytes) -> None:
        self._first.take_open_tail(stream, readings, accesses)
        self._tell(lambda sink: sink.take_open_tail(stream, readings, accesses))

    def take_accesses(self, stream: int, accesses: bytes) -> None:
        self._first.take_accesses(stream, accesses)
        self._tell(lambda sink: sink.take_accesses(stream, accesses))

    def end_round(self) -> None:
        self._first.end_round()
        self._tell(lambda sink: sink.end_round())

    def take_path_tail(self, stream: int, slot: int, tail: bytes) -> None:
        self._first.take_path_tail(stream, slot, tail)
        self._tell(lambda sink: sink.take_path_tail(stream, slot, tail))

    def take_counters(self, stream: int, slot: int, first: int, values: bytes) -> None:
        self._first.take_counters(stream, slot, first, values)
        self._tell(lambda sink: sink.take_counters(stream, slot, first, values))

    def tell_thread(self, stream: int, slot: int, row: ThreadRow) -> None:
        self._first.tell_thread(stream, slot, row)
        self._tell(lambda sink: sink.tell_thread(stream, slot, row))

    def end_thread(self, stream: int) -> None:
        self._first.end_thread(stream)
        self._tell(lambda sink: sink.end_thread(stream))

    def take_status(self, page: bytes) -> None:
        self._first.take_status(page)
        self._tell(lambda sink: sink.take_status(page))

    def end(self, end: ProcessEnd) -> None:
        self._first.end(end)
        self._tell(lambda sink: sink.end(end))

    def _tell(self, tell: Callable[[ProcessSink], object]) -> None:
        for sink in list(self._others):
            try:
                tell(sink)
            except Exception as error:
                self._others.remove(sink)
                self._warn(f"{type(sink).__name__} is told no more of a process: {type(error).__name__}: {error}")
