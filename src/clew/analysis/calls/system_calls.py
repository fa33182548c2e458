"""The system calls of a process that every recording has, as calls: what was made, by which block, and when.

Runs in the controller. In mode full a path notes each with its number and time, in mode region a tag does; in other
modes there are counts of the blocks that end with one, and the number only where the block's own code loads it. A call
that was given up for a signal just before it was made is noted all the same, and again when it is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clew.analysis.calls.call_rows import MOST_CALLS, CallRows, join_parts, sort_calls
from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.order.path_code import ProcessCode
from clew.analysis.order.thread_path import ThreadPath
from clew.analysis.replay.thread_times import convert_tsc
from clew.analysis.tables.arrays import Array, find_rows, to_numpy, to_words
from clew.protocol._generated import PathEventKind
from clew.protocol.words import TAG_WORDS
from clew.store.excerpt import excerpt_of_process

__all__ = ["CallPlace", "count_system_calls", "read_path_calls", "read_tag_calls", "sum_system_calls"]

_HIGHEST: Final = 1 << 31
_EXECUTED, _SYSTEM_CALL = TAG_WORDS.index("executed"), TAG_WORDS.index("syscall")


@dataclass(frozen=True)
class CallPlace:
    """A block that makes system calls, which of them (None where its code does not say), and how many it made; None
    where nothing was counted."""

    block: int
    name: str | None
    calls: int | None


class _Gathered:
    """Calls of threads, one thread after the other, up to MOST_CALLS."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Array]] = {name: [] for name in ("ns", "number", "thread", "block", "source")}
        self.n = self.n_omitted = 0

    def add(self, thread: int, ns: Array, number: Array, block: Array, source: Array) -> None:
        taken = min(len(ns), MOST_CALLS - self.n)
        self.n += taken
        self.n_omitted += len(ns) - taken
        # A damaged trace may say anything.
        numbers = np.where((number >= 0) & (number < _HIGHEST), number, -1).astype(np.int32)
        columns: tuple[Array, ...] = (
            ns,
            numbers,
            np.full(len(ns), thread, np.uint32),
            block.astype(np.int32),
            source.astype(np.int64),
        )
        for name, column in zip(self.columns, columns, strict=True):
            self.columns[name].append(column[:taken])

    def finish(self, graph: ProcessGraph, tids: list[int]) -> CallRows:
        ns, thread, block, source = (
            join_parts(self.columns[name], kind)
            for name, kind in (("ns", np.int64), ("thread", np.uint32), ("block", np.int32), ("source", np.int64))
        )
        numbers, name = np.unique(join_parts(self.columns["number"], np.int32), return_inverse=True)
        nothing = np.broadcast_to(np.zeros(1, bool), len(ns))
        rows = CallRows(
            names=[graph.architecture.name_system_call(number) for number in numbers.tolist()],
            tids=tids,
            time_ns=ns,
            name=name.astype(np.min_scalar_type(max(len(numbers), 1))),
            thread=thread.astype(np.min_scalar_type(max(len(tids), 1))),
            block=block,
            kind=nothing.astype(np.uint8),
            failed=nothing,
            duration_ns=None,
            source=source,
            n_omitted=self.n_omitted,
            processes=[graph.process_id],
        )
        return sort_calls(rows)


def read_path_calls(graph: ProcessGraph, code: ProcessCode, paths: Iterable[dict[str, Any]]) -> CallRows:
    """What the paths of a process (rows of the table) note. `source` counts the calls of each thread, from 0.

    Raises TraceDamagedError.
    """
    tids = graph.threads.tolist()
    callers = _CallersByEnd(graph)
    gathered = _Gathered()
    for row in paths:
        if row["tid"] not in tids:
            continue
        path = ThreadPath(graph.trace, row, code)
        stretches, first = path.stretches, 0
        try:
            for number in range(len(stretches)):
                records = stretches.events(number)
                notes = records[records["event_kind"] == PathEventKind.NOTE]
                ns = convert_tsc(stretches.file.facts, notes["tsc"])
                block = callers.find(notes["pc"], ns)
                source = first + np.arange(len(notes))
                first += len(notes)
                gathered.add(tids.index(row["tid"]), ns, notes["value"].astype(np.int64), block, source)
        finally:
            stretches.file.close()
    return gathered.finish(graph, tids)


class _CallersByEnd:
    """Blocks that end with a system call, by the address behind them."""

    def __init__(self, graph: ProcessGraph) -> None:
        callers = _find_callers(graph)
        ends = graph.app_pc[callers] + graph.size_bytes[callers].astype(np.uint64)
        # Of several versions of the code the last is the one that ran, of those that had been come to.
        order = np.lexsort((graph.first_ns[callers], ends))
        self._block, self._end = callers[order], ends[order]
        self._first_ns = graph.first_ns[self._block]

    def find(self, pc: Array, ns: Array) -> Array:
        """Blocks (i64) that end at `pc` and had been come to at `ns`; -1 where there is none."""
        if not len(self._end):
            return np.full(len(pc), -1)
        first = np.searchsorted(self._end, pc)
        last = np.searchsorted(self._end, pc, "right") - 1
        at = last.copy()
        for _ in range(int((last - first).max(initial=0))):
            at = np.where((at > first) & (self._first_ns[np.maximum(at, 0)] > ns), at - 1, at)
        return np.where(last >= first, self._block[np.maximum(at, 0)], -1)


def read_tag_calls(graph: ProcessGraph) -> CallRows:
    """What the tags of a process tell. `source` counts the rows of each thread, from 0. Raises TraceDamagedError.

    The block is known of calls whose block has a tag of its own just in front of theirs: not of busy threads.
    """
    tids = graph.threads.tolist()
    caller = _follow_to_callers(graph)
    gathered = _Gathered()
    columns = ["tid", "kind", "block_id", "value", "time_ns"]
    n_rows = dict.fromkeys(tids, 0)
    before: tuple[int, int, int] | None = None
    for piece in excerpt_of_process(graph.trace, graph.process_id).iter_pieces("tags", columns):
        kind = to_words(piece["kind"], TAG_WORDS)
        tid, block_id, value, ns = (to_numpy(piece[name]) for name in columns if name != "kind")
        calls = np.flatnonzero(kind == _SYSTEM_CALL)
        # With the last row of the piece before in front.
        last = before or (-1, -1, -1)
        tid_before, kind_before, block_before = (
            np.append(one, column)[:-1] for one, column in zip(last, (tid, kind, block_id), strict=True)
        )
        is_told = (tid_before == tid) & (kind_before == _EXECUTED)
        row = find_rows(graph.block_id, block_before[calls])
        block = np.where(is_told[calls] & (row >= 0), caller[row], -1)
        for thread in np.unique(tid).tolist():
            if thread in n_rows:
                own, at = tid[calls] == thread, np.flatnonzero(tid == thread)
                mine = calls[own]
                source = n_rows[thread] + np.searchsorted(at, mine)
                n_rows[thread] += len(at)
                gathered.add(tids.index(thread), ns[mine], value[mine], block[own], source)
        if len(tid):
            before = int(tid[-1]), int(kind[-1]), int(block_id[-1])
    return gathered.finish(graph, tids)


def _follow_to_callers(graph: ProcessGraph) -> Array:
    """By block (and behind the last for none) the one that makes the system call to which what begins there leads
    without a branch; -1 where it leads to none."""
    found = np.full(graph.n_blocks + 1, -1)
    callers = _find_callers(graph)
    found[callers] = callers
    straight = np.flatnonzero(graph.arrays.is_kind("fall_through") & (graph.source >= 0) & (graph.target >= 0))
    source, target = graph.source[straight], graph.target[straight]
    while True:
        is_new = (found[source] < 0) & (found[target] >= 0)
        if not is_new.any():
            return found
        found[source[is_new]] = found[target[is_new]]


def _find_callers(graph: ProcessGraph) -> Array:
    return np.flatnonzero(graph.arrays.ends_with("syscall")[graph.block_row])


def sum_system_calls(graph: ProcessGraph) -> int:
    """How many system calls the blocks of a process made, those included whose time nothing tells."""
    return int(graph.count().blocks[_find_callers(graph)].sum())


def count_system_calls(graph: ProcessGraph, threads: list[int] | None = None) -> list[CallPlace]:
    """Blocks that made system calls, by all threads or by some, those that made the most first."""
    callers = _find_callers(graph)
    executions = graph.count(threads).blocks[callers]
    is_counted = graph.trace.mode != "coverage"
    code = graph.arrays.column("blocks", "bytes")
    architecture = graph.architecture
    found = []
    for block, n in zip(callers.tolist(), executions.tolist(), strict=True):
        if n > 0:
            number = architecture.find_call_number(code[int(graph.block_row[block])].as_py())
            name = None if number is None else architecture.name_system_call(number)
            found.append(CallPlace(block, name, n if is_counted else None))
    return sorted(found, key=lambda place: (-(place.calls or 0), place.block))
