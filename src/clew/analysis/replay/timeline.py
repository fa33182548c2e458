"""What the threads of a process did over time, in bins: how much, what code was new, what happened, what has no order.

Runs in the controller. How much is told in executions of blocks (mode full) or tags (mode region); in the modes
without order all of a thread's life is a gap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.replay.thread_times import GAP, TICK, ThreadTimes, make_times
from clew.analysis.tables.arrays import Array, to_numpy
from clew.binary.architectures.architecture import Architecture
from clew.errors import UsageError
from clew.protocol._generated import GapReason, TickKind

__all__ = ["MAX_CELLS", "BinnedThread", "ProcessTimeline", "TimelineThread", "find_edges", "name_tick"]

MAX_BINS: Final = 1 << 14
MAX_CELLS: Final = 1 << 22
"""Bins of all threads that are told at once, some tens of megabytes."""
_EVENTS: Final = {"signal": TickKind.SIGNAL, "fault": TickKind.FAULT}
_SIGNALS: Final = (
    *("", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1"),
    *("SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP"),
    *("SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR"),
    "SIGSYS",
)


@dataclass(frozen=True)
class TimelineThread:
    """A thread, its life in nanoseconds since 1970, and whether its order was recorded, at least in parts."""

    tid: int
    name: str
    start_ns: int
    end_ns: int
    is_ordered: bool


@dataclass(frozen=True)
class BinnedThread:
    """A thread between two times: by bin `density` (f64: executions of blocks, or tags, whose order is known) and
    `new_code` (i64: blocks that nobody else executed, first executed there); `gaps`, those
    closer together than a bin as one, with what they cover (`gap_ns`); `ticks`, one a bin and kind with how many there
    are (`tick_counts`); `mark_ns` and `mark`: positions by times."""

    thread: TimelineThread
    length: int
    density: Array
    new_code: Array
    gaps: Array
    gap_ns: Array
    ticks: Array
    tick_counts: Array
    mark_ns: Array
    mark: Array


class ProcessTimeline:
    """The times of the threads of one process. `read_times` gives what is told of a thread's order, None for
    nothing."""

    def __init__(self, graph: ProcessGraph, read_times: Callable[[TimelineThread], ThreadTimes | None]) -> None:
        self._graph = graph
        self._read_times = read_times
        self._times: dict[int, ThreadTimes] = {}

    @cached_property
    def threads(self) -> list[TimelineThread]:
        """All threads, in the order in which they began."""
        trace, process_id = self._graph.trace, self._graph.process_id
        table = trace.read("threads", ["process_id", "tid", "name", "start_ns", "end_ns"])
        ordered = {
            "full": {row["tid"] for row in trace.paths.to_pylist() if row["process_id"] == process_id},
            "region": {row["tid"] for row in table.to_pylist()},
        }.get(trace.mode, set())
        found = [
            TimelineThread(row["tid"], row["name"], row["start_ns"], row["end_ns"], row["tid"] in ordered)
            for row in table.to_pylist()
            if row["process_id"] == process_id
        ]
        return sorted(found, key=lambda thread: (thread.start_ns, thread.tid))

    def times(self, thread: TimelineThread) -> ThreadTimes:
        """What is told of a thread. Raises TraceDamagedError."""
        if thread.tid not in self._times:
            self._times[thread.tid] = self._find_times(thread)
        return self._times[thread.tid]

    def find(self, tid: int) -> TimelineThread:
        """The thread with an id. Raises UsageError if there is none."""
        found = next((thread for thread in self.threads if thread.tid == tid), None)
        if found is None:
            raise UsageError(f"no thread {tid} in process {self._graph.process_id}")
        return found

    def bin(self, start_ns: int, end_ns: int, n_bins: int, tids: Sequence[int] | None) -> list[BinnedThread]:
        """Threads, all or some, from one time up to another. Raises UsageError for a span that is none."""
        if not 0 < n_bins <= MAX_BINS or start_ns >= end_ns:
            raise UsageError(f"a timeline has 1 to {MAX_BINS} bins, and ends behind its start")
        chosen = self._choose(tids)
        edges = find_edges(start_ns, end_ns, n_bins)
        most_marks = max((1 << 16) // max(len(chosen), 1), 64)
        return [self._bin_thread(thread, edges, most_marks) for thread in chosen]

    def new_code(self, edges: Array, tids: Sequence[int] | None = None) -> Array:
        """By bin how many blocks (i64) were first executed there, by whomever: of all blocks, or of those that some
        threads executed as well."""
        is_wanted = slice(None) if tids is None else self._graph.count(tids).blocks[self._ran] > 0
        return _count_in_bins(self._first_ns[is_wanted], edges)

    def events(
        self, start_ns: int, end_ns: int, limit: int, tids: Sequence[int] | None = None
    ) -> tuple[list[dict[str, Any]], int]:
        """Signals, faults and system calls of threads, all or some, between two times, at most so many; and how many
        more."""
        rows, chosen, architecture = [], self._choose(tids), self._graph.architecture
        end_ns = max(start_ns, end_ns)
        for thread in chosen:
            ticks = self.times(thread).ticks
            low, high = np.searchsorted(ticks["ns"], [start_ns, end_ns])
            rows += [(int(tick["ns"]), thread.tid, tick) for tick in ticks[low : min(high, low + limit)]]
        total = sum(
            int(np.diff(np.searchsorted(self.times(thread).ticks["ns"], [start_ns, end_ns]))[0]) for thread in chosen
        )
        rows.sort(key=lambda row: row[:2])
        found = [
            {
                "time": ns,
                "tid": tid,
                "kind": TickKind(tick["kind"]).name.lower(),
                "name": name_tick(TickKind(tick["kind"]), int(tick["value"]), architecture),
                "number": int(tick["value"]),
            }
            for ns, tid, tick in rows[:limit]
        ]
        return found, total - len(found)

    def _choose(self, tids: Sequence[int] | None) -> list[TimelineThread]:
        return self.threads if tids is None else [self.find(tid) for tid in dict.fromkeys(tids)]

    @cached_property
    def _ran(self) -> Array:
        return np.flatnonzero(self._graph.is_recorded & (self._graph.n_instructions > 0))

    @cached_property
    def _first_ns(self) -> Array:
        return self._graph.first_ns[self._ran]

    @cached_property
    def _sole(self) -> Array:
        """By block the number of the one thread that executed it; -1 where it was none, or more than one."""
        graph = self._graph
        if len(graph.threads) == 1:
            return np.zeros(graph.n_blocks, np.int64)
        sole, seen = np.full(graph.n_blocks, -1), np.zeros(graph.n_blocks, np.int64)
        if graph.trace.mode != "coverage":
            for index, tid in enumerate(graph.threads.tolist()):
                ran = graph.count([tid]).blocks > 0
                seen += ran
                sole[ran] = index
        sole[seen != 1] = -1
        return sole

    def _bin_thread(self, thread: TimelineThread, edges: Array, most_marks: int) -> BinnedThread:
        times = self.times(thread)
        start_ns, end_ns = int(edges[0]), int(edges[-1])
        owner = int(np.flatnonzero(self._graph.threads == thread.tid)[0])
        ticks, counts = _thin(times.ticks, edges)
        inside = slice(
            max(int(np.searchsorted(times.mark_ns, start_ns, "right")) - 1, 0),
            int(np.searchsorted(times.mark_ns, end_ns)) + 1,
        )
        marks = np.stack([times.mark_ns[inside], times.mark[inside]])
        if marks.shape[1] > most_marks:
            marks = marks[:, np.unique(np.linspace(0, marks.shape[1] - 1, most_marks).astype(np.int64))]
        return BinnedThread(
            thread,
            times.length,
            times.known_between(edges),
            _count_in_bins(self._first_ns[self._sole[self._ran] == owner], edges),
            *_merge(times.gaps, edges),
            ticks,
            counts,
            *marks,
        )

    def _find_times(self, thread: TimelineThread) -> ThreadTimes:
        told = self._read_times(thread) if thread.is_ordered else None
        if told is None:
            # Where no code was recorded there is nothing that could have an order.
            gap = np.zeros(min(self._graph.n_blocks, 1), GAP)
            gap["start_ns"], gap["end_ns"], gap["reason"] = thread.start_ns, thread.end_ns, GapReason.MODE
            told = make_times(0, thread.start_ns, thread.end_ns, [], gap, np.zeros(0, TICK))
        if (told.ticks["kind"] != TickKind.SYSTEM_CALL).any():
            return told
        ticks = np.concatenate([told.ticks, self._signals(thread.tid)])
        return ThreadTimes(
            told.length, told.mark_ns, told.mark, told.gaps, ticks[np.argsort(ticks["ns"], kind="stable")]
        )

    def _signals(self, tid: int) -> Array:
        """Signals and faults of a thread that the table of events has."""
        rows = self._events.get(tid, [])
        ticks = np.zeros(len(rows), TICK)
        for number, (ns, kind, value) in enumerate(rows):
            ticks[number] = (ns, kind, value, -1)
        return ticks

    @cached_property
    def _events(self) -> dict[int, list[tuple[int, int, int]]]:
        found: dict[int, list[tuple[int, int, int]]] = {}
        table = self._graph.trace.read("events", ["process_id", "tid", "kind", "time_ns", "details"])
        own = table.filter(to_numpy(table["process_id"]) == self._graph.process_id)
        for row in own.to_pylist():
            if row["kind"] in _EVENTS:
                told = (row["time_ns"], _EVENTS[row["kind"]], _signal_of(row["details"]))
                found.setdefault(row["tid"], []).append(told)
        return found


def find_edges(start_ns: int, end_ns: int, n_bins: int) -> Array:
    """Where bins between two times begin (i64), and where the last one ends."""
    numbers = np.arange(n_bins + 1)
    # Not the whole span times the number of a bin: that need not fit.
    width, left = divmod(end_ns - start_ns, n_bins)
    edges: Array = start_ns + width * numbers + left * numbers // n_bins
    return edges


def name_tick(kind: TickKind, value: int, architecture: Architecture) -> str:
    """`openat`, `SIGSEGV`."""
    if kind == TickKind.SYSTEM_CALL:
        return architecture.name_system_call(value)
    return _SIGNALS[value] if 0 < value < len(_SIGNALS) else f"signal {value}"


def _signal_of(details: str) -> int:
    try:
        told = json.loads(details)
    except ValueError:
        return 0
    number = told.get("signal") if isinstance(told, dict) else None
    return number if isinstance(number, int) and 0 <= number <= 64 else 0


def _count_in_bins(times_ns: Array, edges: Array) -> Array:
    found: Array = np.histogram(times_ns, edges)[0].astype(np.int64)
    return found


def _thin(ticks: Array, edges: Array) -> tuple[Array, Array]:
    """Of each kind the first in each bin, and how many (i64) there are."""
    at = np.searchsorted(edges, ticks["ns"], "right") - 1
    at[ticks["ns"] == edges[-1]] = len(edges) - 2
    inside = np.flatnonzero((at >= 0) & (at < len(edges) - 1))
    key = at[inside] * len(TickKind) + ticks["kind"][inside]
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return ticks[inside[first]], counts


def _merge(gaps: Array, edges: Array) -> tuple[Array, Array]:
    """Gaps between the first and the last edge, what is closer together than a bin as one; and how many ns (i64) each
    covers."""
    inside = gaps[(gaps["end_ns"] >= edges[0]) & (gaps["start_ns"] <= edges[-1])]
    covered = np.minimum(inside["end_ns"], edges[-1]) - np.maximum(inside["start_ns"], edges[0])
    if not len(inside):
        return inside, covered
    width = int(edges[1] - edges[0])
    is_new = np.ones(len(inside), bool)
    reaches = np.maximum.accumulate(inside["end_ns"])
    is_new[1:] = (inside["start_ns"][1:] - reaches[:-1] >= width) | (inside["reason"][1:] != inside["reason"][:-1])
    starts = np.flatnonzero(is_new)
    merged = inside[starts].copy()
    lasts = np.append(starts[1:], len(inside)) - 1
    merged["end_ns"], merged["end"] = reaches[lasts], inside["end"][lasts]
    merged["executions"] = np.add.reduceat(inside["executions"], starts)
    return merged, np.add.reduceat(covered, starts)
