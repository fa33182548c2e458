"""A thread's execution looked at place by place: what was about to run, what ran before, who had called.

Runs in the controller. A position is so many executions of blocks (mode full) or so many tags (mode region); what there
is in front of it ran. Blocks are indices of the process' graph. Where the order is not known, in a gap, no position
lies: whoever asks for one inside is told of the gap's start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.order.ordered import Entry
from clew.analysis.order.stretch_walk import StretchWalk
from clew.analysis.order.thread_path import PathPlace
from clew.analysis.order.waypoints import WaypointPath
from clew.analysis.replay.thread_times import ThreadTimes
from clew.analysis.tables.arrays import find_rows
from clew.protocol._generated import PathEventKind
from clew.protocol.codec import Stop
from clew.protocol.words import EXIT_WORDS
from clew.store.columns import Array

if TYPE_CHECKING:
    from clew.analysis.order.path_code import ProcessCode
    from clew.store.trace import Trace

__all__ = ["RECENT", "OpenCall", "PathReplay", "Replay", "ReplayState", "ReplayWindow", "Sought"]

RECENT: Final = 64
"""Blocks executed before a position that a state tells of."""
COMING: Final = 16
MAX_WINDOW: Final = 100_000
MAX_CALLS: Final = 256
"""Open calls that a state tells of, the innermost."""
MAX_SOUGHT: Final = 1 << 24
"""Executions of blocks that are looked through for the next call, about a second."""
_PIECE: Final = 1 << 16
MAX_EVENT_PLACES: Final = 1 << 16
"""Events whose places are kept once they were found."""
NO_BLOCK: Final = -1


class Sought(StrEnum):
    """What a position can be looked for."""

    CALL = "call"
    SYSTEM_CALL = "syscall"
    SIGNAL = "signal"


@dataclass(frozen=True)
class OpenCall:
    """A call that has not returned: the block that made it, -1 if it is not known, and where it returns to."""

    block: int
    return_address: int


@dataclass(frozen=True)
class ReplayState:
    """A thread in front of number `position`: `block` would run next, -1 for none.

    `instruction` is how many ran, and it was not yet further by `time_ns`, where that is known. `calls` are the
    innermost that are open, the outermost of them first, None where that is not recorded; `n_calls_omitted` are more.
    `recent` are the last blocks before and `coming` the next ones, in the order of the path, none from beyond a gap;
    `gap`, of dtype GAP, if there is no order from here.
    """

    position: int
    block: int
    instruction: int | None
    time_ns: int
    calls: list[OpenCall] | None
    n_calls_omitted: int
    recent: Array
    coming: Array
    gap: np.void | None


@dataclass(frozen=True)
class ReplayWindow:
    """Blocks from `start` on, u32, NO_BLOCK's bits for what has none; up to a gap if there is one. Behind it the path
    goes on at `next`."""

    start: int
    blocks: Array
    next: int


class Replay(ABC):
    """One ordered thread. Not for two threads at once. Methods raise TraceDamagedError."""

    def __init__(self, graph: ProcessGraph, times: ThreadTimes) -> None:
        self.graph = graph
        self.times = times
        gaps = times.gaps[np.argsort(times.gaps["start"], kind="stable")]
        self.gaps = gaps[gaps["end"] > gaps["start"]]
        self._gap_starts: list[int] = self.gaps["start"].tolist()

    @property
    def length(self) -> int:
        """How many positions there are, but for the last."""
        return self.times.length

    def find_gap(self, position: int) -> np.void | None:
        """The gap that a position is in, or in front of."""
        at = bisect_right(self._gap_starts, position) - 1
        if at < 0 or position >= int(self.gaps["end"][at]):
            return None
        gap: np.void = self.gaps[at]
        return gap

    def settle(self, position: int) -> int:
        """The nearest position at or in front of one that is none: inside of a gap its start, behind the end that."""
        position = min(max(position, 0), self.length)
        gap = self.find_gap(position)
        return position if gap is None else int(gap["start"])

    def step(self, position: int, n: int) -> int:
        """The position `n` steps behind one, or in front of it (negative); a gap is one step."""
        position = self.settle(position)
        while n > 0 and position < self.length:
            gap = self.find_gap(position)
            if gap is not None:
                position, n = int(gap["end"]), n - 1
                continue
            at = bisect_right(self._gap_starts, position)
            border = self._gap_starts[at] if at < len(self._gap_starts) else self.length
            taken = min(n, border - position)
            position, n = position + taken, n - taken
        while n < 0 and position > 0:
            gap = self.find_gap(position - 1)
            if gap is not None:
                position, n = int(gap["start"]), n + 1
                continue
            at = bisect_right(self._gap_starts, position - 1) - 1
            border = int(self.gaps["end"][at]) if at >= 0 else 0
            taken = min(-n, position - border)
            position, n = position - taken, n + taken
        return position

    def prepare(self) -> Iterator[None]:
        """Do, a little at a time, what makes later questions quick; in between others may be asked."""
        return iter(())

    @abstractmethod
    def state(self, position: int) -> ReplayState:
        """What is known in front of a position."""

    @abstractmethod
    def window(self, start: int, count: int) -> ReplayWindow:
        """Blocks from a position on, at most MAX_WINDOW and none from beyond a gap."""

    @abstractmethod
    def find_block(self, block: int, position: int, *, back: bool) -> int | None:
        """The position of the next execution of a block behind a position, or of the last one before it."""

    @abstractmethod
    def find_time(self, time_ns: int) -> int:
        """A position at or before a time."""

    @abstractmethod
    def find(self, what: Sought, position: int, *, back: bool) -> int | None:
        """The position of the next call, system call or signal behind a position, or of the last one before it."""

    @abstractmethod
    def find_system_call(self, number: int) -> int | None:
        """The position of a system call: the `number`-th of the thread, from 0 (full), or that at a row (region)."""

    def frames(self, start: int, stride: int, n_frames: int, count: int) -> tuple[list[int], list[Array]]:
        """At most `n_frames` positions, `stride` apart from `start` on, and the last blocks in front of each, at most
        `count` of them."""
        positions: list[int] = []
        blocks: list[Array] = []
        for number in range(n_frames):
            position = self.settle(start + number * stride)
            if positions and position <= positions[-1]:
                if start + number * stride >= self.length:
                    break
                continue
            positions.append(position)
            blocks.append(self._recent(position, count))
        return positions, blocks

    def _recent(self, position: int, count: int) -> Array:
        """The last blocks in front of a position, none from beyond a gap."""
        first = self._recent_start(position, count)
        return self.window(first, position - first).blocks

    def _recent_start(self, position: int, count: int) -> int:
        first = max(position - count, 0)
        at = bisect_right(self._gap_starts, position - 1) - 1
        return min(max(first, int(self.gaps["end"][at])), position) if at >= 0 else first


class PathReplay(Replay):
    """A thread of a trace of mode full, by its path."""

    def __init__(
        self, trace: Trace, row: dict[str, Any], code: ProcessCode, graph: ProcessGraph, times: ThreadTimes
    ) -> None:
        super().__init__(graph, times)
        self.path = WaypointPath(trace, row, code)
        self._counted: dict[Sought, Array] = {}
        self._event_places: dict[tuple[int, int], int] = {}
        # By index of the code's block, and a last one for none.
        self._index = np.append(find_rows(graph.block_id, code.block_id), NO_BLOCK)

    def prepare(self) -> Iterator[None]:
        return self.path.lay_waypoints()

    def state(self, position: int) -> ReplayState:
        position = self.settle(position)
        gap = self.find_gap(position)
        entry, walk, place, recent = self._come_to(position)
        time_ns = self.path.time_of(entry, walk)
        addresses = walk.open_calls()
        depth = int(walk.place()[0].depth)
        coming = np.zeros(0, np.uint32)
        if position < self.length and gap is None:
            coming = self._index[walk.read(COMING)].astype(np.int32).view(np.uint32)
            if len(coming) < COMING:
                coming = self.window(position, COMING).blocks
        block = int(coming[:1].view(np.int32)[0]) if len(coming) else NO_BLOCK
        kept = addresses[max(len(addresses) - MAX_CALLS, 0) :]
        calls = [
            OpenCall(caller, address) for caller, address in zip(self._find_callers(kept), kept.tolist(), strict=True)
        ]
        return ReplayState(
            position, block, place.instruction, time_ns, calls, max(depth - len(calls), 0), recent, coming, gap
        )

    def _come_to(self, position: int) -> tuple[Entry, StretchWalk, PathPlace, Array]:
        """A walk at a position, as the path has it, and the last blocks in front of it."""
        first = self._recent_start(position, RECENT)
        entry, walk, place = self.path.visit(first)
        indices = walk.read(position - first)
        # What happens in front of the next block is taken in.
        walk.skip(0, 0)
        places = self.path.stretches.file.places["block_executions"]
        is_there = place.execution + len(indices) == position and walk.stop == Stop.ASKED
        # Where the next stretch begins its checkpoint knows the time better.
        if is_there and entry.number == int(np.searchsorted(places, position, "right")):
            instructions = place.instruction + int(self.path.code.n_instructions[indices].sum())
            return entry, walk, PathPlace(position, instructions), self._index[indices].astype(np.int32).view(np.uint32)
        return *self.path.visit(position), self._recent(position, RECENT)

    def window(self, start: int, count: int) -> ReplayWindow:
        start = self.settle(start)
        count = min(count, MAX_WINDOW, self.length - start)
        gap = self.find_gap(start)
        if gap is not None:
            return ReplayWindow(start, np.zeros(0, np.uint32), int(gap["end"]))
        at = bisect_right(self._gap_starts, start)
        border = self._gap_starts[at] if at < len(self._gap_starts) else self.length
        count = max(min(count, border - start), 0)
        parts = [np.zeros(0, np.int64)]
        left = count
        if left:
            for piece in self.path.iter_pieces(start, min(left, _PIECE)):
                parts.append(self._index[piece.indices[:left]])
                left -= len(parts[-1])
                if left <= 0:
                    break
        blocks = np.concatenate(parts).astype(np.int32).view(np.uint32)
        behind = start + len(blocks)
        return ReplayWindow(start, blocks, self.step(behind, 1) if self.find_gap(behind) is not None else behind)

    def find_block(self, block: int, position: int, *, back: bool) -> int | None:
        block_id = int(self.graph.block_id[block])
        if back:
            found = self.path.find_before(block_id, position)
        else:
            found = self.path.find_behind(block_id, position + 1)
        return None if found is None else found.execution

    def find_time(self, time_ns: int) -> int:
        return self.settle(self.path.find_time(time_ns).execution)

    def find(self, what: Sought, position: int, *, back: bool) -> int | None:
        position = self.settle(position)
        if what == Sought.CALL:
            return self._find_call(position, back=back)
        return self._find_event(what, position, back=back)

    def _find_call(self, position: int, *, back: bool) -> int | None:
        calls = [EXIT_WORDS.index("call"), EXIT_WORDS.index("indirect_call")]
        is_call = np.append(np.isin(self.graph.exit_kind, calls), np.False_)[self._index]
        size, looked = 1 << 10, 0
        at = position if back else position + 1
        while looked < MAX_SOUGHT and (at > 0 if back else at < self.length):
            pieces = self.path.iter_pieces_back(at, size) if back else self.path.iter_pieces(at, size)
            piece = next(iter(pieces), None)
            if piece is None:
                return None
            hits = np.flatnonzero(is_call[piece.indices])
            if len(hits):
                return piece.place.execution + int(hits[-1] if back else hits[0])
            looked += len(piece.indices)
            at = piece.place.execution + (0 if back else len(piece.indices))
            size = min(size * 2, _PIECE)
        return None

    def _find_event(self, what: Sought, position: int, *, back: bool) -> int | None:
        stretches = self.path.stretches
        first = int(np.searchsorted(stretches.file.places["block_executions"], position, "right"))
        having = np.flatnonzero(self._n_sought(what))
        numbers = having[having <= first][::-1] if back else having[having >= first]
        for number in numbers.tolist():
            records = stretches.events(number)
            wanted = np.flatnonzero(self._is_sought(records, what))
            # Places rise with the events: those at hand are searched by halves.
            low, high = 0, len(wanted)
            while low < high:
                middle = (low + high) // 2
                at = self._event_position(what, number, int(wanted[middle]))
                if at < position or (at == position and not back):
                    low = middle + 1
                else:
                    high = middle
            chosen = low - 1 if back else low
            if 0 <= chosen < len(wanted):
                return self._event_position(what, number, int(wanted[chosen]))
        return None

    def find_system_call(self, number: int) -> int | None:
        before = np.cumsum(self._n_sought(Sought.SYSTEM_CALL))
        stretch = int(np.searchsorted(before, number, "right"))
        if number < 0 or stretch >= len(before):
            return None
        calls = np.flatnonzero(self._is_sought(self.path.stretches.events(stretch), Sought.SYSTEM_CALL))
        return self._event_position(Sought.SYSTEM_CALL, stretch, int(calls[number - int(before[stretch])]))

    def _n_sought(self, what: Sought) -> Array:
        """How many events (i64) that are looked for each stretch has; counted once."""
        if what not in self._counted:
            stretches = self.path.stretches
            found = [np.count_nonzero(self._is_sought(stretches.events(at), what)) for at in range(len(stretches))]
            self._counted[what] = np.array(found, np.int64)
        return self._counted[what]

    def _event_position(self, what: Sought, number: int, event: int) -> int:
        key = (number, event)
        if key not in self._event_places:
            if len(self._event_places) >= MAX_EVENT_PLACES:
                self._event_places.clear()
            self._event_places[key] = self.path.find_event_place(number, event).execution
        # A system call is told of behind the block that ends with it.
        return max(self._event_places[key] - (what == Sought.SYSTEM_CALL), 0)

    def _is_sought(self, records: Array, what: Sought) -> Array:
        if what == Sought.SYSTEM_CALL:
            found: Array = records["event_kind"] == PathEventKind.NOTE
            return found
        arrived = np.isin(records["value"], self._handlers)
        is_led: Array = (records["event_kind"] == PathEventKind.RESUME) & arrived
        return is_led

    @cached_property
    def _handlers(self) -> Array:
        """Addresses that signals and faults led to."""
        arrays = self.graph.arrays
        edges = arrays.is_kind("signal", "fault") & (self.graph.target >= 0)
        found: Array = np.unique(self.graph.app_pc[self.graph.target[edges]])
        return found

    def _find_callers(self, addresses: Array) -> list[int]:
        """Blocks that end where some calls return to; -1 where none does."""
        ends, order = self._ends
        if not len(ends):
            return [NO_BLOCK] * len(addresses)
        at = np.minimum(np.searchsorted(ends, addresses), len(ends) - 1)
        found: list[int] = np.where(ends[at] == addresses, order[at], NO_BLOCK).tolist()
        return found

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Addresses behind blocks that call, rising, and the blocks."""
        is_call = self.graph.arrays.ends_with("call", "indirect_call")[self.graph.block_row]
        calls = np.flatnonzero(is_call)
        ends = self.graph.app_pc[calls] + self.graph.size_bytes[calls].astype(np.uint64)
        order = np.argsort(ends, kind="stable")
        return ends[order], calls[order]
