"""A thread's path that is entered again and again at any place: what was walked once is not walked again.

Reading a path begins at a checkpoint, and some million blocks may lie between two of them. Here a walk leaves waypoints
behind, from which later ones go on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clew.analysis.order.ordered import Entry, PathSpan
from clew.analysis.order.stretch_walk import StretchWalk
from clew.analysis.order.thread_path import PathPlace, ThreadPath
from clew.binary.path_codec import MOST, PathState
from clew.protocol.codec import Stop
from clew.store.columns import Array

if TYPE_CHECKING:
    from clew.analysis.order.path_code import ProcessCode
    from clew.store.trace import Trace

__all__ = ["WaypointPath"]

STEP_EXECUTIONS: Final = 1 << 17
"""Waypoints are so many executions of blocks apart, some milliseconds of walking."""
MAX_LAID: Final = 1 << 31
"""Executions of blocks that are walked to lay waypoints before anybody asks, half a minute of work."""
KEPT_SPANS: Final = 4
MAX_KEPT_BYTES: Final = 64 << 20
"""What the open calls of all waypoints may take; behind that no more are left."""


@dataclass(frozen=True)
class _Waypoint:
    """So many executions and instructions behind an entry a walk was in `state`, whose blocks are left out, and in
    front of event number `event` of the path."""

    executions: int
    instructions: int
    state: PathState
    event: int


class WaypointPath(ThreadPath):
    """A thread's path with waypoints. Not for two threads at once."""

    def __init__(self, trace: Trace, row: dict[str, Any], code: ProcessCode) -> None:
        super().__init__(trace, row, code)
        self._waypoints: dict[tuple[int, int], list[_Waypoint]] = {}
        self._kept_bytes = 0
        self._spans: OrderedDict[tuple[int, int], tuple[PathSpan, tuple[bytes, bytes]]] = OrderedDict()

    def visit(self, execution: int) -> tuple[Entry, StretchWalk, PathPlace]:
        """A walk at a place, or as near in front of it as the path is known; the entry it came by, and the place."""
        return self._go_to(execution=execution)

    def lay_waypoints(self) -> Iterator[None]:
        """Walk along the path and leave waypoints, as far as MAX_LAID; after each some other use may be made of it."""
        borders = [*self.stretches.file.places["block_executions"].tolist(), self.block_executions]
        for number, border in enumerate(borders):
            entries = self.stretches.entries(number)
            ends = [*(entry.executions for entry in entries[1:]), border]
            for entry, end in zip(entries, ends, strict=True):
                if entry.executions >= MAX_LAID:
                    return
                for step, _ in enumerate(self._approach(entry, end - 1)):
                    if step % 2:
                        yield
                yield

    def find_behind(self, block_id: int, execution: int) -> PathPlace | None:
        """The place in front of the first execution of a block from number `execution` on; None if there is none."""
        index = self._index_of(block_id)
        if index is None or execution >= self.block_executions:
            return None
        before = self.count_before(block_id)
        number = self._stretch_at(execution)
        is_last = number + 1 >= len(before)
        if not is_last and before[number] == before[number + 1]:
            return self.find_execution(block_id, int(before[number]))
        entry, walk, place = self.visit(execution)
        if place.execution < execution:
            # It was lost; counters tell what is behind.
            return self.find_execution(block_id, self.count_executions(block_id, execution))
        instructions, executions, _ = walk.skip_to(index, 0)
        if walk.stop == Stop.ASKED:
            return PathPlace(place.execution + executions, place.instruction + instructions)
        others = self.stretches.entries(entry.number)[entry.part + 1 :]
        self._check_end(entry, walk, is_last=not others)
        for other in others:
            walk = self.stretches.open_entry(other)
            instructions, executions, _ = walk.skip_to(index, 0)
            if walk.stop == Stop.ASKED:
                return PathPlace(other.executions + executions, other.instructions + instructions)
        return None if is_last else self.find_execution(block_id, int(before[number + 1]))

    def find_before(self, block_id: int, execution: int) -> PathPlace | None:
        """The place in front of the last execution of a block before number `execution`; None if there is none."""
        index = self._index_of(block_id)
        end = last = min(execution, self.block_executions)
        if index is None or end <= 0:
            return None
        before, number = self.count_before(block_id), self._stretch_at(end - 1)
        if number + 1 < len(before) and before[number] == before[number + 1]:
            return self._find_in_front(block_id, int(before[number]) - 1, execution)
        entry, _, place = self.visit(end - 1)
        # Of what was lost counters alone tell.
        size = STEP_EXECUTIONS // 8
        while place.execution == last - 1 and end > entry.executions:
            start = max(end - size, entry.executions)
            n = self.visit(start)[1].count(index, end - start)
            if n:
                _, walk, place = self.visit(start)
                instructions, executions, _ = walk.skip_to(index, n - 1)
                return PathPlace(place.execution + executions, place.instruction + instructions)
            end, size = start, size * 2
        # What is further away counters tell of.
        return self._find_in_front(block_id, self.count_executions(block_id, end) - 1, execution)

    def _find_in_front(self, block_id: int, n: int, execution: int) -> PathPlace | None:
        """The place of the `n`-th execution of a block, if it lies in front of number `execution`."""
        found = self.find_execution(block_id, n)
        return found if found is not None and found.execution < execution else None

    def _stretch_at(self, execution: int) -> int:
        return int(np.searchsorted(self.stretches.file.places["block_executions"], execution, "right"))

    def _index_of(self, block_id: int) -> int | None:
        found = np.flatnonzero(self.code.block_id == block_id)
        return int(found[0]) if len(found) else None

    def _go_until(self, sample: np.void, place: PathPlace, number: int) -> PathPlace:
        for entry in reversed(self.stretches.entries(number)):
            if not self._begins_behind(entry, sample):
                waypoints = self._waypoints.get((entry.number, entry.part), [])
                passed = bisect_left(waypoints, True, key=lambda point: not _is_in_front(point.state, sample))
                if passed:
                    point = waypoints[passed - 1]
                    near = PathPlace(entry.executions + point.executions, entry.instructions + point.instructions)
                    place = max(place, near, key=attrgetter("execution"))
                break
        return super()._go_until(sample, place, number)

    def find_event_place(self, number: int, event: int) -> PathPlace:
        record = self.stretches.events(number)[event]
        entries = self.stretches.entries(number)
        behind = [entry for entry in entries[1:] if self._begins_behind(entry, record)]
        entry = entries[len(entries) - len(behind) - 1]
        span, streams = self._span(entry)
        waypoints = self._waypoints.get((entry.number, entry.part), [])
        passed = [point for point in waypoints if _is_in_front(point.state, record)]
        executions = instructions = 0
        if passed:
            span, streams = self.stretches.span_behind(span, streams, passed[-1].state, passed[-1].event)
            executions, instructions = passed[-1].executions, passed[-1].instructions
        records = self.stretches.file.read_events(span.event_start, span.event_end)
        first = self._first_event(number)
        records = records[: max(first + event - span.event_start, 0)]
        walk = self.stretches.open_span(replace(span, end_head=record), streams, records)
        skipped = walk.advance(MOST, MOST)
        return PathPlace(entry.executions + executions + skipped[1], entry.instructions + instructions + skipped[0])

    def time_of(self, entry: Entry, walk: StretchWalk) -> int:
        """What `time_at` says of where a walk is that `visit` gave."""
        return self._time_of(entry, walk)

    def _begins_behind(self, entry: Entry, record: np.void) -> bool:
        position = self._span(entry)[0].position
        told = (int(record["surprise_bytes"]), int(record["decisions"]))
        return (position.surprise_bytes, position.decisions) > told

    def _first_event(self, number: int) -> int:
        return int(self.stretches.file.places[number - 1]["events"]) if number else 0

    def _go_to(
        self, *, execution: int | None = None, instruction: int | None = None
    ) -> tuple[Entry, StretchWalk, PathPlace]:
        if execution is None:
            return super()._go_to(execution=execution, instruction=instruction)
        wanted = max(execution, 0)
        number = self._stretch_at(wanted)
        first, *others = self.stretches.entries(number)
        entry = next((one for one in reversed(others) if one.executions <= wanted), first)
        *_, (walk, place) = self._approach(entry, wanted)
        return entry, walk, place

    def _approach(self, entry: Entry, wanted: int) -> Iterator[tuple[StretchWalk, PathPlace]]:
        """Go from an entry, or the waypoint nearest to it, to execution number `wanted`, and leave waypoints: the walk
        and its place after each step. Others may walk meanwhile."""
        span, streams = self._span(entry)
        waypoints = self._waypoints.setdefault((entry.number, entry.part), [])
        at = bisect_right(waypoints, wanted - entry.executions, key=attrgetter("executions"))
        executions = instructions = 0
        if at:
            point = waypoints[at - 1]
            executions, instructions = point.executions, point.instructions
            span, streams = self.stretches.span_behind(span, streams, point.state, point.event)
        walk = StretchWalk(self.code, self.stretches.open_span(span, streams))
        events: Array | None = None
        while True:
            left = max(wanted - entry.executions - executions, 0)
            # Also if nothing is left: what happens in front of the next block is taken in.
            skipped = walk.skip(MOST, min(left, STEP_EXECUTIONS))
            instructions, executions = instructions + skipped[0], executions + skipped[1]
            yield walk, PathPlace(entry.executions + executions, entry.instructions + instructions)
            if left <= STEP_EXECUTIONS or walk.stop != Stop.ASKED:
                return
            state = walk.state(has_blocks=False)
            if events is None:
                events = self.stretches.number_events(span)
            event = int(events[min(state.n_events, len(events) - 1)])
            self._leave(waypoints, _Waypoint(executions, instructions, state, event))

    def _leave(self, waypoints: list[_Waypoint], point: _Waypoint) -> None:
        near = bisect_right(waypoints, point.executions, key=attrgetter("executions"))
        is_known = near > 0 and waypoints[near - 1].executions == point.executions
        size_bytes = point.state.addresses.nbytes + point.state.numbers.nbytes
        if is_known or self._kept_bytes + size_bytes > MAX_KEPT_BYTES:
            return
        self._kept_bytes += size_bytes
        insort(waypoints, point, key=attrgetter("executions"))

    def _span(self, entry: Entry) -> tuple[PathSpan, tuple[bytes, bytes]]:
        key = (entry.number, entry.part)
        if key not in self._spans:
            self._spans[key] = self.stretches.span_of(entry)
            while len(self._spans) > KEPT_SPANS:
                self._spans.popitem(last=False)
        self._spans.move_to_end(key)
        return self._spans[key]


def _is_in_front(state: PathState, record: np.void) -> bool:
    """Whether a walk was in front of where an event is told of; where only symbols tell it is not said."""
    position = state.position
    reached = (position.surprise_bytes, position.decisions)
    return reached < (int(record["surprise_bytes"]), int(record["decisions"]))
