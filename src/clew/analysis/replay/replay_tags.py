"""A thread's tags (mode region) looked at place by place, as `clew.analysis.replay.replay` has it.

Runs in the controller. Tags tell no open calls. A tag that names no block, of a system call for one, is shown with the
block of the tag in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.replay.replay import (
    COMING,
    MAX_WINDOW,
    NO_BLOCK,
    RECENT,
    Replay,
    ReplayState,
    ReplayWindow,
    Sought,
)
from clew.analysis.replay.tag_threads import TagThreads
from clew.analysis.replay.thread_times import ThreadTimes
from clew.analysis.tables.arrays import find_rows
from clew.protocol._generated import TickKind
from clew.protocol.words import TAG_WORDS
from clew.store.columns import Array

__all__ = ["TagReplay"]

_EXECUTED: Final = TAG_WORDS.index("executed")
_COUNTS: Final = TAG_WORDS.index("counts")
_PIECE: Final = 1 << 15
_MAX_SOUGHT: Final = 1 << 23
_TICKS: Final = {
    Sought.SYSTEM_CALL: (TickKind.SYSTEM_CALL,),
    Sought.SIGNAL: (TickKind.SIGNAL, TickKind.FAULT),
}


class TagReplay(Replay):
    """A thread of a trace of mode region, by its tags."""

    def __init__(self, tags: TagThreads, tid: int, graph: ProcessGraph, times: ThreadTimes) -> None:
        super().__init__(graph, times)
        self._tags = tags
        self._tid = tid

    def prepare(self) -> Iterator[None]:
        return self._tags.prepare(self._tid)

    def state(self, position: int) -> ReplayState:
        position = self.settle(position)
        gap = self.find_gap(position)
        coming = np.zeros(0, np.uint32) if gap is not None else self.window(position, COMING).blocks
        recent = self._recent(position, RECENT)
        block = int(coming[:1].view(np.int32)[0]) if len(coming) else NO_BLOCK
        return ReplayState(position, block, None, self._time_at(position), None, 0, recent, coming, gap)

    def window(self, start: int, count: int) -> ReplayWindow:
        start = self.settle(start)
        gap = self.find_gap(start)
        if gap is not None:
            return ReplayWindow(start, np.zeros(0, np.uint32), int(gap["end"]))
        end = min(start + max(min(count, MAX_WINDOW), 0), self.length)
        later = self.gaps["start"][self.gaps["start"] >= start]
        end = min(end, int(later[0])) if len(later) else end
        behind = self.find_gap(end) if end < self.length else None
        blocks = self._blocks(self._tags.read(self._tid, start, end - start))
        following = end if behind is None else int(behind["end"])
        return ReplayWindow(start, blocks.astype(np.int32).view(np.uint32), following)

    def read_counts(self, gap: np.void, limit: int) -> list[tuple[int, int]]:
        """The blocks that were counted in a gap and how often, those most often first; at most `limit` of them."""
        tags = self._tags.read(self._tid, int(gap["start"]), int(gap["end"] - gap["start"]))
        tags = tags[tags["kind"] == _COUNTS]
        blocks, which = np.unique(find_rows(self.graph.block_id, tags["block"]), return_inverse=True)
        counts = np.zeros(len(blocks), np.int64)
        np.add.at(counts, which, np.maximum(tags["executions"], 0))
        order = np.lexsort((blocks, -counts))[:limit]
        return list(zip(blocks[order].tolist(), counts[order].tolist(), strict=True))

    def find_block(self, block: int, position: int, *, back: bool) -> int | None:
        wanted = int(self.graph.block_id[block])
        return self._find_tag(
            position, lambda tags: self._is_run(tags) & (tags["block"] == wanted), back=back, block_id=wanted
        )

    def find_time(self, time_ns: int) -> int:
        at = int(np.searchsorted(self.times.mark_ns, time_ns, "right")) - 1
        return self.settle(int(self.times.mark[at]) if at >= 0 else 0)

    def find_system_call(self, number: int) -> int | None:
        before = self._tags.read(self._tid, number - 1, 1) if number > 0 else self._tags.read(self._tid, 0, 0)
        # In front of the execution that made it, if that has a tag of its own.
        return self.settle(number - int(self._is_run(before).any()))

    def find(self, what: Sought, position: int, *, back: bool) -> int | None:
        if what == Sought.CALL:
            is_call = self.graph.arrays.ends_with("call", "indirect_call")[self.graph.block_row]
            calls = self.graph.block_id[is_call]
            return self._find_tag(position, lambda tags: self._is_run(tags) & np.isin(tags["block"], calls), back=back)
        places = self.times.ticks["place"][np.isin(self.times.ticks["kind"], _TICKS[what])]
        places = np.unique([self.settle(place) for place in places[places >= 0].tolist()])
        at = int(np.searchsorted(places, position, "left" if back else "right")) - back
        return int(places[at]) if 0 <= at < len(places) else None

    def _time_at(self, position: int) -> int:
        at = int(np.searchsorted(self.times.mark, position, "right")) - 1
        return int(self.times.mark_ns[max(at, 0)])

    @staticmethod
    def _is_run(tags: Array) -> Array:
        found: Array = tags["kind"] == _EXECUTED
        return found

    def _find_tag(
        self, position: int, is_wanted: Callable[[Array], Array], *, back: bool, block_id: int | None = None
    ) -> int | None:
        """The next position behind one, or the last before it, of a tag that is wanted; none in a gap. If it is one of
        `block_id`, what does not tell of this is not read."""
        at, looked = position if back else position + 1, 0
        while looked < _MAX_SOUGHT and (at > 0 if back else at < self.length):
            first = max(at - _PIECE, 0) if back else at
            count = at - first if back else min(_PIECE, self.length - at)
            if block_id is not None and not self._tags.may_tell_of(self._tid, first, count, block_id):
                looked, at = looked + count, first if back else first + count
                continue
            tags = self._tags.read(self._tid, first, count)
            places = first + np.flatnonzero(is_wanted(tags))
            places = places[self._is_outside(places)]
            if len(places):
                return int(places[-1] if back else places[0])
            looked += len(tags)
            at = first if back else first + max(len(tags), 1)
        return None

    def _is_outside(self, positions: Array) -> Array:
        if not len(self.gaps):
            return np.ones(len(positions), bool)
        at = np.searchsorted(self.gaps["start"], positions, "right") - 1
        found: Array = (at < 0) | (positions >= self.gaps["end"][at])
        return found

    def _blocks(self, tags: Array) -> Array:
        """Indices of the blocks of tags, NO_BLOCK where none is known."""
        blocks = find_rows(self.graph.block_id, tags["block"])
        # What happened between two blocks keeps the one before it in view.
        known = np.where(blocks >= 0, np.arange(len(blocks)), -1)
        last = np.maximum.accumulate(known) if len(known) else known
        found: Array = np.where(last >= 0, blocks[last], NO_BLOCK)
        return found
