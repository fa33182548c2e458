"""Makes events of what threads wrote of their paths, in a thread of its own.

Runs in the controller. What the target wrote is not believed: whatever does not fit ends the events of its thread.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import EVENT_RECORD, FRAGMENT_RECORD, IMAGE_RECORD, RECORD_BYTES, RecordKind
from clew.protocol.codec import FlowKind
from clew.protocol.codec_layouts import FLOW_EVENT
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.raw.ended_threads import EndedThreads
from clew.recording.raw.path_records import PathRecords
from clew.recording.raw.path_tail import CELLS_BYTES, read_open_tail, read_tail
from clew.recording.sinks.sink import ProcessStart
from clew.sessions.events.event_sink import Told, ToldQueue, What
from clew.sessions.events.event_stream import EventStream
from clew.sessions.events.gates import NO_GATES, Gates
from clew.sessions.events.live_code import LiveCode
from clew.sessions.events.row_pool import RowPool
from clew.sessions.events.thread_flow import ThreadFlow
from clew.sessions.live_clock import LiveClock

__all__ = ["Decoder"]

Array = npt.NDArray[Any]

ROUND_SECONDS: Final = 0.02
"""What came is gathered for so long before it is read."""
ROUND_BYTES: Final = 1 << 22
"""Or until it is so much."""


_DAMAGE: Final = (ValueError, IndexError, KeyError, OverflowError)
"""What comes of what a target wrote that does not fit."""

_BESIDE_PATHS: Final = (
    (FlowKind.IMAGE, RecordKind.IMAGE, IMAGE_RECORD),
    (FlowKind.COMPILE, RecordKind.FRAGMENT, FRAGMENT_RECORD),
)
"""Kinds of events that are told by records, not by paths."""


class _Thread:
    """What is known of a thread's path."""

    def __init__(self, pid: int, flow: ThreadFlow) -> None:
        self.pid, self.flow = pid, flow
        self.records = PathRecords(flow)
        self.is_known = False
        """It has told its name, or is left: no other one comes."""
        self.last_ns = 0
        """The time of its last event."""
        self.name = ""
        """What it told when it ended."""


class Decoder:
    """Reads what comes through `told`; `stream` is given the events of one thread at a time."""

    def __init__(self, told: ToldQueue, stream: EventStream, *, has_time: bool) -> None:
        self._told, self._stream, self._has_time = told, stream, has_time
        self._codes: dict[int, LiveCode] = {}
        self._pids: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        """Of forks: by numbers."""
        self._gated = -1
        """The number of the process that the gates are of, and its forks'."""
        self._threads: dict[tuple[int, int], _Thread] = {}
        self._waiting: dict[tuple[int, int], _Thread] = {}
        """Those of which something came that was not read yet."""
        self._clock, self._pool = _StampClock(), RowPool(FLOW_EVENT)
        self._thread = threading.Thread(target=self._run, name="clew-events", daemon=True)
        self._thread.start()

    def flush(self, change: Callable[[], None] | None = None) -> threading.Event:
        """Set once all that was told until now has been read, and then `change` was made of what is wanted."""
        done = threading.Event()

        def read() -> None:
            self._read_all()
            if change is not None:
                change()
                self._set_gates()
                for thread in self._threads.values():
                    self._choose(thread)
            done.set()

        self._told.put(read)
        return done

    @property
    def awaits_code(self) -> bool:
        """Whether a thread executed code of which nothing has come yet. In any thread."""
        return any(thread.flow.waits_for_code for thread in list(self._waiting.values()))

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait until it has ended."""
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            while self._round() and not self._stream.is_closed:
                pass
        except BaseException as error:
            failure = error
        self._told.close()
        self._stream.end(failure)

    def _round(self) -> bool:
        """Take what comes for a while, then read it; whether more may come."""
        deadline, n_bytes, goes_on = None, 0, True
        while goes_on and n_bytes < ROUND_BYTES:
            try:
                left = None if deadline is None else max(deadline - time.monotonic(), 0)
                told = self._told.get(left)
            except queue.Empty:
                break
            if deadline is None:
                deadline = time.monotonic() + ROUND_SECONDS
            if told is None:
                goes_on = False
            elif isinstance(told, Told):
                self._take(told)
                n_bytes += told.n_bytes
            else:
                told()
        self._read_all()
        self._told.note_taken(n_bytes)
        return goes_on

    def _read_all(self) -> None:
        """Read of all threads what came."""
        self._clock.note()
        if self._pool.dtype != self._stream.dtype:
            self._pool = RowPool(self._stream.dtype)
        waiting, self._waiting = self._waiting, {}
        for key, thread in waiting.items():
            if not self._stream.is_closed:
                self._read(key, thread)

    def _read(self, key: tuple[int, int], thread: _Thread) -> None:
        flow = thread.flow
        if (not flow.tid or self._waits_for_name(thread)) and not self._code_of(key[0]).is_complete:
            self._waiting[key] = thread
            return
        self._choose(thread)
        n_gaps, n_unmatched, was_damaged = flow.n_gaps, flow.n_unmatched, flow.is_damaged
        try:
            for rows in flow.read(self._pool.take):
                if self._has_time:
                    thread.last_ns = self._clock.set_times(rows, thread.last_ns)
                self._stream.deliver(rows)
                if self._stream.is_closed:
                    return
        except _DAMAGE:
            flow.is_damaged = True
        self._stream.n_gaps += flow.n_gaps - n_gaps
        self._stream.n_unmatched += flow.n_unmatched - n_unmatched
        self._stream.n_damaged += flow.is_damaged and not was_damaged
        if flow.waits_for_code:
            self._waiting[key] = thread
        elif flow.is_over:
            self._threads.pop(key, None)

    def _waits_for_name(self, thread: _Thread) -> bool:
        """Whether a thread is gone, and what it was called is yet to come: that may choose it."""
        if thread.is_known or self._stream.wanted.is_followed is None:
            return False
        return not os.path.exists(f"/proc/{thread.pid}/task/{thread.flow.tid}")

    def _choose(self, thread: _Thread) -> None:
        """What is told of a thread from now on."""
        thread.flow.kinds = self._stream.wanted.kinds_of(thread.pid, thread.flow.tid, thread.name)

    def _set_gates(self) -> None:
        """Have other gates, which no thread has come to yet."""
        wanted = self._stream.wanted
        self._gated = max((number for number, pid in self._pids.items() if pid == wanted.pid), default=-1)
        for number, code in self._codes.items():
            code.set_gates(self._gates_of(number))
        for thread in self._threads.values():
            thread.flow.open_gates(wanted.gates.is_open_at_first)

    def then(self, change: Callable[[], None]) -> None:
        """Have something changed behind what was told until now, and before what is told next."""
        self._told.put(change)

    def add_gates(self, gates: Gates) -> None:
        """Have more gates, of code that was just loaded; as open as threads are they stay."""
        self._stream.wanted.gates = gates
        for number, code in self._codes.items():
            code.set_gates(self._gates_of(number))

    def _gates_of(self, number: int) -> Gates:
        """Those of a process: another program than was asked about has none."""
        while number != self._gated and number in self._parents:
            number = self._parents[number]
        return self._stream.wanted.gates if number == self._gated else NO_GATES

    def _take(self, told: Told) -> None:
        key = told.process, told.stream
        match told.what:
            case What.BEGIN:
                self._begin(told.process, *told.content)
            case What.THREAD:
                self._thread_of(key, told.content)
            case What.ENDED:
                try:
                    self._take_ended(told.process, told.stream, told.content)
                except _DAMAGE:
                    self._stream.n_damaged += 1
            case What.NAME:
                named = self._thread_of(key, told.content[1])
                named.name, named.flow.tid = told.content
                named.is_known = True
            case What.LEFT:
                self._leave(key)
            case What.ROUND:
                self._code_of(told.process).n_rounds += 1
            case What.GONE:
                self._code_of(told.process).is_complete = True
            case _:
                thread = self._threads.get(key)
                if thread is not None:
                    self._waiting[key] = thread
                    try:
                        self._take_path(told, thread)
                    except _DAMAGE:
                        thread.flow.is_damaged = True

    def _take_path(self, told: Told, thread: _Thread) -> None:
        match told.what:
            case What.PASSED:
                passed, thread.records = told.content
                thread.records.keeper = thread.flow
                thread.flow.begin_late(passed)
            case What.OPEN_TAIL:
                readings, accesses = told.content
                tail = read_open_tail(*readings)
                if tail is not None:
                    thread.flow.add_open_tail(tail, accesses)
            case What.ACCESSES:
                thread.flow.add_accesses_left(told.content)
            case What.TAIL:
                thread.flow.add_tail(read_tail(told.content), is_end=True)
            case _:
                records = np.frombuffer(told.content, np.uint8).reshape(-1, RECORD_BYTES)
                rest = thread.records.take(records)
                if told.what == What.RECORDS:
                    self._code_of(told.process).add(told.stream, rest)
                    thread.flow.add_signals(_pick(rest, RecordKind.EVENT, EVENT_RECORD))
                    self._tell_compiled(told.process, rest)

    def _begin(self, number: int, start: ProcessStart, code: LiveCode | None) -> None:
        self._pids[number] = int(start.who.pid)
        if code is not None:
            self._codes[number] = code
        if start.fork is not None:
            self._parents[number] = start.fork.parent_number
            self._code_of(number).inherit(self._code_of(start.fork.parent_number), start.fork.tsc)
            self._code_of(number).set_gates(self._gates_of(number))
        for (process, _), thread in self._threads.items():
            if process == number:
                thread.pid = int(start.who.pid)
                # A fork's child may show its first thread before it knows its number.
                thread.flow.tid = thread.flow.tid or thread.pid

    def _code_of(self, number: int) -> LiveCode:
        return self._codes.setdefault(number, LiveCode())

    def _thread_of(self, key: tuple[int, int], tid: int) -> _Thread:
        thread = self._threads.get(key)
        if thread is None:
            pid = self._pids.get(key[0], 0)
            thread = self._threads[key] = _Thread(pid, ThreadFlow(tid, self._code_of(key[0]), has_time=self._has_time))
            thread.flow.open_gates(self._stream.wanted.gates.is_open_at_first)
        return thread

    def _leave(self, key: tuple[int, int]) -> None:
        thread = self._threads.get(key)
        if thread is not None:
            thread.is_known = True
            thread.flow.end()
            self._waiting[key] = thread

    def _take_ended(self, number: int, n_threads: int, packed: bytes) -> None:
        """Threads that ended before anything of them was taken."""
        frame = Frame(FrameKind.ENDED, number, 0, 0, n_threads, 0, memoryview(packed))
        ended = EndedThreads.parse(frame)
        if len(ended.rows):
            self._code_of(number).add(int(ended.rows["stream"][0]), ended.records[~ended.is_path])
        for raw in ended.iter_threads():
            key = number, raw.stream
            thread = self._thread_of(key, int(raw.tid))
            thread.name = raw.name
            if raw.path_records is not None:
                thread.records.take(raw.path_records)
                events = _pick(ended.records[~ended.is_path], RecordKind.EVENT, EVENT_RECORD)
                thread.flow.add_signals(events[events["tid"] == raw.tid])
            if len(raw.path_tail) >= CELLS_BYTES:
                thread.flow.add_tail(read_tail(raw.path_tail), is_end=True)
            self._leave(key)
        self._tell_compiled(number, ended.records[~ended.is_path])

    def _tell_compiled(self, number: int, records: Array) -> None:
        """Events of code that threads translated and mapped, of records that are of no path."""
        for kind, of, dtype in _BESIDE_PATHS:
            if self._stream.wanted.kinds >> kind & 1:
                found = _pick(records, of, dtype)
                for tid in np.unique(found["tid"]).tolist():
                    flow = self._find_flow(number, tid)
                    if flow is not None and flow.kinds >> kind & 1:
                        self._tell_beside(flow, kind, found[found["tid"] == tid])

    def _tell_beside(self, flow: ThreadFlow, kind: FlowKind, own: Array) -> None:
        rows = np.zeros(len(own), self._stream.dtype)
        rows["sequence"], rows["thread"], rows["kind"] = flow.take_numbers(len(own)), flow.tid, kind
        rows["size"] = np.minimum(own["size_bytes"], np.uint64(0xFFFFFFFF))
        if kind == FlowKind.COMPILE:
            rows["address"], rows["n_instructions"] = own["app_pc"], own["n_instructions"]
        else:
            rows["address"], rows["target"] = own["start"], own["file_offset"]
        if self._has_time:
            rows["time"] = self._clock.to_ns(own["tsc"])
        self._stream.deliver(rows)

    def _find_flow(self, number: int, tid: int) -> ThreadFlow | None:
        """What is read of a thread, by its process and number (tid)."""
        for (process, _), thread in self._threads.items():
            if process == number and thread.flow.tid == tid:
                self._choose(thread)
                return thread.flow
        return None


def _pick(records: Array, kind: RecordKind, dtype: np.dtype[np.void]) -> Array:
    """The records of a kind."""
    kinds = records[:, :2].copy().view("<u2")[:, 0]
    found: Array = records[kinds == kind].reshape(-1).view(dtype)
    return found


class _StampClock:
    """Time stamps of events as times of day."""

    def __init__(self) -> None:
        self._clock = LiveClock()

    def note(self) -> None:
        """Look at the clocks again."""
        self._clock.note()

    def set_times(self, rows: Array, before_ns: int) -> int:
        """Make times of day of the time stamps of events, none before `before_ns`; the last one."""
        times = self.to_ns(rows["time"])
        # What is known of the rate gets better: what was told before stays.
        rows["time"] = np.where(times > 0, np.maximum(times, np.uint64(before_ns)), times)
        return int(rows["time"][-1]) or before_ns

    def to_ns(self, tsc: Array) -> Array:
        """Nanoseconds since 1970 (u64) of time stamps; of 0, which is none, 0."""
        ns = self._clock.to_ns(tsc)
        ns[tsc == 0] = 0
        return ns.view(np.uint64)
