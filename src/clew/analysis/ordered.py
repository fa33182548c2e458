"""The order in which a thread executed basic blocks, out of a trace of mode full.

Reads the stretches between checkpoints one by one: what is in memory does not grow with the length of a path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.analysis.path_code import ProcessCode
from clew.binary.path_codec import EVENT, MOST, NOWHERE, Action, PathCode, PathStart, PathStreams, PathWalk, Stop
from clew.errors import TraceDamagedError
from clew.protocol._generated import PathEventKind
from clew.store.path_file import PathFile
from clew.store.path_frames import FrameKind
from clew.store.path_index import PathFacts

__all__ = ["Stretch", "StretchWalk", "Stretches"]

Array = npt.NDArray[Any]

BLOCKS_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True)
class Stretch:
    """A part of a path that can be read by itself: from one checkpoint up to the next, or to the path's end.

    `instructions` and `executions` (of blocks) lie before it, by the thread's counters. `is_after_loss`: something is
    missing in front of it.
    """

    number: int
    instructions: int
    executions: int
    tsc: int
    is_after_loss: bool


class StretchWalk:
    """A walk along one stretch. `walk` and `advance` are the codec's."""

    def __init__(self, code: ProcessCode, walk: PathWalk) -> None:
        self.code = code
        self._walk = walk

    @property
    def stop(self) -> Stop:
        """Why it can't go on; ASKED while it can."""
        return self._walk.stop

    def read(self, n: int) -> Array:
        """The next blocks executed, indices (u32), at most `n`."""
        return self._walk.walk(n)

    def skip(self, instructions: int = MOST, executions: int = MOST) -> tuple[int, int]:
        """Go on by whole blocks, at most so many, of no more than `instructions`: how many of both were executed."""
        return self._walk.advance(instructions, executions)

    def open_calls(self) -> Array:
        """Return addresses (u64) of the open calls, the outermost first, without those that were forgotten."""
        return self._walk.state().addresses


class Stretches:
    """The stretches of the path in `file`, whose code is `code`. Raises TraceDamagedError where it can't be read."""

    def __init__(self, code: ProcessCode, file: PathFile) -> None:
        self.code = code
        self.file = file

    def __len__(self) -> int:
        return len(self.file.places) + 1

    def __getitem__(self, number: int) -> Stretch:
        if not 0 <= number < len(self):
            raise IndexError(number)
        if number == 0:
            return Stretch(0, 0, 0, 0, False)
        place = self.file.places[number - 1]
        instructions, executions, tsc = (int(place[name]) for name in ("instructions", "block_executions", "tsc"))
        return Stretch(number, instructions, executions, tsc, bool(place["is_after_loss"]))

    def __iter__(self) -> Iterator[Stretch]:
        return (self[number] for number in range(len(self)))

    def _changed(self, before: int) -> PathCode:
        """The code as it is in front of event number `before`."""
        states = self.file.states
        states = states[: np.searchsorted(states["event"], before)]
        lost = np.flatnonzero(states["kind"] == PathEventKind.LOST)
        # Behind a loss the path tells all anew.
        states = states[lost[-1] + 1 :] if len(lost) else states
        blocks = self.code.code.blocks.copy()
        for state in states:
            self.code.change(blocks, int(state["kind"]), int(state["value"]))
        return PathCode(blocks, self.code.code.targets)

    def events(self, number: int) -> Array:
        """The events of a stretch, of dtype PATH_EVENT_RECORD."""
        places, facts = self.file.places, self.file.facts
        start = int(places[number - 1]["events"]) if number else 0
        return self.file.read_events(start, int(places[number]["events"]) if number < len(places) else facts.events)

    def open(self, number: int, until: int | None = None) -> StretchWalk:
        """A walk along a stretch, from its beginning; up to its event `until` if one is named."""
        facts, places = self.file.facts, self.file.places
        event_start, start = 0, PathStart()
        before = {"surprise_bytes": 0, "decisions": 0, "symbol_bytes": 0}
        if number:
            checkpoint = self.file.read_checkpoint(number - 1)
            head = checkpoint.head
            before = {name: int(head[name]) for name in before}
            event_start = int(head["events"])
            forgotten = max(int(head["depth"]) - len(checkpoint.calls), 0)
            block = int(self.code.find(np.array([head["pc"]], np.uint64))[0])
            start = PathStart(block, checkpoint.calls, self.code.find(checkpoint.calls), forgotten)
        code = self._changed(event_start)

        if number < len(places):
            end = self.file.read_checkpoint(number).head
            surprise_end, symbol_end, event_end = (
                int(end[name]) for name in ("surprise_bytes", "symbol_bytes", "events")
            )
            decisions = int(end["decisions"])
        else:
            end = None
            surprise_end, symbol_end, event_end = facts.surprise_bytes, facts.symbol_bytes, facts.events
            decisions = facts.decisions
        records = self.file.read_events(event_start, event_end)
        if until is not None:
            end, records = records[until], records[:until]
        is_end = records["event_kind"] == PathEventKind.END
        if until is None and is_end.any():
            # A call that was to end the thread may have been refused: then it goes on.
            is_end[-1] &= not (number == len(places) and _is_at_end(records[-1], facts))
            records = records[~is_end]
        lost = np.flatnonzero(records["event_kind"] == PathEventKind.LOST)
        events = self.code.convert_events(records[: lost[0]] if len(lost) else records, code.blocks)
        if len(lost):
            at = records[lost[0]]
            surprise_end, decisions, symbol_end = (int(at[name]) for name in before)
        elif end is not None:
            events = np.append(events, self._end_at(end))
        streams = PathStreams(
            surprises=self.file.read_bytes(FrameKind.SURPRISES, before["surprise_bytes"], surprise_end),
            symbols=self.file.read_bytes(FrameKind.SYMBOLS, before["symbol_bytes"], symbol_end),
            events=events,
            decisions=decisions,
            surprise_bytes_before=before["surprise_bytes"],
            symbol_bytes_before=before["symbol_bytes"],
            decisions_before=before["decisions"],
        )
        return StretchWalk(self.code, PathWalk(code, streams, start))

    def _end_at(self, head: np.void) -> Array:
        """An event that ends a walk at a checkpoint."""
        event = np.zeros(1, EVENT)
        for name in ("surprise_bytes", "decisions", "symbol_bytes", "depth"):
            event[name] = head[name]
        event["block"], event["value"] = self.code.find(np.array([head["pc"]], np.uint64)), NOWHERE
        event["action"] = Action.END
        return event

    def damage(self, number: int) -> TraceDamagedError:
        """What to raise where a stretch ends too soon."""
        return TraceDamagedError(self.file.path.parent.parent, f"{self.file.name}: stretch {number} contradicts itself")


def _is_at_end(record: np.void, facts: PathFacts) -> bool:
    names = ("surprise_bytes", "decisions", "symbol_bytes")
    return all(int(record[name]) == getattr(facts, name) for name in names)
