"""Events of probes as calls: an entry and its return are one, anything else is one that took no time.

Runs in the controller. A call that was left (by an exception, by longjmp) ends when one outside of it returns: that is
its error, LEFT. One whose end nobody saw has no duration.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clew.analysis.probes.event_rows import EventRow
from clew.analysis.probes.event_values import make_printable, read_values, tell_arguments, tell_result
from clew.dataclass import dataclass
from clew.store.columns import Array
from clew.store.schema import SCHEMAS

__all__ = ["LEFT", "LOST", "EventCalls", "EventThread"]

LEFT: Final = "left"
LOST: Final = "lost"
_NONE: Final = -1
MAX_OPEN: Final = 1 << 16
"""In a thread: more are open only where calls are left again and again."""


@dataclass
class EventThread:
    """A thread that has events: what it was called last, and when its first and its last event were (ns since 1970)."""

    process_id: int
    pid: int
    tid: int
    name: str
    first_ns: int
    last_ns: int


class _OpenCall:
    __slots__ = ("function", "number", "values")

    def __init__(self, number: int, function: str, values: dict[str, Any]) -> None:
        self.number, self.function, self.values = number, function, values


class _OpenCalls:
    """Of a thread, the outermost first; `n_of` says how often each function is open."""

    def __init__(self) -> None:
        self.calls: list[_OpenCall] = []
        self.n_of: Counter[str] = Counter()

    def push(self, call: _OpenCall) -> bool:
        """Whether there was room for it."""
        if len(self.calls) == MAX_OPEN:
            return False
        self.calls.append(call)
        self.n_of[call.function] += 1
        return True

    def pop(self) -> _OpenCall:
        call = self.calls.pop()
        self.n_of[call.function] -= 1
        return call


class EventCalls:
    """The calls that events are. `threads` are those that have some; `n_lost` events were lost."""

    def __init__(self, find_process: Callable[[EventRow], int]) -> None:
        """`find_process` says of which process of the trace an event is (`process_id`)."""
        self._find_process = find_process
        self.threads: dict[tuple[int, int], EventThread] = {}
        self.n_lost = 0
        self._open: defaultdict[tuple[int, int], _OpenCalls] = defaultdict(_OpenCalls)
        self._names: dict[str, int] = {}
        numbers = ("process", "pid", "tid", "parent", "time", "duration", "name", "address", "result")
        self._columns = {name: array("Q" if name == "address" else "q") for name in numbers}
        self._has_result = bytearray()
        self._arguments: list[str] = []
        self._result_text: dict[int, str] = {}
        self._errors: dict[int, str] = {}
        self._address_names: dict[tuple[int, int], str] = {}

    def __len__(self) -> int:
        return len(self._arguments)

    def add(self, rows: Iterable[EventRow], names: dict[tuple[int, int], str] | None = None) -> None:
        """Take events, in their order within each thread: all of them, what is open behind the last has no end. `names`
        are those of addresses of processes, by numbers."""
        self._address_names = {} if names is None else names
        for row in rows:
            process_id = self._find_process(row)
            self._note_thread(process_id, row)
            calls = self._open[process_id, row.tid]
            function = row.function or row.name
            values = read_values(row.values)
            match row.kind:
                case "entry":
                    call = _OpenCall(self._begin(row, process_id, function, values), function, values)
                    if not calls.push(call):
                        self._arguments[call.number] = self._tell(values, {}, row.pid)
                case "return" if calls.n_of[function]:
                    self._leave(calls, row.time_ns, function, values)
                case "lost":
                    number = self._begin(row, process_id, "lost events", values)
                    self._arguments[number] = self._tell({"events": row.lost}, {}, row.pid)
                    self.n_lost += max(row.lost, 0)
                    self._columns["duration"][number] = 0
                    self._errors[number] = LOST
                case _:
                    number = self._begin(row, process_id, row.name, values)
                    self._arguments[number] = self._tell(values, {}, row.pid)
                    self._columns["duration"][number] = 0
                    self._result(number, values)
        for calls in self._open.values():
            for call in calls.calls:
                self._arguments[call.number] = self._tell(call.values, {}, self._columns["pid"][call.number])
        self._open.clear()

    def tables(self, first_id: int, find_blocks: Callable[[int, Array], Array]) -> Iterator[pa.Table]:
        """Rows of the table `calls`, those of each process together. `find_blocks` gives the `block_id`s of addresses
        in a process, _NONE for none."""
        columns = {name: np.frombuffer(column, column.typecode) for name, column in self._columns.items()}
        has_result = np.frombuffer(self._has_result, np.uint8) > 0
        names = pa.array(list(self._names), pa.string())
        order = np.lexsort((columns["tid"], columns["process"])) if len(self) else np.zeros(0, np.int64)
        borders = np.flatnonzero(np.diff(columns["process"][order], prepend=_NONE, append=_NONE))
        for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            rows = order[start:end]
            own = {name: column[rows] for name, column in columns.items()}
            blocks = find_blocks(int(own["process"][0]), own["address"])
            numbers = rows.tolist()
            nothing = pa.nulls(len(rows), SCHEMAS["calls"].field("library").type)
            found = {
                "call_id": first_id + rows,
                "process_id": own["process"],
                "pid": own["pid"],
                "tid": own["tid"],
                "parent_call_id": _optional(first_id + own["parent"], own["parent"] >= 0),
                "time_ns": own["time"],
                "duration_ns": _optional(own["duration"], own["duration"] >= 0),
                "kind": _words(["probe"] * len(rows)),
                "name": pa.DictionaryArray.from_arrays(pa.array(own["name"].astype(np.int32)), names),
                "number": pa.nulls(len(rows), pa.int32()),
                "library": nothing,
                "block_id": _optional(blocks, blocks >= 0),
                "position": pa.nulls(len(rows), pa.int64()),
                "arguments": [self._arguments[number] for number in numbers],
                "result": _optional(own["result"], has_result[rows]),
                "result_text": pa.array([self._result_text.get(number) for number in numbers], pa.string()),
                "error": _words([self._errors.get(number) for number in numbers]),
                "injected": nothing,
                "filter": nothing,
            }
            yield pa.Table.from_arrays(
                [_column(found[one.name], one.type) for one in SCHEMAS["calls"]], schema=SCHEMAS["calls"]
            )

    def _note_thread(self, process_id: int, row: EventRow) -> None:
        key, time = (process_id, row.tid), row.time_ns
        thread = self.threads.get(key)
        if thread is None:
            name = make_printable(row.comm)
            self.threads[key] = EventThread(process_id, row.pid, row.tid, name, time, time)
            return
        thread.name = make_printable(row.comm) or thread.name
        thread.first_ns, thread.last_ns = min(thread.first_ns, time), max(thread.last_ns, time)

    def _begin(self, row: EventRow, process_id: int, name: str, values: dict[str, Any]) -> int:
        """One more call, and its number."""
        around = self._open[process_id, row.tid].calls
        printable = make_printable(name)
        told = {
            "process": process_id,
            "pid": row.pid,
            "tid": row.tid,
            "parent": around[-1].number if around else _NONE,
            "time": row.time_ns,
            "duration": _NONE,
            "name": self._names.setdefault(printable, len(self._names)),
            "address": _address_of(values),
            "result": 0,
        }
        for column, value in told.items():
            self._columns[column].append(value)
        self._has_result.append(0)
        self._arguments.append("")
        return len(self._arguments) - 1

    def _leave(self, calls: _OpenCalls, time_ns: int, function: str, returned: dict[str, Any]) -> None:
        """The innermost open call of a function returns; those within it were left."""
        duration, times = self._columns["duration"], self._columns["time"]
        is_over = False
        while not is_over:
            call = calls.pop()
            is_over = call.function == function
            duration[call.number] = max(time_ns - times[call.number], 0)
            more = returned if is_over else {}
            self._arguments[call.number] = self._tell(call.values, more, self._columns["pid"][call.number])
            if not is_over:
                self._errors[call.number] = LEFT
        self._result(call.number, returned)

    def _tell(self, values: dict[str, Any], returned: dict[str, Any], pid: int) -> str:
        """The arguments as the table has them."""
        return json.dumps(tell_arguments(values, returned, lambda address: self._address_names.get((pid, address))))

    def _result(self, number: int, returned: dict[str, Any]) -> None:
        result, text = tell_result(returned)
        if result is not None:
            self._columns["result"][number] = result
            self._has_result[number] = 1
        if text is not None:
            self._result_text[number] = text


def _address_of(values: dict[str, Any]) -> int:
    """Where an event was; 0 where that is not told."""
    told = values.get("ip")
    try:
        found = int(told, 16) if isinstance(told, str) else 0
    except ValueError:
        return 0
    return found if 0 <= found < 1 << 64 else 0


def _optional(values: Array, is_there: Array) -> pa.Array:
    return pa.array(values.astype(np.int64), mask=~is_there)


def _words(values: list[str | None] | list[str]) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode()


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) and values.type == kind else pa.array(values).cast(kind)
