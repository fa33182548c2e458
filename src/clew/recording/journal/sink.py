"""The journal as a sink: all that a recording brings becomes frames, and what is of ordered paths files of theirs.

Runs in the controller, beside the target. What records mean is not known here. What is done with arrays is imported
when the target runs already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from clew.dataclass import dataclass
from clew.protocol._constants import RECORD_BYTES
from clew.recording.journal.frames import FrameKind
from clew.recording.journal.writer import JournalWriter
from clew.recording.sinks.sink import ProcessEnd, ProcessSink, ProcessStart, Sink, ThreadRow

if TYPE_CHECKING:
    from clew.recording.journal.path_drain import PathDrain

__all__ = ["JournalSink", "ProcessJournal", "SnapshotJournal"]

MAX_WARNINGS: Final = 8


class JournalSink(Sink):
    """Writes with `writer` what all processes bring; of their command lines, and of threads' names as of
    such with one word, what `told_command` makes of them."""

    def __init__(self, writer: JournalWriter, told_command: Callable[[Sequence[str]], list[str]] = list) -> None:
        self.writer, self._told_command = writer, told_command

    def open_process(self, number: int) -> ProcessJournal:
        return ProcessJournal(self.writer, number, self._told_command)


@dataclass
class _Thread:
    """What was kept of a thread."""

    tid: int
    kept_bytes: int = 0
    """Records that the journal took, if only in memory."""
    lost_bytes: int = 0
    """Records for which there was no room."""
    path: PathDrain | None = None
    """Mode full: takes what is of its path."""


class ProcessJournal(ProcessSink):
    """What one process has written into a journal: `number` is the process' number there."""

    def __init__(
        self, writer: JournalWriter, number: int, told_command: Callable[[Sequence[str]], list[str]] = list
    ) -> None:
        self._writer, self._told_command = writer, told_command
        self.number = number
        self._has_paths = False
        self._threads: dict[int, _Thread] = {}
        self._warnings: list[str] = []

    @property
    def is_slow(self) -> bool:
        """Paths are compressed."""
        return self._has_paths

    def write(
        self,
        kind: FrameKind,
        payload: bytes | memoryview,
        *,
        second: bytes | memoryview = b"",
        stream: int = 0,
        slot: int = 0,
        first: int = 0,
    ) -> bool:
        """Append a frame of `payload` and then `second`; False if there was no room, not even in memory."""
        return self._writer.write(
            kind, payload, second=second, process=self.number, stream=stream, slot=slot, first=first
        )

    def write_json(self, kind: FrameKind, content: dict[str, Any], *, stream: int = 0, slot: int = 0) -> bool:
        """Append a frame that holds `content` as JSON; False if there was no room."""
        return self.write(kind, json.dumps(content).encode("ascii"), stream=stream, slot=slot)

    def begin(self, start: ProcessStart) -> None:
        row: dict[str, Any] = {
            "pid": start.who.pid,
            "parent_pid": start.who.parent_pid,
            "executable": start.who.executable,
            "command": self._told_command(start.who.command),
            "architecture": start.architecture,
            "start_ns": start.start_ns,
            "mode": start.mode,
            "initial_images": [
                {
                    "path": mapping.path,
                    "start": mapping.start,
                    "end": mapping.end,
                    "file_offset": mapping.file_offset,
                    "protection": mapping.protection,
                    "device": mapping.device,
                    "inode": mapping.inode,
                }
                for mapping in start.mappings
            ],
        }
        if start.fork is not None:
            row |= {"inherits": start.fork.parent_number, "fork_tsc": start.fork.tsc}
        self.write_json(FrameKind.PROCESS, row)

    def expect_paths(self) -> None:
        self._has_paths = True
        for stream, thread in self._threads.items():
            thread.path = thread.path or self._path_of(stream)

    def begin_thread(self, stream: int, slot: int, tid: int) -> None:
        self._threads[stream] = _Thread(tid, path=self._path_of(stream) if self._has_paths else None)

    def _path_of(self, stream: int) -> PathDrain:
        # What writes paths takes as long to import as all that empties rings.
        from clew.recording.journal.path_drain import PathDrain

        return PathDrain(self._writer.path.parent, self.number, stream)

    def take_records(self, stream: int, slot: int, first: memoryview, second: memoryview) -> None:
        thread = self._threads[stream]
        if thread.path is not None:
            first, second = thread.path.take_out(first, second)
        size_bytes = len(first) + len(second)
        if not size_bytes:
            return
        if self.write(FrameKind.RECORDS, first, second=second, stream=stream, slot=slot):
            thread.kept_bytes += size_bytes
        else:
            thread.lost_bytes += size_bytes

    def take_ended(self, n_threads: int, packed: bytes) -> bool:
        return self.write(FrameKind.ENDED, packed, first=n_threads)

    def tell_position(self, stream: int, read_cells: Callable[[], bytes]) -> None:
        path = self._threads[stream].path
        if path is not None:
            path.sample(read_cells)

    def take_path_tail(self, stream: int, slot: int, tail: bytes) -> None:
        self.write(FrameKind.PATH_TAIL, tail, stream=stream, slot=slot)

    def take_counters(self, stream: int, slot: int, first: int, values: bytes) -> None:
        from clew.recording.journal.counters import pack_counters

        packed = pack_counters(values)
        if packed is not None:
            kind, payload, second = packed
            self.write(kind, payload, second=second, stream=stream, slot=slot, first=first)

    def tell_thread(self, stream: int, slot: int, row: ThreadRow) -> None:
        self._write_thread(stream, slot, row, self._threads[stream], {})

    def _write_thread(self, stream: int, slot: int, row: ThreadRow, thread: _Thread, more: dict[str, Any]) -> None:
        content = {
            "tid": row.tid,
            "parent_tid": row.parent_tid,
            "name": self._told_command([row.name])[0],
            "start_tsc": row.start_tsc,
            "end_tsc": row.end_tsc,
            "end_kind": row.end_kind,
            "lost_records": row.lost_records + thread.lost_bytes // RECORD_BYTES,
            "records": thread.kept_bytes // RECORD_BYTES,
            "has_ended": row.has_ended,
            **more,
        }
        self.write_json(FrameKind.THREAD, content, stream=stream, slot=slot)

    def end_thread(self, stream: int) -> None:
        thread = self._threads.pop(stream)
        if thread.path is None:
            return
        thread.path.finish()
        failure = thread.path.writer.failure
        if failure is not None and len(self._warnings) < MAX_WARNINGS:
            where = f"{thread.path.writer.path}: {failure.strerror}"
            self._warnings.append(f"{where}; the path of thread {thread.tid} ends there")

    def take_status(self, page: bytes) -> None:
        self.write(FrameKind.STATUS, page)

    def end(self, end: ProcessEnd) -> None:
        content = {
            "end_ns": end.end_ns,
            "exit_code": end.exit_code,
            "signal": end.signal,
            "is_lost": end.is_lost,
            "warnings": [*self._warnings, *end.warnings],
        }
        self.write_json(FrameKind.PROCESS_END, content)


class SnapshotJournal(ProcessJournal):
    """How the threads of a process that goes on stand, in a journal of its own beside `own`, which has the rest."""

    def __init__(self, writer: JournalWriter, own: ProcessJournal) -> None:
        super().__init__(writer, own.number, own._told_command)
        self._own = own

    def tell_thread(self, stream: int, slot: int, row: ThreadRow) -> None:
        """Also how much of its path was saved; what it writes while it is read is of no moment."""
        thread = self._own._threads[stream]
        path_bytes = 0
        if thread.path is not None:
            thread.path.save()
            path_bytes = thread.path.writer.size_bytes
        self._write_thread(stream, slot, row, thread, {"path_bytes": path_bytes})
