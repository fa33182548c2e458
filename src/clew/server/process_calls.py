"""The calls of a process, or of all, as the server keeps them: recorded ones, or of one process the system calls that
every recording has.

Runs in the controller. What is read of the trace is read once, by the first who asks; whoever asks holds the lock.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.calls.call_lanes import CallLanes
from clew.analysis.calls.call_nesting import CallNesting
from clew.analysis.calls.call_order import CallOrder
from clew.analysis.calls.call_paths import CallPaths
from clew.analysis.calls.call_rows import CallFilter, CallRows
from clew.analysis.calls.entities import EntityTable
from clew.analysis.calls.every_call import EveryCall
from clew.analysis.calls.recorded_calls import RecordedCalls
from clew.analysis.calls.system_calls import read_path_calls, read_tag_calls
from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.order.path_code import load_process_code
from clew.analysis.tables.arrays import Array
from clew.errors import UsageError
from clew.server.query import Query
from clew.server.served_trace import ServedTrace

__all__ = ["ProcessCalls", "hold_calls", "open_entities", "parse_filter"]

_KEPT_SEARCHES: Final = 8


class ProcessCalls:
    """The calls of a process, or with None of all. `recorded` is None where the trace has none of it.

    Raises TraceDamagedError.
    """

    def __init__(self, served: ServedTrace, process_id: int | None) -> None:
        self._served = served
        self._trace = served.trace
        self._graph = None if process_id is None else served.graph(process_id)
        recorded = EveryCall(served.trace) if self._graph is None else RecordedCalls(self._graph)
        self.recorded = recorded if recorded.n_all else None
        self.lock = threading.Lock()
        self._searches: OrderedDict[tuple[str, object], Array] = OrderedDict()
        self._kept: tuple[CallFilter, Array] | None = None
        self._paths_kept: tuple[CallFilter, CallPaths] | None = None

    @property
    def graph(self) -> ProcessGraph:
        """The code of the process; calls of all processes have none."""
        assert self._graph is not None
        return self._graph

    @property
    def source(self) -> str:
        """What is listed: `recorded` calls, `system_calls` with their times, or only `counts` of these by place."""
        if self.recorded is not None:
            return "recorded"
        return "system_calls" if self._trace.mode == "region" or self._paths else "counts"

    @cached_property
    def _paths(self) -> list[dict[str, Any]]:
        """The paths of the process; none where no order of it was recorded."""
        process_id = self.graph.process_id
        return [row for row in self._trace.paths.to_pylist() if row["process_id"] == process_id]

    @cached_property
    def rows(self) -> CallRows | None:
        """The calls; None where only places are known."""
        if self.recorded is not None:
            return self.recorded.rows
        if self._trace.mode == "region":
            return read_tag_calls(self.graph)
        if self._paths:
            return read_path_calls(self.graph, load_process_code(self._trace, self.graph.process_id), self._paths)
        return None

    @cached_property
    def nesting(self) -> CallNesting:
        """What is within what: of system calls that were not recorded as calls nothing is."""
        if self.recorded is not None:
            return self.recorded.nesting
        rows = self.rows
        assert rows is not None
        return CallNesting(rows, np.full(len(rows), -1))

    @cached_property
    def lanes(self) -> CallLanes:
        """The same over time."""
        return CallLanes(self.nesting)

    @cached_property
    def in_order(self) -> CallOrder | None:
        """Where calls are in the order of execution; None where only what is noted of system calls is known."""
        return None if self.recorded is None else CallOrder(self.recorded.rows, self.recorded.position)

    def keep(self, wanted: CallFilter) -> Array:
        """Which calls (bool) are asked for, or around one that is."""
        if self._kept is None or self._kept[0] != wanted:
            nesting = self.nesting
            self._kept = wanted, nesting.with_those_around(self.choose(nesting.rows, wanted))
        return self._kept[1]

    def paths(self, wanted: CallFilter) -> CallPaths:
        """Those together that have the same around them."""
        kept = self.keep(wanted)
        if self._paths_kept is None or self._paths_kept[0] != wanted:
            self._paths_kept = wanted, CallPaths(self.nesting, kept)
        return self._paths_kept[1]

    def choose(self, rows: CallRows, wanted: CallFilter) -> Array:
        """Which of `rows` (bool) are asked for."""
        return rows.choose(wanted, *self._find(wanted))

    def order(self, rows: CallRows, wanted: CallFilter, sort: str, *, descending: bool) -> Array:
        """Indices of the calls that are asked for, sorted."""
        hits, among = self._find(wanted)
        return rows.order(wanted, sort, descending=descending, hits=hits, among=among)

    def _find(self, wanted: CallFilter) -> tuple[Array | None, Array | None]:
        """What only tables tell: calls with a text in their arguments, and calls that have to do with an entity."""
        recorded = self.recorded
        if recorded is None:
            return None, None
        hits = self._once(("text", wanted.text)) if wanted.text else None
        return hits, None if wanted.entity is None else self._once(("entity", wanted.entity))

    def _once(self, key: tuple[str, object]) -> Array:
        assert self.recorded is not None
        if key not in self._searches:
            what, value = key
            found = self.recorded.find_text(str(value)) if what == "text" else self._find_entity(int(str(value)))
            self._searches[key] = found.astype(np.uint32)
            while len(self._searches) > _KEPT_SEARCHES:
                self._searches.popitem(last=False)
        self._searches.move_to_end(key)
        return self._searches[key]

    def _find_entity(self, entity_id: int) -> Array:
        """Calls that refer to an entity, and those that it made. Raises UsageError if there is none."""
        assert self.recorded is not None
        entities = open_entities(self._served)
        maker = entities.find_maker(entities.find(entity_id))
        found = self.recorded.find_entity(entity_id)
        rows = self.recorded.rows
        if maker is None or maker[0] not in rows.processes:
            return found
        tids = None if maker[1] is None else (maker[1],)
        own = rows.choose(CallFilter(threads=tids)) & (rows.whose == rows.processes.index(maker[0]))
        return np.union1d(found, np.flatnonzero(own))


def open_entities(served: ServedTrace) -> EntityTable:
    """The entities of a trace, read once."""
    return served.once("entities", lambda: EntityTable(served.trace))


@contextmanager
def hold_calls(served: ServedTrace, process_id: int | None) -> Iterator[ProcessCalls]:
    """The calls of a process, or with None of all, for one who asks at a time. Raises UsageError if there is no such
    process, and where not even one has recorded calls."""
    # Making it does little more than the graph does; what takes long is done under its own lock.
    if process_id is not None:
        served.graph(process_id)
    elif not served.trace.n_rows("calls"):
        raise UsageError("this trace has no API calls, which alone are told of all processes together")
    calls = served.once(("calls", process_id), lambda: ProcessCalls(served, process_id))
    with calls.lock:
        yield calls


def parse_filter(query: Query) -> CallFilter:
    """Which calls a request asks for: `name`, `text`, `threads`, `kind`, `filter`, `failed`, `from`, `to`, `entity`."""
    words = query.words()
    threads = query.threads()
    found = CallFilter(
        name=query.word("name") if "name" in words else None,
        text=query.word("text")[:200],
        threads=None if threads is None else tuple(sorted(set(threads))),
        kind=query.word("kind") or None,
        filter=query.word("filter") or None,
        failed=query.flag("failed"),
        entity=query.number("entity") if "entity" in words else None,
    )
    start = query.served.start_ns
    if "from" in words:
        found = replace(found, start_ns=start + query.number("from"))
    if "to" in words:
        found = replace(found, end_ns=start + query.number("to"))
    return found
