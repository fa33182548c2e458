"""The tables `calls`, `entities` and `references` of a trace, out of calls that were captured while it was recorded.

Runs in the controller, when the trace is there. What is kept until then are the captures as they came.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from clew.api.description import RESULT
from clew.api.descriptions import Descriptions
from clew.api.entities.scene import Scene, Told, Touch
from clew.api.entities.world import World
from clew.api.text import Pointed, Value, argument_text, result_text
from clew.sessions.call_places import find_places
from clew.store.appending import append_tables
from clew.store.schema import SCHEMAS

if TYPE_CHECKING:
    from clew.sessions.api_calls import ApiCall
    from clew.trace import Trace

__all__ = ["CallTables", "Descriptor", "Filling", "read_descriptors"]

_ROWS_AT_ONCE: Final = 1 << 15
_TEXT_BYTES: Final = 64
"""So much of strings and buffers is in the table."""


class Descriptor:
    """A descriptor that a process has: `number`, `kind` of what it leads to, its `name`, whether exec closes it."""

    def __init__(self, number: int, kind: str, name: str, *, closes_on_exec: bool) -> None:
        self.number, self.kind, self.name, self.closes_on_exec = number, kind, name, closes_on_exec


def read_descriptors(pid: int) -> tuple[str | None, list[Descriptor]]:
    """Where a process is, and its descriptors, out of /proc; what can't be read is left out."""
    directory, found = None, []
    with suppress(OSError):
        directory = os.readlink(f"/proc/{pid}/cwd")
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        names = []
    for number in sorted(map(int, names)):
        with suppress(OSError):
            link = os.readlink(f"/proc/{pid}/fd/{number}")
            told = Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines()
            flags = next(line for line in told if line.startswith("flags"))
            is_closing = bool(int(flags.split()[1], 8) & os.O_CLOEXEC)
            found.append(Descriptor(number, _kind_of(link), link, closes_on_exec=is_closing))
    return directory, found


def _kind_of(link: str) -> str:
    """What the link of a descriptor leads to, by its form (proc(5))."""
    if link.startswith("/dev/"):
        return "device"
    if link.startswith("/"):
        return "memfd" if link.startswith("/memfd:") else "file"
    word = link.removeprefix("anon_inode:").strip("[]").split(":")[0]
    kinds = {"socket": "socket", "pipe": "pipe", "eventpoll": "epoll", "eventfd": "eventfd", "timerfd": "timer"}
    return kinds.get(word, "pidfd" if word == "pidfd" else "other")


class CallTables:
    """Makes tables out of batches of calls, each in the order in which they returned."""

    def __init__(self, descriptions: Descriptions, pid: int) -> None:
        """`pid`: the first process, which is there and has made no call yet that is told."""
        self._descriptions, self._pid = descriptions, pid
        self._directory, self._descriptors = read_descriptors(pid)

    def fill(self, trace: Trace) -> Filling:
        """Tables to be filled, for a trace that lacks them."""
        return Filling(self._descriptions, _Processes(trace), self._pid, self._directory, self._descriptors)

    def write(self, trace: Trace, batches: Iterable[Sequence[ApiCall]]) -> int:
        """Add the tables to a trace; how many calls there are. Raises OSError."""
        filling = self.fill(trace)
        for batch in batches:
            filling.add(batch)
        tables = filling.finish(trace)
        append_tables(trace.directory, tables)
        return int(tables["calls"].num_rows)


class _Processes:
    """The processes of a trace: which one a number is at a time."""

    def __init__(self, trace: Trace) -> None:
        self.rows = sorted(trace.processes.to_pylist(), key=lambda row: (row["start_ns"], row["process_id"]))
        self._by_pid: dict[int, list[dict[str, Any]]] = {}
        for row in self.rows:
            self._by_pid.setdefault(row["pid"], []).append(row)

    def find(self, pid: int, time_ns: int) -> dict[str, Any] | None:
        """The process; before the first one of its number that is the first."""
        rows = self._by_pid.get(pid)
        if not rows:
            return None
        return rows[max(bisect_right([row["start_ns"] for row in rows], time_ns) - 1, 0)]


def _is_maker(call: ApiCall) -> bool:
    """Whether a process or thread was made."""
    makes = any(effect.kind == "StartTask" for effect in call.function.effects)
    return makes and call.result is not None and call.result > 0


class Filling:
    """The tables while they are filled, call by call; `world`: what was held when the last one returned."""

    def __init__(
        self,
        descriptions: Descriptions,
        processes: _Processes,
        pid: int,
        directory: str | None,
        descriptors: list[Descriptor],
    ) -> None:
        self._descriptions, self._processes = descriptions, processes
        self.world = World(descriptions)
        self._waiting = list(reversed(processes.rows))
        self._started: set[int] = set()
        self._first = (pid, directory, descriptors)
        self._makers: dict[int, tuple[int, frozenset[str]]] = {}
        self._calls: list[pa.Table] = []
        self._references: list[pa.Table] = []
        self._call_rows: list[dict[str, Any]] = []
        self._reference_rows: list[dict[str, Any]] = []
        self._n_calls = 0

    def add(self, calls: Sequence[ApiCall]) -> None:
        """Calls that returned one behind the other."""
        for call in calls:
            self._note_maker(call)
        for call in calls:
            end_ns = call.time_ns + (call.duration_ns or 0)
            process = self._processes.find(call.pid, call.time_ns)
            if process is None:
                continue
            made = self._processes.find(call.result or 0, end_ns) if _is_maker(call) else None
            # Who calls is there, whatever the clocks say, and who was made, although it may begin later.
            self._start_processes(end_ns, [row for row in (process, made) if row is not None])
            told = Told(call.pid, call.tid, call.time_ns, end_ns, call.function, call.values, call.result)
            touches = self.world.see(told)
            self._call_rows.append(self._row(call, process))
            self._reference_rows += [self._reference(process, touch) for touch in touches]
            self._n_calls += 1
            if len(self._call_rows) >= _ROWS_AT_ONCE:
                self._pack()

    def _note_maker(self, call: ApiCall) -> None:
        """What a process that is made shares with its maker, which returns later than its child may begin."""
        for effect in call.function.effects if _is_maker(call) else ():
            if effect.kind == "StartTask" and call.result is not None:
                told = Told(call.pid, call.tid, call.time_ns, call.time_ns, call.function, call.values, call.result)
                shared = Scene(self.world, self._descriptions, told).shared(effect)
                self._makers[call.result & 0xFFFFFFFF] = (call.time_ns, shared)

    def _start_processes(self, time_ns: int, needed: Sequence[dict[str, Any]] = ()) -> None:
        """All that are there at a time are known, and those that are needed."""
        time_ns = max([time_ns, *(row["start_ns"] for row in needed if row["process_id"] not in self._started)])
        while self._waiting and self._waiting[-1]["start_ns"] <= time_ns:
            row = self._waiting.pop()
            self._started.add(row["process_id"])
            pid, parent, name = row["pid"], row["parent_pid"], row["executable"]
            start_ns = row["start_ns"]
            is_same = self._processes.find(pid, start_ns - 1) is not row
            if is_same:
                holder = self.world.execute(pid, name, start_ns)
            else:
                made_ns, shared = self._makers.get(pid, (start_ns, frozenset()))
                holder = self.world.add_process(pid, name, min(made_ns, start_ns), parent, shared)
                first, directory, descriptors = self._first
                if pid == first:
                    holder.place.directory = directory
                    for one in descriptors:
                        self.world.inherit(
                            pid, one.number, one.kind, one.name, start_ns, closes_on_exec=one.closes_on_exec
                        )
            entity = self.world.things[holder.entity_id]
            entity.process_id, entity.last_ns = row["process_id"], row["end_ns"]
            entity.first_ns = start_ns
            entity.details["command"] = row["command"]

    def _row(self, call: ApiCall, process: dict[str, Any]) -> dict[str, Any]:
        is_system_call = bool(call.function.numbers)
        registers = [value.address if isinstance(value, Pointed) else value for value in call.values]
        seen = self._descriptions.with_values(
            call.function, [one if isinstance(one, int) else None for one in registers]
        )
        told = "" if call.result is None else result_text(seen, call.result, self._descriptions)
        error = told.split()[1] if call.has_failed and len(told.split()) > 1 else None
        return {
            "call_id": self._n_calls,
            "process_id": process["process_id"],
            "pid": call.pid,
            "tid": call.tid,
            "parent_call_id": None,
            "time_ns": call.time_ns,
            "duration_ns": call.duration_ns,
            "kind": "system_call" if is_system_call else "library",
            "name": call.function.name,
            "number": next(iter(call.function.numbers.values()), None),
            "library": None,
            "block_id": None,
            "position": None,
            "arguments": json.dumps(list(self._arguments(seen.parameters, call.values))),
            "result": call.result,
            "result_text": None if call.result is None else told,
            "error": error,
            # A function was called from somewhere else.
            "pc": call.pc if is_system_call else 0,
        }

    def _arguments(self, parameters: Any, values: Sequence[Value]) -> Iterator[dict[str, Any]]:
        if parameters is None:
            for value in values:
                yield {"value": hex((value if isinstance(value, int) else 0) & 0xFFFFFFFFFFFFFFFF)}
            return
        for parameter in parameters:
            if parameter.index == RESULT:
                continue
            value = values[parameter.index] if parameter.index < len(values) else None
            number = value.address if isinstance(value, Pointed) else value
            told: dict[str, Any] = {"name": parameter.name, "type": parameter.c_type}
            if isinstance(number, int):
                told["value"] = hex(number & 0xFFFFFFFFFFFFFFFF) if parameter.is_pointer else number
            told["text"] = argument_text(parameter, value, self._descriptions, limit=_TEXT_BYTES)
            yield told

    def _reference(self, process: dict[str, Any], touch: Touch) -> dict[str, Any]:
        return {
            "process_id": process["process_id"],
            "pid": process["pid"],
            "call_id": self._n_calls,
            "entity_id": touch.entity_id,
            "role": touch.role,
            "argument": touch.argument,
            "bytes": touch.n_bytes,
        }

    def _pack(self) -> None:
        schema = SCHEMAS["calls"].append(pa.field("pc", pa.uint64()))
        self._calls.append(pa.Table.from_pylist(self._call_rows, schema))
        self._references.append(pa.Table.from_pylist(self._reference_rows, SCHEMAS["references"]))
        self._call_rows, self._reference_rows = [], []

    def finish(self, trace: Trace) -> dict[str, pa.Table]:
        """The three tables, by their names."""
        self._start_processes(1 << 62)
        self._pack()
        calls = pa.concat_tables(self._calls)
        order = [("process_id", "ascending"), ("tid", "ascending"), ("time_ns", "ascending"), ("call_id", "ascending")]
        calls = calls.sort_by(order)
        calls = _with_places(_with_parents(calls), trace).drop_columns(["pc"])
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
                "name": one.name,
                "details": json.dumps(one.details),
                "first_ns": one.first_ns,
                "last_ns": max(one.last_ns, one.first_ns),
            }
            for one in self.world.things.entities
        ]
        return pa.Table.from_pylist(rows, SCHEMAS["entities"])


def _with_places(calls: pa.Table, trace: Trace) -> pa.Table:
    """Calls with the blocks that made them, and where those were in the order of execution."""
    for name, values in zip(("block_id", "position"), find_places(trace, calls), strict=True):
        column = pa.array(values, pa.int64(), mask=values < 0)
        calls = calls.set_column(calls.column_names.index(name), name, column)
    return calls


def _with_parents(calls: pa.Table) -> pa.Table:
    """Calls, thread by thread and by time, with those that they were made within."""
    process, tid, time_ns, call_id = (calls[name].to_numpy() for name in ("process_id", "tid", "time_ns", "call_id"))
    duration = calls["duration_ns"].fill_null(-1).to_numpy()
    parents = np.full(len(time_ns), -1, np.int64)
    stack: list[tuple[int, int]] = []
    whose = None
    rows = zip(process.tolist(), tid.tolist(), time_ns.tolist(), duration.tolist(), call_id.tolist(), strict=True)
    for row, (process_id, thread, begin, took, number) in enumerate(rows):
        if (process_id, thread) != whose:
            whose, stack = (process_id, thread), []
        end = begin + max(took, 0)
        while stack and (stack[-1][0] < end or stack[-1][0] <= begin):
            stack.pop()
        if stack:
            parents[row] = stack[-1][1]
        if took >= 0:
            stack.append((end, number))
    column = pa.array(parents, pa.int64(), mask=parents < 0)
    return calls.set_column(calls.column_names.index("parent_call_id"), "parent_call_id", column)
