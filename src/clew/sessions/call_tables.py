"""The tables `calls`, `entities` and `references` of a trace, out of calls that were captured while it was recorded.

Runs in the controller, when the trace is there. What is kept until then are the captures as they came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from clew.api.descriptions import Descriptions
from clew.api.entities.scene import Touch
from clew.api.injection import injected_words
from clew.api.pieces import register_of
from clew.recording.assembly.tables.tables import clean_text
from clew.sessions.call_places import find_places
from clew.sessions.call_world import CallWorld, Process, Processes
from clew.sessions.told_calls import iter_arguments, result_of
from clew.store.appending import append_tables
from clew.store.columns import to_numpy
from clew.store.schema import SCHEMAS

if TYPE_CHECKING:
    from clew.sessions.api_calls import ApiCall
    from clew.trace import Trace

__all__ = ["CallTables", "Filling"]

_ROWS_AT_ONCE: Final = 1 << 15
_RINGS: Final = "io_uring"
"""What operations of io_uring have for a library."""

_TEXT_BYTES: Final = 64
"""So much of strings and buffers is in the table."""


class CallTables:
    """Makes tables out of batches of calls, each in the order in which they returned."""

    def __init__(self, descriptions: Descriptions, pid: int) -> None:
        """`pid`: the first process, which is there and has made no call yet that is told."""
        self._descriptions = descriptions
        self._calls = CallWorld(descriptions, Processes(), pid)

    def fill(self, trace: Trace) -> Filling:
        """Tables to be filled, for a trace that lacks them."""
        names = ["process_id", "pid", "parent_pid", "executable", "command", "start_ns", "end_ns"]
        rows = trace.read("processes", names).to_pylist()
        processes = Processes(Process(*(row[name] for name in names)) for row in rows)
        return Filling(self._descriptions, self._calls.start_again(processes))

    def write(
        self,
        trace: Trace,
        batches: Callable[[], Iterable[Sequence[ApiCall]]],
        is_told: Callable[[ApiCall], bool] = lambda call: True,
    ) -> int:
        """Add the tables to a trace, out of `batches`, which are asked for twice; how many calls there are. Others than
        those that are told only say what these are about. Raises OSError."""
        filling = self.fill(trace)
        for batch in batches():
            filling.prepare(batch)
        for batch in batches():
            filling.add(batch, is_told)
        tables = filling.finish(trace)
        append_tables(trace.directory, tables)
        return int(tables["calls"].num_rows)


class Filling:
    """The tables while they are filled, call by call; `world`: what was held when the last one returned."""

    def __init__(self, descriptions: Descriptions, calls: CallWorld) -> None:
        self._descriptions, self._world = descriptions, calls
        self.world = calls.world
        self._calls: list[pa.Table] = []
        self._references: list[pa.Table] = []
        self._call_rows: list[dict[str, Any]] = []
        self._reference_rows: list[dict[str, Any]] = []
        self._n_calls = 0

    def prepare(self, calls: Sequence[ApiCall]) -> None:
        """Look at calls before any of them is added: a child may begin before who made it is told of."""
        self._world.prepare(calls)

    def add(self, calls: Sequence[ApiCall], is_told: Callable[[ApiCall], bool] = lambda call: True) -> None:
        """Calls that returned one behind the other, of which some are told."""
        for call in calls:
            process, touches = self._world.see(call)
            if process is None or not is_told(call):
                continue
            self._call_rows.append(self._row(call, process))
            self._reference_rows += [self._reference(process, touch) for touch in touches]
            self._n_calls += 1
            if len(self._call_rows) >= _ROWS_AT_ONCE:
                self._pack()

    def _row(self, call: ApiCall, process: Process) -> dict[str, Any]:
        is_system_call = bool(call.function.numbers)
        seen = self._descriptions.with_values(call.function, [register_of(value) for value in call.values])
        return {
            "call_id": self._n_calls,
            "process_id": process.process_id,
            "pid": call.pid,
            "tid": call.tid,
            "parent_call_id": None,
            "time_ns": call.time_ns,
            "duration_ns": call.duration_ns,
            "kind": "system_call" if is_system_call else "library",
            "name": call.function.name,
            "number": next(iter(call.function.numbers.values()), None),
            "library": _RINGS if call.function.opcode is not None else call.library,
            "block_id": None,
            "position": None,
            "arguments": json.dumps(list(iter_arguments(call, seen, self._descriptions, _TEXT_BYTES))),
            **result_of(call, seen, self._descriptions),
            "injected": ",".join(injected_words(call.injected)) or None,
            "filter": call.function.filter,
            "pc": call.pc,
            "end_ns": call.end_ns,
            "frame": call.frame,
        }

    def _reference(self, process: Process, touch: Touch) -> dict[str, Any]:
        return {
            "process_id": process.process_id,
            "pid": process.pid,
            "call_id": self._n_calls,
            "entity_id": touch.entity_id,
            "role": touch.role,
            "argument": touch.argument,
            "bytes": touch.n_bytes,
        }

    def _pack(self) -> None:
        schema = SCHEMAS["calls"]
        for name, kind in _BESIDE.items():
            schema = schema.append(pa.field(name, kind))
        self._calls.append(pa.Table.from_pylist([*map(_as_told, self._call_rows)], schema))
        self._references.append(pa.Table.from_pylist(self._reference_rows, SCHEMAS["references"]))
        self._call_rows, self._reference_rows = [], []

    def finish(self, trace: Trace) -> dict[str, pa.Table]:
        """The three tables, by their names."""
        self._world.start(1 << 62)
        self._pack()
        calls = pa.concat_tables(self._calls)
        calls = _with_places(_with_parents(calls.sort_by(_ORDER)), trace).drop_columns(list(_BESIDE))
        calls = _within_lives(calls, trace)
        references = pa.concat_tables(self._references).sort_by([("process_id", "ascending"), ("call_id", "ascending")])
        return {"calls": calls, "references": references, "entities": self._entities()}

    def _entities(self) -> pa.Table:
        rows = [
            {
                "entity_id": one.entity_id,
                "process_id": one.process_id,
                "pid": one.pid if one.process_id is not None else None,
                "tid": one.tid,
                "parent_entity_id": one.parent,
                "kind": one.kind,
                "name": self._descriptions.redacted(one.name),
                "details": json.dumps(self._redacted(one.details)),
                "first_ns": one.first_ns,
                "last_ns": max(one.last_ns, one.first_ns),
            }
            for one in self.world.things.entities
        ]
        return pa.Table.from_pylist([*map(_as_told, rows)], SCHEMAS["entities"])

    def _redacted(self, value: Any) -> Any:
        """What JSON has, without what is not to be told in its texts."""
        match value:
            case str():
                return self._descriptions.redacted(value)
            case dict():
                return {key: self._redacted(one) for key, one in value.items()}
            case list() | tuple():
                return [self._redacted(one) for one in value]
        return value


_ORDER: Final = [
    ("process_id", "ascending"),
    ("tid", "ascending"),
    ("time_ns", "ascending"),
    # Of two that begin at the same tick of the clock the outer one begins where the stack was higher.
    ("frame", "descending"),
    ("call_id", "ascending"),
]
_BESIDE: Final = {"pc": pa.uint64(), "end_ns": pa.int64(), "frame": pa.uint64()}
"""What is known of calls besides, while their tables are made."""


def _within_lives(calls: pa.Table, trace: Trace) -> pa.Table:
    """Calls with times in which their threads are there, by the trace.

    A call's time is of the thread's own clock, a thread's of when it was noticed. What lies between may be, of one that
    ended at once or was killed, all that it did.
    """
    threads = trace.read("threads", ["process_id", "tid", "start_ns", "end_ns"])
    process, tid, start, end = (to_numpy(threads[name]).astype(np.int64) for name in threads.column_names)
    keys, row, n_rows = np.unique(process << 32 | tid, return_index=True, return_counts=True)
    own = to_numpy(calls["process_id"]).astype(np.int64) << 32 | to_numpy(calls["tid"]).astype(np.int64)
    at = np.searchsorted(keys, own)
    # Several threads of one number are told apart by their times alone.
    known = (np.append(keys, -1)[at] == own) & (np.append(n_rows, 0)[at] == 1)
    thread = np.append(row, 0)[at][known]
    time_ns, took = to_numpy(calls["time_ns"]).astype(np.int64), to_numpy(calls["duration_ns"], 0).astype(np.int64)
    time_ns[known] = np.clip(time_ns[known], start[thread], end[thread])
    took[known] = np.minimum(took[known], end[thread] - time_ns[known])
    took_or_null = pa.array(took, pa.int64(), mask=to_numpy(calls["duration_ns"].is_null()))
    for name, column in (("time_ns", pa.array(time_ns, pa.int64())), ("duration_ns", took_or_null)):
        index = calls.column_names.index(name)
        calls = calls.set_column(index, calls.schema.field(index), column)
    return calls


def _with_places(calls: pa.Table, trace: Trace) -> pa.Table:
    """Calls with the blocks that made them, and where those were in the order of execution."""
    for name, values in zip(("block_id", "position"), find_places(trace, calls), strict=True):
        column = pa.array(values, pa.int64(), mask=values < 0)
        calls = calls.set_column(calls.column_names.index(name), name, column)
    return calls


def _with_parents(calls: pa.Table) -> pa.Table:
    """Calls, thread by thread and by time, with those that they were made within."""
    columns = [calls[name].to_pylist() for name in ("process_id", "tid", "time_ns", "end_ns", "call_id")]
    columns += [calls["frame"].fill_null(0).to_pylist(), calls["duration_ns"].is_valid().to_pylist()]
    is_apart = [library == _RINGS for library in calls["library"].to_pylist()]
    parents = np.full(len(calls), -1, np.int64)
    # Where an outer one ends, its number and frame, and whether it has returned.
    stack: list[tuple[int, int, int, bool]] = []
    whose = None
    for row, (process_id, thread, begin, end, number, frame, returns) in enumerate(zip(*columns, strict=True)):
        if (process_id, thread) != whose:
            whose, stack = (process_id, thread), []
        # What a ring was given goes on by itself, behind the call that gave it.
        inner_end = begin if is_apart[row] else end
        while stack and _is_over(stack[-1], begin, inner_end, frame):
            stack.pop()
        if stack:
            parents[row] = stack[-1][1]
        if frame:
            stack.append((end, number, frame, returns))
    column = pa.array(parents, pa.int64(), mask=parents < 0)
    return calls.set_column(calls.column_names.index("parent_call_id"), "parent_call_id", column)


def _is_over(outer: tuple[int, int, int, bool], begin: int, end: int, frame: int) -> bool:
    """Whether a call from `begin` to `end` is not within another one; one that was left is known to be when a call
    begins where its own frame was."""
    outer_end, _, outer_frame, has_returned = outer
    if outer_end <= begin or (has_returned and outer_end < end):
        return True
    return not has_returned and 0 < outer_frame <= frame


def _as_told(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose names of files need not be UTF-8, as tables have it."""
    return {name: clean_text(value) if isinstance(value, str) else value for name, value in row.items()}
