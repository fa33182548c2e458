"""Learns when the first process of a session ends, and how.

Runs in the controller, in the one thread that owns the target.
"""

from __future__ import annotations

from concurrent.futures import Future

from clew.recording.sinks.sink import ProcessEnd, ProcessSink, ProcessStart, Sink

__all__ = ["FirstEnd"]


class FirstEnd(Sink):
    """`exit_code` is that of the first process once it has ended, as `subprocess` has it: -N where signal N did it."""

    def __init__(self) -> None:
        self.exit_code: Future[int] = Future()
        self._pid = 0

    def open_process(self, number: int) -> ProcessSink:
        return _Process(self, number)

    def note_begin(self, number: int, pid: int) -> None:
        """Process `number` of the recording begins."""
        if number == 0:
            self._pid = pid

    def note_end(self, pid: int, end: ProcessEnd) -> None:
        """A process ends; one that goes on, or executes another program, says neither code nor signal."""
        if pid != self._pid or self.exit_code.done():
            return
        if end.signal is not None:
            self.exit_code.set_result(-end.signal)
        elif end.exit_code is not None:
            self.exit_code.set_result(end.exit_code)


class _Process(ProcessSink):
    def __init__(self, ends: FirstEnd, number: int) -> None:
        self._ends, self._number = ends, number
        self._pid = 0

    def begin(self, start: ProcessStart) -> None:
        self._pid = start.who.pid
        self._ends.note_begin(self._number, self._pid)

    def end(self, end: ProcessEnd) -> None:
        self._ends.note_end(self._pid, end)
