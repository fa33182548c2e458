"""When a thread did what, as far as its trace tells: marks of time along the order, what has no order, ticks.

Runs in the controller. A position counts executions of blocks (mode full) or tags (mode region). Between two marks
positions are taken to go by evenly; inside of a gap nothing is known of the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from clew.analysis.order.ordered import Stretches, find_gaps
from clew.analysis.order.stretch_walk import StretchWalk
from clew.analysis.order.thread_path import ThreadPath
from clew.binary.path_codec import MOST
from clew.protocol._generated import GapReason, PathEventKind, TickKind
from clew.store.columns import Array
from clew.store.path_index import PathFacts

__all__ = ["GAP", "TICK", "ThreadTimes", "convert_tsc", "make_times", "read_path_times"]


GAP: Final = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("start", "<i8"),
        ("end", "<i8"),
        ("executions", "<i8"),
        ("reason", "<u1"),
    ]
)
"""Times and positions between which the order is not known, and how many executions of blocks were counted there."""

TICK: Final = np.dtype([("ns", "<i8"), ("kind", "<u1"), ("value", "<i8"), ("place", "<i8")])
"""Something that happened: the number of the signal or the system call; `place` is the number of the path's event (mode
full), the position (region), or -1."""

WALKED_EXECUTIONS: Final = 1 << 21
"""Of a thread so many are walked along to learn where its system calls lie; elsewhere its checkpoints tell enough."""
MAX_WALKED_EVENTS: Final = 1 << 13
MAX_STEPS: Final = 256
"""Blocks without a decision that are walked along to an event's own place; else it lies a little too early."""


@dataclass(frozen=True)
class ThreadTimes:
    """A thread: `mark_ns` and `mark`, times and positions (i64), both rising; `gaps` of dtype GAP and `ticks` of dtype
    TICK, in the order of time. `length` is how many positions there are."""

    length: int
    mark_ns: Array
    mark: Array
    gaps: Array
    ticks: Array

    def known_between(self, edges: Array) -> Array:
        """How much (f64) is known to have been done between each of some times (i64, rising) and the next, what lies in
        gaps left out. From the first time of all to the last it adds up to all that is known."""
        border = np.zeros(len(self.mark) + 1, np.int64)
        np.add.at(border, np.searchsorted(self.mark, self.gaps["start"]), 1)
        np.add.at(border, np.searchsorted(self.mark, self.gaps["end"]), -1)
        rises = np.where(np.cumsum(border)[: len(self.mark) - 1] > 0, 0, np.diff(self.mark))
        known = np.append(0, np.cumsum(rises)).astype(np.float64)
        # Numbers of nanoseconds since 1970 are too large for a double.
        at = (edges - self.mark_ns[0]).astype(np.float64)
        # What happened at the very first time lies behind it.
        at[:1] = np.nextafter(at[:1], -np.inf)
        found: Array = np.diff(np.interp(at, self.mark_ns - self.mark_ns[0], known))
        return found


def make_times(
    length: int, start_ns: int, end_ns: int, marks: Sequence[tuple[int, int]] | Array, gaps: Array, ticks: Array
) -> ThreadTimes:
    """What is told of a thread between two times; `marks` are pairs of a time and a position, in any order. The ends of
    gaps become marks."""
    pairs = np.asarray(marks, np.int64).reshape(-1, 2)
    ends = [np.stack([gaps[f"{end}_ns"], gaps[end]], axis=1).astype(np.int64) for end in ("start", "end")]
    pairs = np.concatenate([[[start_ns, 0]], pairs, *ends, [[max(end_ns, start_ns), length]]])
    pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
    # Clocks of processors may differ by a little, and a damaged trace may say anything.
    mark = np.clip(pairs[:, 1], 0, length)
    mark_ns = np.maximum.accumulate(np.clip(pairs[:, 0], start_ns, max(end_ns, start_ns)))
    return ThreadTimes(length, mark_ns, mark, gaps, ticks[np.argsort(ticks["ns"], kind="stable")])


def _iter_events(stretches: Stretches) -> Iterator[tuple[int, int, Array]]:
    """Events of a path: the number of each stretch, that of its first event, and its records."""
    first = 0
    for number in range(len(stretches)):
        records = stretches.events(number)
        yield number, first, records
        first += len(records)


def convert_tsc(facts: PathFacts, tsc: Array) -> Array:
    """Times (i64, nanoseconds since 1970) of a path's events."""
    ticks = tsc.astype(np.int64) - facts.tsc
    found: Array = facts.ns + (ticks * facts.ns_per_tick).astype(np.int64)
    return found


def read_path_times(path: ThreadPath, start_ns: int, end_ns: int) -> ThreadTimes:
    """What the path of a thread tells, which lived between two times. Raises TraceDamagedError."""
    stretches, facts = path.stretches, path.stretches.file.facts

    to_ns = partial(convert_tsc, facts)
    places = stretches.file.places
    marks = [np.stack([to_ns(places["tsc"]), places["block_executions"].astype(np.int64)], axis=1)]
    ticks = [np.zeros(0, TICK)]
    marks.append(_walk_marks(path, to_ns))
    known = np.concatenate([[[start_ns, 0]], *marks, [[end_ns, path.block_executions]]])
    known = known[np.lexsort((known[:, 0], known[:, 1]))]
    gaps: list[tuple[int, int, int, int, int, int]] = []
    for number, first, records in _iter_events(stretches):
        notes = np.flatnonzero(records["event_kind"] == PathEventKind.NOTE)
        found = np.zeros(len(notes), TICK)
        found["ns"], found["kind"] = to_ns(records["tsc"][notes]), TickKind.SYSTEM_CALL
        found["value"], found["place"] = records["value"][notes].astype(np.int64), first + notes
        ticks.append(found)
        lost = find_gaps(records)
        is_last = number + 1 == len(stretches)
        if (len(lost) and not is_last) or (is_last and facts.is_lost_at_end):
            reached = stretches[number].executions + _count_known(stretches, number)
            behind = path.block_executions if is_last else stretches[number + 1].executions
            until = end_ns if is_last else int(to_ns(places["tsc"][number : number + 1])[0])
            told_ns = to_ns(records["tsc"][: lost[0] + 1]) if len(lost) else np.append(to_ns(records["tsc"]), end_ns)
            since = _find_begin(known, reached, told_ns)
            is_thinned = facts.is_thinned_at_end if is_last else stretches[number + 1].is_thinned
            reason = GapReason.THINNED if is_thinned else GapReason.LOST
            gaps.append((since, max(until, since), reached, behind, behind - reached, reason))
    return make_times(
        path.block_executions, start_ns, end_ns, np.concatenate(marks), np.array(gaps, GAP), np.concatenate(ticks)
    )


def _count_known(stretches: Stretches, number: int) -> int:
    """How many executions of a stretch are known, up to what was lost."""
    return sum(stretches.open_entry(entry).skip()[1] for entry in stretches.entries(number))


def _find_begin(known: Array, reached: int, told_ns: Array) -> int:
    """When a loss began, which no record tells: behind the events before it, and no later than when it was told, which
    is when there was room again; the last of `told_ns` is that. Positions are taken to go by evenly until then."""
    zero = int(known[0, 0])
    evenly = zero + int(np.interp(reached, known[:, 1], (known[:, 0] - zero).astype(np.float64)))
    earliest = int(told_ns[-2]) if len(told_ns) > 1 else zero
    return min(max(evenly, earliest), int(told_ns[-1]))


def _walk_marks(path: ThreadPath, to_ns: Callable[[Array], Array]) -> Array:
    """Times and positions of events and samples, in the stretches that are the quickest to walk along."""
    stretches = path.stretches
    samples = stretches.file.samples
    ends = [*(stretch.executions for stretch in stretches), path.block_executions][1:]
    sizes = np.maximum(np.diff([0, *ends]), 0)
    order = np.argsort(sizes, kind="stable")
    walked = order[np.cumsum(sizes[order]) <= WALKED_EXECUTIONS]
    sampled_in = np.searchsorted(stretches.file.places["surprise_bytes"], samples["surprise_bytes"], "right")
    found: list[tuple[int, int]] = []
    for number in sorted(walked.tolist()):
        own, records = samples[sampled_in == number], stretches.events(number)
        lost = find_gaps(records)
        if len(lost):
            # It has the place where the loss began, and the time when it ended; samples behind that place have none.
            at, records = records[lost[0]], records[: lost[0]]
            is_before = own["surprise_bytes"] < at["surprise_bytes"]
            is_at = own["surprise_bytes"] == at["surprise_bytes"]
            own = own[is_before | (is_at & (own["decisions"] < at["decisions"]))]
        records = records[records["event_kind"] != PathEventKind.END]
        blocks = path.code.find(records["pc"])
        places = (records[name] for name in ("surprise_bytes", "decisions", "symbol_bytes", "depth"))
        none = np.full(len(own), -1)
        rows = [
            *_list_rows(*places, blocks, to_ns(records["tsc"])),
            *_list_rows(own["surprise_bytes"], own["decisions"], none, none, none, own["ns"]),
        ]
        if len(found) + len(rows) > MAX_WALKED_EVENTS:
            break
        entries = stretches.entries(number)
        walk, executions = stretches.open_entry(entries.pop(0)), stretches[number].executions
        for surprise_bytes, decisions, symbol_bytes, depth, block, ns in sorted(rows, key=_order_of):
            executions += walk.skip_until(surprise_bytes, decisions)[1]
            position = walk.place()[0]
            while (position.surprise_bytes, position.decisions) < (surprise_bytes, decisions) and entries:
                walk = stretches.open_entry(entries.pop(0))
                executions += walk.skip_until(surprise_bytes, decisions)[1]
                position = walk.place()[0]
            reached = executions
            if block >= 0:
                is_there, n_passed = _step_to(walk, (surprise_bytes, decisions, symbol_bytes, depth), block)
                executions += n_passed
                reached = executions if is_there else reached
            found.append((ns, reached))
    return np.array(found, np.int64).reshape(-1, 2)


def _order_of(row: tuple[int, ...]) -> tuple[int, int, int]:
    """Events and samples of a path follow each other so; where nothing is decided in between, by their times."""
    return row[0], row[1], row[-1]


def _step_to(walk: StretchWalk, place: tuple[int, int, int, int], block: int) -> tuple[bool, int]:
    """Go on by blocks that decide nothing up to the place of an event, in front of `block`: whether it was found, and
    how many were passed. `place` is bytes of surprises, decisions, bytes of symbols, depth."""
    for n_passed in range(MAX_STEPS):
        position, here = walk.place()
        at = position.surprise_bytes, position.decisions
        if (*at, position.symbol_bytes, position.depth) == place and here == block:
            return True, n_passed
        if at != place[:2] or not walk.skip(MOST, 1)[1]:
            return False, n_passed
    return False, MAX_STEPS


def _list_rows(*columns: Array) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))
