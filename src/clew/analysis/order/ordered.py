"""The order in which a thread executed basic blocks, out of a trace of mode full.

Reads the stretches between checkpoints one by one: what is in memory does not grow with the length of a path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.analysis.order.changed_code import ChangedCode
from clew.analysis.order.path_code import ProcessCode
from clew.analysis.order.stretch_walk import StretchWalk
from clew.binary.path_codec import PathCode, PathStart, PathState, PathStreams, PathWalk
from clew.binary.path_segments import PathSegment, decode_segment
from clew.errors import TraceDamagedError
from clew.protocol._generated import PathEventKind, PathGap
from clew.protocol.codec import NOWHERE, Action
from clew.protocol.codec_layouts import EVENT, Position
from clew.store.path_file import PathFile
from clew.store.path_frames import FrameKind
from clew.store.path_index import PathFacts
from clew.store.path_segments import StoredSegment, sum_streams

__all__ = ["Entry", "PathSpan", "Stretch", "Stretches", "find_gaps", "is_at_same_position"]

Array = npt.NDArray[Any]

KEPT_PARTS: Final = 16
"""Parts of segments that are kept decoded: what is in them is read one after the other."""
KEPT_EVENTS: Final = 4
"""Stretches whose events are kept as the codec wants them: whoever looks around in one opens it again and again."""
KEPT_CODES: Final = 16
"""Tables of the code as it is at different places."""

_GAPS: Final = np.array([PathEventKind.LOST, PathEventKind.THINNED])

_POSITION: Final = ("surprise_bytes", "decisions", "symbol_bytes", "depth")


@dataclass(frozen=True)
class Stretch:
    """A part of a path that can be read by itself: from one checkpoint up to the next, or to the path's end.

    `instructions` and `executions` (of blocks) lie before it, by the thread's counters. `is_after_loss`: something is
    missing in front of it, lost or left out on purpose (`is_thinned`).
    """

    number: int
    instructions: int
    executions: int
    tsc: int
    is_after_loss: bool
    is_thinned: bool = False


@dataclass(frozen=True)
class Entry:
    """A place at which reading can begin: where part number `part` of stretch number `number` does, which has one part
    if it was not re-coded. `instructions` and `executions` (of blocks) lie before it."""

    number: int
    part: int
    instructions: int
    executions: int


@dataclass(frozen=True)
class PathSpan:
    """One or several stretches, or a part of one: from number `first` up to `end`; from `position`, where `start` and
    `code` are what a walk needs, up to `end_position`; with the events from `event_start` up to `event_end`.

    `end_head`: the checkpoint, or the event, in front of which it ends; None at the path's end.
    """

    first: int
    end: int
    code: PathCode
    start: PathStart
    position: Position
    end_position: Position
    event_start: int
    event_end: int
    end_head: np.void | None


@dataclass(frozen=True)
class _End:
    """How far streams are walked along; `is_lost`: up to something that was dropped."""

    surprise_bytes: int
    decisions: int
    symbol_bytes: int
    is_lost: bool


class Stretches:
    """The stretches of the path in `file`, whose code is `code`. Raises TraceDamagedError where it can't be read."""

    def __init__(self, code: ProcessCode, file: PathFile) -> None:
        self.code = code
        self.file = file
        self._decode = lru_cache(KEPT_PARTS)(self._decode_part)
        self._changed_by = lru_cache(KEPT_CODES)(self._change_code)
        self._converted = lru_cache(KEPT_EVENTS)(self._read_converted)

    def __len__(self) -> int:
        return len(self.file.places) + 1

    def __getitem__(self, number: int) -> Stretch:
        if not 0 <= number < len(self):
            raise IndexError(number)
        if number == 0:
            return Stretch(0, 0, 0, 0, False)
        place = self.file.places[number - 1]
        instructions, executions, tsc = (int(place[name]) for name in ("instructions", "block_executions", "tsc"))
        loss = int(place["is_after_loss"])
        return Stretch(number, instructions, executions, tsc, bool(loss), loss == PathGap.LEFT_OUT)

    def __iter__(self) -> Iterator[Stretch]:
        return (self[number] for number in range(len(self)))

    def _changed(self, before: int) -> PathCode:
        """The code as it is in front of event number `before`."""
        return self._changed_by(int(np.searchsorted(self.file.states["event"], before)))

    def _change_code(self, n_states: int) -> PathCode:
        return PathCode(self._changed_code.at(n_states), self.code.code.targets)

    @cached_property
    def _changed_code(self) -> ChangedCode:
        return ChangedCode(self.code, self.file.states)

    def events(self, number: int) -> Array:
        """The events of a stretch, of dtype PATH_EVENT_RECORD."""
        places, facts = self.file.places, self.file.facts
        start = int(places[number - 1]["events"]) if number else 0
        return self.file.read_events(start, int(places[number]["events"]) if number < len(places) else facts.events)

    def span(self, first: int, end: int) -> PathSpan:
        """The stretches from number `first` up to `end`, without their streams."""
        facts, places = self.file.facts, self.file.places
        event_start, start, position = 0, PathStart(), Position(0, 0, 0, 0)
        if first:
            checkpoint = self.file.read_checkpoint(first - 1)
            event_start, start, position = self._begin(checkpoint.head, checkpoint.calls)
        if end <= len(places):
            end_head = self.file.read_checkpoint(end - 1).head
            end_position, event_end = _position_of(end_head), int(end_head["events"])
        else:
            end_head = None
            end_position = Position(facts.surprise_bytes, facts.decisions, facts.symbol_bytes, 0)
            event_end = facts.events
        code = self._changed(event_start)
        return PathSpan(first, end, code, start, position, end_position, event_start, event_end, end_head)

    def _span_of(self, segment: StoredSegment, part: int) -> PathSpan:
        """A part of a segment, without its streams."""
        if not 0 < segment.n_stretches <= len(self) - segment.first:
            raise self.damage(segment.first)
        span = self.span(segment.first, segment.end)
        if part > 0:
            event_start, start, position = self._begin(segment.parts[part].head, segment.parts[part].calls)
            code = self._changed(event_start)
            span = replace(span, code=code, start=start, position=position, event_start=event_start)
        if part + 1 < len(segment.parts):
            head = segment.parts[part + 1].head
            span = replace(span, end_position=_position_of(head), event_end=int(head["events"]), end_head=head)
        return span

    def _begin(self, head: np.void, calls: Array) -> tuple[int, PathStart, Position]:
        """The events before a checkpoint, or the start of a part, and where it is."""
        forgotten = max(int(head["depth"]) - len(calls), 0)
        block = int(self.code.find(np.array([head["pc"]], np.uint64))[0])
        return int(head["events"]), PathStart(block, calls, self.code.find(calls), forgotten), _position_of(head)

    def entries(self, number: int) -> list[Entry]:
        """The places of a stretch at which reading can begin, in the order of the path."""
        stretch = self[number]
        entries = [Entry(number, 0, stretch.instructions, stretch.executions)]
        segment = self.file.find_segment(number)
        if segment is not None:
            executions = stretch.executions
            for part, (before, here) in enumerate(pairwise(segment.parts), 1):
                executions += before.n_blocks
                instructions = stretch.instructions + int(here.head["instructions"])
                entries.append(Entry(number, part, instructions, executions))
        return entries

    def count_in_parts(self, number: int, block: int) -> Array:
        """How often (i64) a block, by its index, was executed behind each of the entries of a stretch but the last, up
        to the next one."""
        segment = self.file.find_segment(number)
        return np.zeros(0, np.int64) if segment is None else segment.count(block)

    def open(self, number: int, until: int | None = None) -> StretchWalk:
        """A walk along a stretch, from its beginning; up to its event `until` if one is named."""
        span = self.span(number, number + 1)
        records = None
        if until is not None:
            records = self.file.read_events(span.event_start, span.event_end)
            span, records = replace(span, end_head=records[until]), records[:until]
        return StretchWalk(self.code, self.open_span(span, self._read_streams(span), records))

    def open_entry(self, entry: Entry) -> StretchWalk:
        """A walk from an entry up to the next one of its stretch, or to the stretch's end."""
        return StretchWalk(self.code, self.open_span(*self.span_of(entry)))

    def span_of(self, entry: Entry) -> tuple[PathSpan, tuple[bytes, bytes]]:
        """What a walk from an entry goes along, and its surprises and symbols."""
        segment = self.file.find_segment(entry.number)
        if segment is None or len(segment.parts) == 1:
            span = self.span(entry.number, entry.number + 1)
            return span, self._read_streams(span)
        return self._span_of(segment, entry.part), self._decode(segment.first, entry.part)[1:]

    def span_behind(
        self, span: PathSpan, streams: tuple[bytes, bytes], state: PathState, event_start: int
    ) -> tuple[PathSpan, tuple[bytes, bytes]]:
        """What is left of `span`, whose surprises and symbols are `streams`, behind where a walk was in `state` and
        came to event number `event_start` next; the state's blocks and events are not looked at."""
        position = state.position
        start = PathStart(state.block, state.addresses, state.numbers, state.forgotten)
        code = self._changed(event_start)
        left = replace(span, code=code, start=start, position=position, event_start=event_start)
        return left, (
            streams[0][position.surprise_bytes - span.position.surprise_bytes :],
            streams[1][position.symbol_bytes - span.position.symbol_bytes :],
        )

    def open_span(self, span: PathSpan, streams: tuple[bytes, bytes], records: Array | None = None) -> PathWalk:
        """A walk along several stretches at once, whose surprises and symbols are `streams`."""
        events, _, end = self._convert(span, records)
        if span.end_head is not None and not end.is_lost:
            events = np.append(events, self._end_at(span.end_head))
        surprises, symbols = streams
        n_surprises = max(end.surprise_bytes - span.position.surprise_bytes, 0)
        # Of what is missing it is not known how much was done behind the last surprise that is there.
        is_whole = len(surprises) >= n_surprises
        return PathWalk(
            span.code,
            PathStreams(
                surprises=surprises[:n_surprises],
                symbols=symbols[: max(end.symbol_bytes - span.position.symbol_bytes, 0)],
                events=events,
                decisions=end.decisions if is_whole else 0,
                surprise_bytes_before=span.position.surprise_bytes,
                symbol_bytes_before=span.position.symbol_bytes,
                decisions_before=span.position.decisions,
            ),
            span.start,
        )

    def find_event(self, span: PathSpan, n_passed: int) -> int:
        """The number of the event that comes next on a walk along `span` that has passed so many."""
        numbers = self.number_events(span)
        return int(numbers[min(n_passed, len(numbers) - 1)])

    def number_events(self, span: PathSpan) -> Array:
        """The numbers (i64) of the events that come one after the other on a walk along `span`, and of what is behind
        them."""
        return self._convert(span)[1]

    def _convert(self, span: PathSpan, records: Array | None = None) -> tuple[Array, Array, _End]:
        """The events of some stretches, or `records` of them, as the codec wants them, and how far they reach; the
        number of each, and that of what comes behind them."""
        is_last = span.end_head is None
        if records is None:
            events, numbers, lost = self._converted(span.event_start, span.event_end, is_last)
        else:
            events, numbers, lost = self._convert_records(records, span.event_start, is_last)
        if lost is not None:
            return events, numbers, lost
        end = span.end_position
        return events, numbers, _End(end.surprise_bytes, end.decisions, end.symbol_bytes, is_lost=False)

    def _read_converted(self, start: int, end: int, is_last: bool) -> tuple[Array, Array, _End | None]:
        """As `_convert_records`, of the events from number `start` up to `end`; kept, so nobody may change them."""
        events, numbers, lost = self._convert_records(self.file.read_events(start, end), start, is_last)
        events.setflags(write=False)
        numbers.setflags(write=False)
        return events, numbers, lost

    def _convert_records(self, records: Array, start: int, is_last: bool) -> tuple[Array, Array, _End | None]:
        """Events from number `start` on as the codec wants them; the number of each, and that of what comes behind
        them; and where something is missing, in front of which they end. `is_last`: the path ends with them."""
        gaps = find_gaps(records)
        n, lost = int(gaps[0]) if len(gaps) else len(records), None
        is_end = records["event_kind"] == PathEventKind.END
        if n and is_end[n - 1]:
            # A call that was to end the thread may have been refused: then it goes on.
            is_at_gap = len(gaps) and is_at_same_position(records[n - 1], records[n])
            is_end[n - 1] = not (is_at_gap or (is_last and _is_at_end(records[n - 1], self.file.facts)))
        if len(gaps):
            at = records[n]
            lost = _End(int(at["surprise_bytes"]), int(at["decisions"]), int(at["symbol_bytes"]), is_lost=True)
        kept = np.flatnonzero(~is_end[:n])
        events, sources = self.code.convert_events(records[kept], self._changed(start).blocks)
        return events, start + np.append(kept[sources], n), lost

    def read_streams(self, number: int) -> tuple[bytes, bytes]:
        """The surprises and the symbols of a stretch, as far as they are there."""
        return self._read_streams(self.span(number, number + 1))

    def _read_streams(self, span: PathSpan) -> tuple[bytes, bytes]:
        """The surprises and the symbols of one stretch."""
        start, end = span.position, span.end_position
        segment = self.file.find_segment(span.first)
        if segment is None:
            return (
                self.file.read_bytes(FrameKind.SURPRISES, start.surprise_bytes, end.surprise_bytes),
                self.file.read_bytes(FrameKind.SYMBOLS, start.symbol_bytes, end.symbol_bytes),
            )
        parts = [self._decode(segment.first, part) for part in range(len(segment.parts))]
        whole = parts[0][0]
        surprises, symbols = (b"".join(part[stream] for part in parts) for stream in (1, 2))
        return (
            _cut(surprises, whole.surprise_bytes, start.surprise_bytes, end.surprise_bytes),
            _cut(symbols, whole.symbol_bytes, start.symbol_bytes, end.symbol_bytes),
        )

    def _decode_part(self, number: int, part: int) -> tuple[Position, bytes, bytes]:
        """Where a part of the segment begins that stretch `number` is in, and its surprises and symbols."""
        segment = self.file.find_segment(number)
        assert segment is not None
        span, stored = self._span_of(segment, part), segment.parts[part]
        start, end = span.position, span.end_position
        sizes = (end.surprise_bytes - start.surprise_bytes, end.symbol_bytes - start.symbol_bytes)
        if sizes != stored.sizes:
            raise self.damage(number)
        walk = span.start
        state = PathState(span.code.blocks, walk.addresses, walk.blocks, walk.forgotten, walk.block, start, 0)
        coded = np.frombuffer(stored.coded, np.uint8)
        try:
            found = decode_segment(
                state, span.code.targets, self._convert(span)[0], PathSegment(coded, stored.n_blocks, 0, *sizes)
            )
        except ValueError as error:
            raise self.damage(number) from error
        surprises, symbols = found[0].tobytes(), found[1].tobytes()
        if sum_streams(surprises, symbols) != int(stored.head["checksum"]):
            raise self.damage(number)
        return start, surprises, symbols

    def _end_at(self, head: np.void) -> Array:
        """An event that ends a walk at a checkpoint."""
        event = np.zeros(1, EVENT)
        for name in _POSITION:
            event[name] = head[name]
        event["block"], event["value"] = self.code.find(np.array([head["pc"]], np.uint64)), NOWHERE
        event["action"] = Action.END
        return event

    def damage(self, number: int) -> TraceDamagedError:
        """What to raise where a stretch ends too soon."""
        return TraceDamagedError(self.file.path.parent.parent, f"{self.file.name}: stretch {number} contradicts itself")


def _position_of(head: np.void) -> Position:
    return Position(*(int(head[name]) for name in _POSITION))


def _is_at_end(record: np.void, facts: PathFacts) -> bool:
    names = ("surprise_bytes", "decisions", "symbol_bytes")
    return all(int(record[name]) == getattr(facts, name) for name in names)


def _cut(data: bytes, first: int, start: int, end: int) -> bytes:
    """From byte `start` up to `end` of a stream that `data` has from byte `first` on."""
    return data[max(start - first, 0) : max(end - first, 0)]


def is_at_same_position(a: np.void, b: np.void) -> bool:
    """Whether two events lie at one position of their path."""
    return all(a[name] == b[name] for name in _POSITION)


def find_gaps(records: Array) -> Array:
    """Which of a path's events (indices) say that what follows is missing: lost, or left out."""
    found: Array = np.flatnonzero(np.isin(records["event_kind"], _GAPS))
    return found
