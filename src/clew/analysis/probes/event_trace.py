"""A trace with events of probes in it, as calls of the kind `probe`: one that was recorded, or one of events alone.

Runs in the controller. On the disk nothing changes: what is not in the trace's files is kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clew.analysis.probes.event_calls import EventCalls, EventThread
from clew.analysis.probes.event_rows import EventRow, EventRows
from clew.analysis.trace import Trace
from clew.binary.architectures.known import KNOWN
from clew.dataclass import replace
from clew.errors import NotATraceError
from clew.store.columns import Array, to_numpy
from clew.store.held_parts import HeldParts
from clew.store.manifest import Manifest
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace as StoredTrace
from clew.version import __version__

__all__ = ["TraceWithEvents"]

_NONE: Final = -1
_ALONE: Final = "counts"
"""The mode of a trace of which nothing is known but events: none was recorded in order."""

_Row = dict[str, Any]


class TraceWithEvents(Trace):
    """The trace `whole`, or without one nothing but the events in `folders`. Times of both are CLOCK_REALTIME's.

    An event is of the process of its number that ran then, and of the block of that in which its place lies. Processes
    and threads that `whole` lacks are added. Raises NotATraceError, TraceDamagedError.
    """

    def __init__(self, whole: StoredTrace | None, folders: Sequence[Path]) -> None:
        # Not as `Trace` does: there may be no manifest.
        self.directory = folders[0] if whole is None else whole.directory
        self._base = whole
        self._processes = _Processes([] if whole is None else whole.processes.to_pylist())
        calls = EventCalls(self._processes.find)
        n_omitted = 0
        for folder in folders:
            rows = EventRows(folder)
            calls.add(rows, rows.read_names())
            n_omitted += rows.n_omitted
        if whole is None and not len(calls):
            raise NotATraceError(self.directory, "there are no events in it: the program came to no place of a probe")
        self._spans = _spans_of(calls.threads.values())
        threads = _with_threads([] if whole is None else whole.threads.to_pylist(), calls.threads.values())
        self._processes.note(calls.threads.values())
        first_id = 0 if whole is None else _next_id(whole)
        tables = {
            "processes": [pa.Table.from_pylist(self._processes.rows, SCHEMAS["processes"])],
            "threads": [pa.Table.from_pylist(threads, SCHEMAS["threads"])],
            "calls": [*calls.tables(first_id, self._find_blocks)],
        }
        self._parts = {
            name: HeldParts(
                self.directory,
                name,
                tables.get(name, []),
                None if whole is None or name in ("processes", "threads") else whole.parts(name),
            )
            for name in SCHEMAS
        }
        self._manifest = self._make_manifest(calls, n_omitted)

    def __repr__(self) -> str:
        return f"TraceWithEvents({str(self.directory)!r})"

    def span_of_probes(self, process_id: int) -> tuple[int, int] | None:
        """When the first and the last event of a probe came of a process (ns since 1970); None if none did."""
        return self._spans.get(process_id)

    def _make_manifest(self, calls: EventCalls, n_omitted: int) -> Manifest:
        rows = self._processes.rows
        start_ns = min((row["start_ns"] for row in rows), default=0)
        end_ns = max((row["end_ns"] for row in rows), default=0)
        warnings = [f"{n_omitted} events of probes are left out: they are too many"] if n_omitted else []
        losses = {"probe_events": calls.n_lost}
        if self._base is not None:
            told = self._base.manifest
            return replace(
                told,
                start_ns=min(told.start_ns, start_ns),
                end_ns=max(told.end_ns, end_ns),
                losses=told.losses | losses,
                warnings=told.warnings + warnings,
                processes=told.processes + self._processes.added(),
            )
        return Manifest(
            command=[self.directory.resolve().name],
            mode=_ALONE,
            include=[],
            exclude=[],
            start_ns=start_ns,
            end_ns=end_ns,
            clew_version=__version__,
            machine={},
            cpu={},
            losses=losses,
            processes=self._processes.added(),
            warnings=warnings,
        )

    def _find_blocks(self, process_id: int, addresses: Array) -> Array:
        """The blocks in which addresses of a process lie, the newest of those that were at one; _NONE for none."""
        whose, block_id, start, size = self._code
        own = np.flatnonzero(whose == process_id)
        if not len(own):
            return np.full(len(addresses), _NONE)
        own = own[np.argsort(start[own], kind="stable")]
        place = np.searchsorted(start[own], addresses, "right") - 1
        found = own[np.maximum(place, 0)]
        is_inside = (place >= 0) & (addresses - start[found] < size[found].astype(np.uint64))
        return np.where(is_inside, block_id[found], _NONE)

    @cached_property
    def _code(self) -> tuple[Array, Array, Array, Array]:
        """Of all blocks: their process, number, address (u64) and size."""
        if self._base is None:
            return (np.zeros(0, np.int64),) * 4
        names = ["process_id", "block_id", "app_pc", "size_bytes"]
        blocks = self._base.read("blocks", names)
        whose, block_id, start, size = (to_numpy(blocks[name]) for name in names)
        return whose, block_id, start.astype(np.uint64), size


class _Processes:
    """The processes of a trace, to which those of events are added. `rows` are those of the table."""

    def __init__(self, rows: list[_Row]) -> None:
        self.rows = rows
        self._n_known = len(rows)
        self._by_pid: dict[int, list[_Row]] = {}
        for row in sorted(rows, key=lambda one: int(one["start_ns"])):
            self._by_pid.setdefault(row["pid"], []).append(row)
        self._of_id = {row["process_id"]: row for row in rows}

    def find(self, event: EventRow) -> int:
        """Of which process an event is. One that went on with another program is several: that which ran then."""
        told = self._of_id.get(event.process_id)
        if told is not None and told["pid"] == event.pid:
            return int(told["process_id"])
        of_pid = self._by_pid.get(event.pid)
        if of_pid is None:
            of_pid = self._by_pid[event.pid] = [self._add(event)]
        before = [row for row in of_pid if row["start_ns"] <= event.time_ns]
        return int((before or of_pid)[-1 if before else 0]["process_id"])

    def note(self, threads: Iterable[EventThread]) -> None:
        """Have processes be there as long as their events come; those that were added are called as their threads."""
        for thread in threads:
            row = self._of_id[thread.process_id]
            row["start_ns"] = min(row["start_ns"], thread.first_ns)
            row["end_ns"] = max(row["end_ns"], thread.last_ns + 1)
            if not row["executable"] or (thread.tid == thread.pid and not row["command"]):
                row["executable"] = thread.name
        for row in self.rows[self._n_known :]:
            row["command"] = [row["executable"]]

    def added(self) -> list[_Row]:
        """What the manifest says of those that were added."""
        return [{"pid": row["pid"]} for row in self.rows[self._n_known :]]

    def _add(self, event: EventRow) -> _Row:
        row: _Row = {
            "process_id": max(self._of_id, default=-1) + 1,
            "pid": event.pid,
            "parent_pid": 0,
            "executable": "",
            "command": [],
            "start_ns": event.time_ns,
            "end_ns": event.time_ns + 1,
            "exit_code": None,
            "signal": None,
            "architecture": KNOWN[0].name,
        }
        self.rows.append(row)
        self._of_id[row["process_id"]] = row
        return row


def _spans_of(threads: Iterable[EventThread]) -> dict[int, tuple[int, int]]:
    """By process when its first and its last event came."""
    found: dict[int, tuple[int, int]] = {}
    for one in threads:
        first_ns, last_ns = found.get(one.process_id, (one.first_ns, one.last_ns))
        found[one.process_id] = min(first_ns, one.first_ns), max(last_ns, one.last_ns)
    return found


def _with_threads(rows: list[_Row], threads: Iterable[EventThread]) -> list[_Row]:
    """The rows of threads, and of those that have events and were not recorded: alive as long as these come. The life
    of the others is as it was recorded: their order is told by it."""
    known = {(row["process_id"], row["tid"]) for row in rows}
    nothing = dict.fromkeys(("instructions", "block_executions", "lost_records"), 0)
    for thread in threads:
        if (thread.process_id, thread.tid) not in known:
            whose = {"process_id": thread.process_id, "pid": thread.pid, "tid": thread.tid, "parent_tid": 0}
            life = {"start_ns": thread.first_ns, "end_ns": thread.last_ns + 1, "end": "detached"}
            rows.append(whose | {"name": thread.name} | life | nothing)
    return sorted(rows, key=lambda row: int(row["process_id"]))


def _next_id(trace: StoredTrace) -> int:
    """A number that no call has, nor any behind it."""
    return 1 + max(
        (int(to_numpy(piece["call_id"]).max(initial=-1)) for piece in trace.iter_pieces("calls", ["call_id"])),
        default=-1,
    )
