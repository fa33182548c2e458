"""A sink beside the journal is given what that is given, while the program runs; and can't spoil the recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from clew.process.identity import is_ending
from clew.protocol._constants import Mode
from clew.protocol._generated import RECORD_BYTES, RecordKind
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.options.record_options import RecordOptions
from clew.recording.raw.ended_threads import EndedThreads
from clew.recording.raw.process import RawProcess
from clew.recording.reading.journal_reader import JournalReader
from clew.recording.session.interrupts import InterruptGuard
from clew.recording.session.launched import Launch
from clew.recording.session.session import start_session
from clew.recording.sinks.sink import ProcessEnd, ProcessSink, ProcessStart, Sink, ThreadRow
from clew.store.names import JOURNAL_NAME
from tests.e2e import runs

SCRIPT = (
    "import os, threading\n"
    "threads = [threading.Thread(target=sorted, args=([3, 1, 2],)) for _ in range(3)]\n"
    "[one.start() for one in threads]; [one.join() for one in threads]\n"
    "pid = os.fork()\n"
    "if pid == 0: os.execv('/bin/true', ['true'])\n"
    "os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) + 3)\n"
)
COMMAND = ["/usr/bin/python3", "-I", "-S", "-c", SCRIPT]


class Taken(ProcessSink):
    """Keeps all that it is given."""

    def __init__(self) -> None:
        self.start: ProcessStart | None = None
        self.was_alive = False
        self.records: dict[int, bytes] = defaultdict(bytes)
        self.counters: dict[int, dict[int, int]] = defaultdict(dict)
        self.rows: dict[int, tuple[int, str]] = {}
        self.begun: set[int] = set()
        self.has_paths = False
        self.status = b""
        self.end_of_it: ProcessEnd | None = None

    @property
    def is_slow(self) -> bool:
        return True

    def begin(self, start: ProcessStart) -> None:
        self.start = start

    def expect_paths(self) -> None:
        self.has_paths = True

    def begin_thread(self, stream: int, slot: int, tid: int) -> None:
        self.begun.add(stream)

    def take_records(self, stream: int, slot: int, first: memoryview, second: memoryview) -> None:
        assert stream in self.begun
        assert self.end_of_it is None
        self.records[stream] += bytes(first) + bytes(second)
        self.was_alive |= self.start is not None and not is_ending(self.start.who.pid)

    def take_ended(self, n_threads: int, packed: bytes) -> bool:
        ended = EndedThreads.parse(Frame(FrameKind.ENDED, 0, 0, 0, n_threads, 0, memoryview(packed)))
        ends = np.cumsum(ended.rows["n_records"]).tolist()
        for row, end, thread in zip(ended.rows, ends, ended.iter_threads(), strict=True):
            self.records[thread.stream] = ended.records[end - int(row["n_records"]) : end].tobytes()
            self.counters[thread.stream] = dict(
                zip(thread.counters.index.tolist(), thread.counters.value.tolist(), strict=True)
            )
            self.rows[thread.stream] = thread.tid, thread.name
        return True

    def take_counters(self, stream: int, slot: int, first: int, values: bytes) -> None:
        for index, value in enumerate(np.frombuffer(values, np.uint64).tolist()):
            if value:
                self.counters[stream][first + index] = value

    def tell_thread(self, stream: int, slot: int, row: ThreadRow) -> None:
        self.rows[stream] = row.tid, row.name

    def end_thread(self, stream: int) -> None:
        self.begun.remove(stream)

    def take_status(self, page: bytes) -> None:
        self.status = page

    def end(self, end: ProcessEnd) -> None:
        self.end_of_it = end


class TakesAll(Sink):
    """Has one for each process."""

    def __init__(self) -> None:
        self.processes: dict[int, Taken] = {}
        self.is_over = False

    def open_process(self, number: int) -> Taken:
        return self.processes.setdefault(number, Taken())

    def end(self) -> None:
        self.is_over = True


def record(tmp_path: Path, sink: Sink, mode: Mode, while_read: Callable[[list[RawProcess]], None]) -> list[str]:
    """Record, have `while_read` look at what the journal has, make the trace; the warnings."""
    options = RecordOptions(tmp_path / "t", mode=mode, sinks=(sink,))
    session = start_session(Launch(COMMAND), options, InterruptGuard())
    session.wait()
    while_read(list(JournalReader(tmp_path / "t" / JOURNAL_NAME)))
    result = session.finish()
    assert (result.exit_status, result.failure) == (3, None)
    runs.read(tmp_path / "t")
    return result.warnings


def kinds_of(records: bytes) -> npt.NDArray[np.uint16]:
    rows = np.frombuffer(records, np.uint8).reshape(-1, RECORD_BYTES)
    return rows[:, :2].copy().view("<u2")[:, 0]


@pytest.mark.parametrize("mode", [pytest.param(Mode.COUNTS, marks=pytest.mark.long), Mode.FULL])
def test_another_sink_is_given_what_the_journal_is(mode: Mode, tmp_path: Path) -> None:
    sink = TakesAll()

    def compare(read: list[RawProcess]) -> None:
        assert sink.is_over
        assert [one.executable.rsplit("/", 1)[-1] for one in read][-1] == "true"
        for one in read:
            own = sink.processes[one.number]
            assert own.start is not None and own.end_of_it is not None
            assert (own.start.who.pid, own.start.mode) == (one.pid, mode)
            assert (own.end_of_it.exit_code, own.end_of_it.signal) == (one.exit_code, one.signal)
            assert own.status == one.status.tobytes()
            assert own.rows == {thread.stream: (thread.tid, thread.name) for thread in one.threads}
            assert not own.begun
            for thread in one.threads:
                counters = dict(zip(thread.counters.index.tolist(), thread.counters.value.tolist(), strict=True))
                assert own.counters[thread.stream] == counters
            assert own.has_paths == (mode == Mode.FULL)
            given = b"".join(own.records[stream] for stream in sorted(own.records))
            if mode == Mode.FULL:
                # The journal has paths in files of their own.
                assert RecordKind.PATH_CHUNK in kinds_of(given)
            elif own.start.fork is None:
                assert given == one.records.tobytes()
        assert any(own.was_alive for own in sink.processes.values())

    assert record(tmp_path, sink, mode, compare) == []


class Fails(TakesAll):
    """Goes wrong wherever it is asked."""

    def open_process(self, number: int) -> Taken:
        if number:
            raise ValueError("no more")
        return Failing()

    def end(self) -> None:
        raise ValueError("no end")


class Failing(Taken):
    def begin_thread(self, stream: int, slot: int, tid: int) -> None:
        raise ValueError("no thread")


def test_a_sink_that_fails_costs_nothing_but_itself(tmp_path: Path) -> None:
    def look(read: list[RawProcess]) -> None:
        assert len(read) > 1 and not any(one.is_lost for one in read)
        assert all(one.threads and len(one.records) for one in read)

    warnings = record(tmp_path, Fails(), Mode.COUNTS, look)
    assert sorted(warnings) == [
        "Failing is told no more of a process: ValueError: no thread",
        "Fails failed at the end: ValueError: no end",
        "Fails is told nothing of a process: ValueError: no more",
    ]
