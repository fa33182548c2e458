"""The path of one thread as it comes, and the events read from it.

Runs in the controller, in the thread that makes events. What comes is the target's, and may be anything: a path that
contradicts its code ends there, and that is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.analysis.order.changed_code import ChangedCode
from clew.binary.flow_walk import FlowStreams, FlowWalk
from clew.dataclass import replace
from clew.protocol._constants import PATH_START
from clew.protocol._generated import PATH_EVENT_RECORD, PathEventKind
from clew.protocol.codec import NOWHERE, FlowKind, Stop
from clew.protocol.codec_layouts import ACCESS_ROW, BLOCK, EVENT, Position
from clew.recording.raw.access_tail import read_accesses
from clew.recording.raw.path_tail import PathTail
from clew.sessions.events.byte_stream import ByteStream
from clew.sessions.events.event_sink import ENOUGH_ROUNDS
from clew.sessions.events.flow_rows import copy_rows, count_before, fill
from clew.sessions.events.live_code import LiveCode, ReadCode
from clew.sessions.events.path_states import PassedPath, PathStates
from clew.sessions.events.row_stream import RowStream
from clew.sessions.events.told_events import ToldEvents, is_unmade, without_unmade
from clew.store.path_checkpoints import carry_calls
from clew.store.path_frames import FrameKind

__all__ = ["ThreadFlow"]

Array = npt.NDArray[Any]

MOST_EVENTS: Final = 1 << 22
"""No path is so far behind its events."""

_AT: Final = ("surprise_bytes", "decisions", "symbol_bytes", "depth")
_GAPS: Final = (PathEventKind.LOST, PathEventKind.THINNED)
_ENTRIES: Final = (PathEventKind.RESUME, PathEventKind.CHECKPOINT)
"""Kinds of events at a place where a block begins."""
_KEPT: Final = (PathEventKind.CHECKPOINT,)
_KEPT_WITH_CALLS: Final = (PathEventKind.CHECKPOINT, PathEventKind.NOTE)
"""Kinds of events that change nothing, and are passed all the same."""
_LEADS: Final = (PathEventKind.RESUME, PathEventKind.ELSEWHERE)
"""Kinds of events whose value is where a block begins."""


class ThreadFlow:
    """Of thread `tid`. What its records say of the path comes as to a `PathKeeper`; `read` gives the events."""

    def __init__(self, tid: int, code: LiveCode, *, has_time: bool) -> None:
        self._has_time = has_time
        self._code = code
        self._walk = FlowWalk(tid)
        self._read: ReadCode | None = None
        self._blocks = np.zeros(0, BLOCK)
        self._streams = {FrameKind.SURPRISES: ByteStream(), FrameKind.SYMBOLS: ByteStream()}
        self._records = np.zeros(0, PATH_EVENT_RECORD)
        self._coming: list[Array] = []
        self._told = ToldEvents()
        self._states = PathStates()
        self._calls = np.zeros(0, np.uint64)
        self._calls_at: deque[tuple[Array, int]] = deque()
        """Of each checkpoint that is still to come to: the calls that are open there, and bytes of accesses before."""
        self._accesses = RowStream(ACCESS_ROW)
        self.n_unmatched = 0
        """Accesses to memory that are of nothing that it did."""
        self._known = (0, 0)
        self.is_over = False
        """Nothing more comes of it."""
        self._is_in_gap = False
        self.n_gaps = 0
        """How often some of the path was dropped, or left out."""
        self._is_late = False
        self._kinds = 0
        self._has_begun = False
        """Whether it was read before."""
        self._tells = False
        """Whether anything was told since somebody asked."""
        self._last: np.void | None = None
        """The last event that is behind the walk."""
        self._mark: tuple[int, int] | None = None
        """Nothing is told of what lies before."""
        self._asked_at: int | None = None
        self.is_damaged = False
        """It contradicts its code: nothing more is read of it."""

    # ------------------------------------------------------------------------------------------- what comes of the path

    def begin_late(self, passed: PassedPath) -> None:
        """Go on behind that, at the next checkpoint."""
        self._states, self._calls = passed.states, passed.calls
        self._is_late = True

    def add_bytes(self, kind: FrameKind, start: int, data: bytes | memoryview) -> None:
        if self.is_damaged:
            return
        self._streams[kind].add(start, data)
        if kind == FrameKind.SURPRISES:
            self._known = max(self._known, (start + len(data), 0))

    def add_accesses(self, start: int, data: bytes | memoryview) -> None:
        if not self.is_damaged:
            self._accesses.add(start, data)

    def add_accesses_left(self, accesses: bytes) -> None:
        """What is in its buffer, as `access_tail` has it."""
        if not self.is_damaged:
            self._accesses.add(*read_accesses(accesses), is_open=True)

    def add_events(self, records: Array) -> None:
        if not self.is_damaged:
            self._coming.append(records.copy())

    def add_signals(self, records: Array) -> None:
        """What the thread says of signals, as EVENT_RECORD: before what its path says of them is read."""
        self._told.add(records)

    def add_checkpoint(self, record: np.void, counters: bytes, calls: bytes, *, is_after_loss: int) -> None:
        self._calls = carry_calls(self._calls, record, calls)
        if not self.is_damaged:
            self._calls_at.append((self._calls, self._accesses.end))
        self.add_events(np.array([record], PATH_EVENT_RECORD))

    def add_tail(self, tail: PathTail, *, is_end: bool) -> None:
        """What is in the thread's buffers, that had not left the target. `is_end`: it ended, and nothing more comes."""
        self.is_over |= is_end
        if tail.is_lost:
            return
        self.add_bytes(FrameKind.SURPRISES, tail.surprises_left, tail.surprises)
        self.add_bytes(FrameKind.SYMBOLS, tail.symbols_left, tail.symbols)
        self._known = max(self._known, (tail.surprises_left + len(tail.surprises), tail.decisions))

    def add_open_tail(self, tail: PathTail, accesses: bytes) -> None:
        """What is in the buffers of a thread that goes on; what it did with memory as `access_tail` has it, if that is
        told."""
        if accesses:
            self.add_accesses_left(accesses)
        # The last decision is counted before it is made, and may turn out to be the surprise that ends them.
        self.add_tail(replace(tail, decisions=max(tail.decisions - 1, 0)), is_end=False)

    def end(self) -> None:
        """Nothing more comes of it."""
        self.is_over = True

    # -------------------------------------------------------------------------------------------------- what is read

    @property
    def tid(self) -> int:
        """The thread's number."""
        return self._walk.thread

    @tid.setter
    def tid(self, tid: int) -> None:
        self._walk.thread = tid

    @property
    def kinds(self) -> int:
        """What is told of it: bits by `FlowKind`."""
        return self._kinds

    @kinds.setter
    def kinds(self, kinds: int) -> None:
        if kinds and not self._kinds and self._has_begun:
            # What it did before is of no interest.
            self._take_coming()
            self._mark, self._tells = self._known, False
        self._kinds = kinds

    def open_gates(self, is_open: bool) -> None:
        """From now on it is told what it does, or not before it comes to a place from which on that is told."""
        self._walk.is_open = is_open

    def take_numbers(self, n: int) -> Array:
        """The numbers (u64) of its next `n` events, which are told by others."""
        first = self._walk.sequence
        self._walk.sequence = first + n
        return np.arange(first, first + n, dtype=np.uint64)

    def read(self, take_rows: Callable[[], Array]) -> Iterator[Array]:
        """Events as far as all is known, each time at the start of rows of dtype FLOW_EVENT that `take_rows` gives."""
        self._take_coming()
        self._has_begun = True
        if not self.kinds or self._is_late:
            self._skip()
            return
        while not self.is_damaged:
            if (self._is_in_gap and not self._leave_gap()) or not self._is_begun():
                return
            stop = yield from self._read_known(take_rows)
            if stop == Stop.DAMAGED and self._awaits_code():
                return
            if stop == Stop.CUT and self._mark is not None:
                self._mark = None
                continue
            self._asked_at = None
            gap = self._find_gap()
            if gap is None:
                self.is_damaged = stop == Stop.DAMAGED
                return
            self._enter_gap(gap)

    def _skip(self) -> None:
        """Go on at the last checkpoint when somebody wants to know what it does."""
        checkpoints = np.flatnonzero(self._records["event_kind"] == PathEventKind.CHECKPOINT)
        if len(checkpoints):
            self._pass_records(int(checkpoints[-1]))
            self._is_in_gap = True
            # What lies before is not asked for any more.
            for kind, name in ((FrameKind.SURPRISES, "surprise_bytes"), (FrameKind.SYMBOLS, "symbol_bytes")):
                self._streams[kind].view(int(self._records[0][name]), None)

    @property
    def waits_for_code(self) -> bool:
        """Whether it executed code of which nothing has come yet."""
        return self._asked_at is not None and not self.is_damaged

    def _awaits_code(self) -> bool:
        """Whether code that is not known may still come: another thread may have told of it."""
        if self._asked_at is None:
            self._asked_at = self._code.n_rounds
        return not self._code.is_complete and self._code.n_rounds < self._asked_at + ENOUGH_ROUNDS

    def _take_coming(self) -> None:
        if not self._coming:
            return
        for coming in self._coming:
            self._told.note(coming)
        records = np.concatenate([self._records, *self._coming])
        self._coming = []
        if self._is_late:
            checkpoints = np.flatnonzero(records["event_kind"] == PathEventKind.CHECKPOINT)
            self._is_late, self._is_in_gap = not len(checkpoints), len(checkpoints) > 0
            n_late = int(checkpoints[0]) if len(checkpoints) else len(records)
            self._states.add(records[:n_late])
            records = records[n_late:]
        self.is_damaged |= len(records) > MOST_EVENTS
        # That a thread ended may turn out wrong: a call that was to end it is refused.
        is_end = records["event_kind"] == PathEventKind.END
        is_last = np.append(np.isin(records["event_kind"][1:], _GAPS), True)
        self._records = without_unmade(records[~is_end | is_last])
        told = self._records[~np.isin(self._records["event_kind"], _GAPS)]
        if len(told):
            self._known = max(self._known, max(zip(*(told[name].tolist() for name in _AT[:2]), strict=True)))

    @property
    def _position(self) -> tuple[int, int]:
        """How far the walk has come: bytes of surprises, decisions behind the last one."""
        return self._walk.position.surprise_bytes, self._walk.position.decisions

    def _is_begun(self) -> bool:
        """Whether it is known where the path begins."""
        return bool(len(self._records)) or self._walk.block != NOWHERE

    def _find_gap(self) -> int | None:
        """The next event (an index) behind which something is missing, if it is known how it goes on there."""
        kinds = self._records["event_kind"]
        gaps = np.flatnonzero(np.isin(kinds, _GAPS))
        return int(gaps[0]) if len(gaps) and (len(kinds) > gaps[0] + 1 or self.is_over) else None

    def _enter_gap(self, gap: int) -> None:
        """Nothing is known from here up to the next checkpoint."""
        self._pass_records(gap + 1)
        # What it did before anybody asked is of no moment.
        self.n_gaps += self._tells
        self._is_in_gap = True

    def _leave_gap(self) -> bool:
        """Go on at the checkpoint behind a gap, if it is there."""
        if not len(self._records):
            return False
        head = self._records[0]
        if head["event_kind"] != PathEventKind.CHECKPOINT or not self._calls_at:
            self.is_damaged = True
            return False
        calls, n_access_bytes = self._calls_at[0]
        self._accesses.let_go(n_access_bytes)
        self._is_in_gap = False
        position = Position(*(int(head[name]) for name in _AT))
        self._code.want(np.array([head["pc"]], np.uint64))
        self._refresh(self._code.read())
        find = self._code.read().process.find
        self._walk.begin(int(find(np.array([head["pc"]], np.uint64))[0]), position, calls, find(calls))
        return True

    def _read_known(self, take_rows: Callable[[], Array]) -> Generator[Array, None, Stop]:
        """Events up to the next gap, or as far as all is known; and why there are no more."""
        records, known = self._records, self._known
        gaps = np.flatnonzero(np.isin(records["event_kind"], _GAPS))
        is_cut = len(gaps) > 0
        ends: tuple[int | None, int | None] = None, None
        self._accesses.limit = None
        if is_cut:
            gap, records = records[gaps[0]], records[: gaps[0]]
            n_checkpoints = int((records["event_kind"] == PathEventKind.CHECKPOINT).sum())
            # What comes behind the gap may be of the same code.
            if n_checkpoints < len(self._calls_at):
                self._accesses.limit = self._calls_at[n_checkpoints][1]
            known = int(gap["surprise_bytes"]), int(gap["decisions"])
            ends = known[0], int(gap["symbol_bytes"])
        if self._mark is not None and self._position >= self._mark:
            self._mark = None
        if self._mark is not None:
            known = min(known, self._mark)
            records = records[: count_before(records, self._mark)]
            is_cut = True
        self._walk.kinds = 0 if self._mark is not None else self._kinds
        # Whether the thread ended there is known once nothing follows.
        if len(records) and records["event_kind"][-1] == PathEventKind.END and not (is_cut or self.is_over):
            records = records[:-1]
        kinds = records["event_kind"]
        places = np.concatenate([records["pc"][np.isin(kinds, _ENTRIES)], records["value"][np.isin(kinds, _LEADS)]])
        self._code.want(places[places != np.uint64(PATH_START)].astype(np.uint64))
        code, walk = self._code.read(), self._walk
        self._refresh(code)
        self._take_back_call(records, code)
        leads = np.flatnonzero(np.isin(kinds, _LEADS))
        is_known = code.is_known(records["value"][leads].astype(np.uint64))
        if not is_known.all() and self._awaits_code():
            return Stop.DAMAGED
        keeps = _KEPT_WITH_CALLS if self._walk.kinds >> FlowKind.SYSCALL & 1 else _KEPT
        events, numbers = code.process.convert_events(records, self._blocks, keeps=keeps)
        read = walk.position.surprise_bytes
        surprises = self._streams[FrameKind.SURPRISES].view(read, ends[0])
        streams = FlowStreams(
            surprises=surprises,
            symbols=self._streams[FrameKind.SYMBOLS].view(walk.position.symbol_bytes, ends[1]),
            events=np.ascontiguousarray(events, EVENT),
            times=records["tsc"][numbers if self._has_time else []].astype(np.uint64),
            told=self._told.of(records, numbers, self._walk.kinds, is_end=self.is_over and not is_cut),
            # Of what is missing it is not known how much was done behind the last surprise that is there.
            decisions=known[1] if read + len(surprises) == known[0] else 0,
            # What a thread that was killed did leads as far as nothing says that it led elsewhere, as in traces.
            known=(1 << 63, 0) if self.is_over and not is_cut else known,
            accesses=self._accesses if self._has_accesses(is_cut=is_cut) else None,
        )
        if not walk.open(self._blocks, code.flow, streams):
            return Stop.DAMAGED
        try:
            while True:
                rows = take_rows()
                n, stop = fill(walk, rows)
                if n:
                    # That it began is told of a thread that goes on natively, too.
                    self._tells |= n > 1 or rows["kind"][0] != FlowKind.THREAD
                    yield rows[:n] if n * 2 > len(rows) else copy_rows(rows[:n])
                if stop != Stop.ASKED:
                    return stop
        finally:
            walk.close()
            self._pass(numbers)

    def _take_back_call(self, records: Array, code: ReadCode) -> None:
        """A call that was told last was not made, for a signal came first: the thread is in front of it again."""
        if self._last is None or not len(records) or not is_unmade(self._last, records[0]):
            return
        walk, head = self._walk, np.array([records[0]["pc"]], np.uint64)
        behind = int(code.process.find(np.array([self._last["pc"]], np.uint64))[0])
        if walk.block == behind:
            walk.renumber(int(code.process.find(head)[0]), code.process.find(walk.open_calls))

    def _has_accesses(self, *, is_cut: bool) -> bool:
        """Whether what it did with memory is told, or may be; `is_cut`: nothing more comes of what is read."""
        return self._accesses.is_any or (not is_cut and bool(self._kinds >> FlowKind.MEMORY & 1))

    def _pass(self, numbers: Array) -> None:
        """Let go of the events that are behind the walk."""
        n = self._walk.n_events
        if n == 0:
            return
        self._pass_records(int(numbers[n]) if n < len(numbers) else int(numbers[n - 1]) + 1)

    def _pass_records(self, end: int) -> None:
        """Events up to number `end` are behind it."""
        passed, self._records = self._records[:end], self._records[end:]
        for _ in range(int((passed["event_kind"] == PathEventKind.CHECKPOINT).sum())):
            if self._calls_at:
                _, n_bytes = self._calls_at.popleft()
                if not self._is_in_gap:
                    self.n_unmatched += max(n_bytes - self._accesses.start, 0) // ACCESS_ROW.itemsize
                self._accesses.let_go(n_bytes)
        if len(passed):
            self._last = passed[-1]
        self._states.add(passed)
        self._told.forget(passed)

    def _refresh(self, code: ReadCode) -> None:
        """Go on with code of which more is known."""
        if code is self._read:
            return
        before, self._read = self._read, code
        states = self._states.rows
        self._blocks = ChangedCode(code.process, states).at(len(states))
        walk = self._walk
        if before is not None:
            pc = before.blocks["pc"][walk.block] if walk.block < len(before.blocks) else None
            block = NOWHERE if pc is None else int(code.process.find(np.array([pc], np.uint64))[0])
            walk.renumber(block, code.process.find(walk.open_calls))
