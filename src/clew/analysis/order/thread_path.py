"""The order of execution of one thread: any part of it as arrays, forwards from any place.

Reads the trace's path file, whose stretches can be read by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clew.analysis.order.ordered import Entry, Stretches
from clew.analysis.order.path_code import ProcessCode
from clew.analysis.order.stretch_walk import StretchWalk
from clew.binary.path_codec import MOST
from clew.errors import TraceDamagedError
from clew.protocol._generated import MAX_COUNTER_BYTES, PathEventKind
from clew.protocol.codec import Stop
from clew.store.columns import to_numpy
from clew.store.path_file import PathFile

if TYPE_CHECKING:
    from clew.store.trace import Trace

__all__ = ["PathPiece", "PathPlace", "ThreadPath"]

Array = npt.NDArray[Any]

PIECE_BLOCKS = 1 << 16
_MAX_COUNTERS = MAX_COUNTER_BYTES // 8
"""No thread has more: a table that was made up may say so."""


@dataclass(frozen=True)
class PathPlace:
    """A place between two executions of blocks: so many of them, and of instructions, lie before it."""

    execution: int
    instruction: int


@dataclass(frozen=True)
class PathPiece:
    """Blocks executed one after the other, from `place` on; `block_ids` are theirs (i64). `is_after_loss`: what lies
    between the piece before and this one was not recorded: lost, or left out on purpose (`is_thinned`)."""

    place: PathPlace
    block_ids: Array
    indices: Array
    is_after_loss: bool
    is_thinned: bool = False


class ThreadPath:
    """The path of one thread of a trace of mode full. Iterating gives the ids of the blocks executed.

    Numbers of executions and instructions count from 0. What was lost is counted, too, so that numbers are true behind
    it. Every method raises TraceDamagedError where the path can't be read.
    """

    def __init__(self, trace: Trace, row: dict[str, Any], code: ProcessCode) -> None:
        self._trace = trace
        self.code = code
        self.pid: int = row["pid"]
        self.tid: int = row["tid"]
        self.process_id: int = row["process_id"]
        self.instructions: int = row["instructions"]
        """Executed in all."""
        self.block_executions: int = row["block_executions"]
        """Executions of blocks, in all."""
        self.stored_bytes: int = row["stored_bytes"]
        self.stretches = Stretches(code, PathFile(trace.directory, row["file"]))

    def __iter__(self) -> Iterator[int]:
        for piece in self.iter_pieces():
            yield from piece.block_ids.tolist()

    def __reversed__(self) -> Iterator[int]:
        for piece in self.iter_pieces_back():
            yield from piece.block_ids[::-1].tolist()

    def blocks(self, start: int = 0, count: int | None = None) -> Array:
        """Ids (i64) of the blocks executed from number `start` on: at most `count`, and none behind a loss."""
        wanted = self.block_executions if count is None else count
        parts = [np.zeros(0, np.int64)]
        for piece in self.iter_pieces(start, min(wanted, PIECE_BLOCKS)):
            if wanted <= 0 or (piece.is_after_loss and len(parts) > 1):
                break
            parts.append(piece.block_ids[:wanted])
            wanted -= len(parts[-1])
            if wanted <= 0:
                break
        return np.concatenate(parts)

    def iter_pieces(self, start: int = 0, at_once: int = PIECE_BLOCKS) -> Iterator[PathPiece]:
        """The path from execution number `start` on, some blocks at a time."""
        entry, walk, place = self._go_to(execution=start)
        return self._iter_from(entry, walk, place, max(at_once, 1))

    def iter_pieces_back(self, end: int | None = None, at_once: int = PIECE_BLOCKS) -> Iterator[PathPiece]:
        """The path in front of execution number `end`, or all of it, from the last piece to the first; what is in a
        piece is in the order of the path."""
        end = self.block_executions if end is None else min(end, self.block_executions)
        while end > 0:
            start = max(end - max(at_once, 1), 0)
            found = []
            for piece in self.iter_pieces(start, end - start):
                n = end - piece.place.execution
                if n <= 0:
                    break
                found.append(replace(piece, block_ids=piece.block_ids[:n], indices=piece.indices[:n]))
            yield from reversed(found)
            end = start

    def _iter_from(self, entry: Entry, walk: StretchWalk, place: PathPlace, at_once: int) -> Iterator[PathPiece]:
        """The path from `place` on, which `walk` along what is behind `entry` has come to."""
        entries = self.stretches.entries(entry.number)[entry.part + 1 :]
        is_after_loss = is_thinned = False
        while True:
            indices = walk.read(at_once)
            if len(indices):
                yield PathPiece(place, self.code.block_id[indices], indices, is_after_loss, is_thinned)
                is_after_loss = is_thinned = False
                sizes = int(self.code.n_instructions[indices].sum())
                place = PathPlace(place.execution + len(indices), place.instruction + sizes)
            if walk.stop == Stop.ASKED:
                continue
            self._check_end(entry, walk, is_last=not entries)
            if not entries:
                number = entry.number + 1
                if number >= len(self.stretches):
                    return
                entries = self.stretches.entries(number)
                is_after_loss |= self.stretches[number].is_after_loss
                is_thinned |= self.stretches[number].is_thinned
            entry = entries.pop(0)
            walk, place = self.stretches.open_entry(entry), PathPlace(entry.executions, entry.instructions)

    def find_instruction(self, number: int) -> PathPlace:
        """The place in front of the block whose execution has instruction number `number`."""
        return self._go_to(instruction=number)[2]

    def find_time(self, time_ns: int) -> PathPlace:
        """A place at or before `time_ns` (CLOCK_REALTIME): of the last call, signal, checkpoint or sample by then."""
        facts, places = self.stretches.file.facts, self.stretches.file.places
        ticks = (time_ns - facts.ns) / facts.ns_per_tick if facts.ns_per_tick > 0 else 0.0
        tsc = facts.tsc + int(ticks)
        number = int(np.searchsorted(places["tsc"], max(tsc, 0), "right"))
        stretch = self.stretches[number]
        place = PathPlace(stretch.executions, stretch.instructions)
        passed = np.flatnonzero(self.stretches.events(number)["tsc"] <= max(tsc, 0))
        if len(passed):
            place = self.find_event_place(number, int(passed[-1]))
        samples = self.stretches.file.samples
        n_samples = int(np.searchsorted(samples["ns"], max(time_ns, 0), "right"))
        return self._go_until(samples[n_samples - 1], place, number) if n_samples else place

    def find_event_place(self, number: int, event: int) -> PathPlace:
        """The place of event number `event` of stretch `number`: in front of the block that it is told of."""
        stretch = self.stretches[number]
        instructions, executions = self.stretches.open(number, event).skip()
        return PathPlace(stretch.executions + executions, stretch.instructions + instructions)

    def _go_until(self, sample: np.void, place: PathPlace, number: int) -> PathPlace:
        """The place that a sample tells of, if it lies behind `place`, which is in stretch `number` as well."""
        entry, walk, place = self._go_to(execution=place.execution)
        entries = self.stretches.entries(number)[entry.part + 1 :] if entry.number == number else []
        while True:
            skipped = walk.skip_until(int(sample["surprise_bytes"]), int(sample["decisions"]))
            place = PathPlace(place.execution + skipped[1], place.instruction + skipped[0])
            if walk.stop == Stop.ASKED or not entries:
                return place
            entry = entries.pop(0)
            walk = self.stretches.open_entry(entry)

    def find_execution(self, block_id: int, n: int) -> PathPlace | None:
        """The place in front of the `n`-th execution of a block, counted from 0; None if there were not so many."""
        wanted = np.flatnonzero(self.code.block_id == block_id)
        if not len(wanted) or n < 0:
            return None
        before = self.count_before(block_id)
        number = int(np.searchsorted(before, n, "right")) - 1
        left = n - int(before[number])
        entries = self.stretches.entries(number)
        in_parts = np.cumsum(self.stretches.count_in_parts(number, int(wanted[0])))[: len(entries) - 1]
        part = int(np.searchsorted(in_parts, left, "right"))
        left -= int(in_parts[part - 1]) if part else 0
        entries = entries[part:]
        while entries:
            entry = entries.pop(0)
            walk = self.stretches.open_entry(entry)
            instructions, executions, hits = walk.skip_to(int(wanted[0]), left)
            if walk.stop == Stop.ASKED:
                return PathPlace(entry.executions + executions, entry.instructions + instructions)
            self._check_end(entry, walk, is_last=not entries)
            left -= hits
            # Counters may tell of more than the path.
            if not entries and entry.number + 1 < len(self.stretches):
                entries = self.stretches.entries(entry.number + 1)
        return None

    def find_next(self, pc: int, start: int = 0) -> PathPlace | None:
        """The place in front of the first execution, from number `start` on, of a block that holds address `pc`; None
        if there is none."""
        found = (self.find_execution(block, self.count_executions(block, start)) for block in self._blocks_with(pc))
        return min((place for place in found if place is not None), key=_execution_of, default=None)

    def find_previous(self, pc: int, end: int | None = None) -> PathPlace | None:
        """The place in front of the last execution, before number `end` if that is said, of a block that holds address
        `pc`; None if there is none."""
        end = self.block_executions if end is None else end
        found = (self.find_execution(block, self.count_executions(block, end) - 1) for block in self._blocks_with(pc))
        return max((place for place in found if place is not None), key=_execution_of, default=None)

    def count_executions(self, block_id: int, end: int) -> int:
        """How often a block was executed in front of execution number `end`."""
        wanted = np.flatnonzero(self.code.block_id == block_id)
        if not len(wanted) or end <= 0:
            return 0
        places = self.stretches.file.places
        number = int(np.searchsorted(places["block_executions"], end, "right"))
        entries = self.stretches.entries(number)
        part = max((at for at, entry in enumerate(entries) if entry.executions <= end), default=0)
        in_parts = self.stretches.count_in_parts(number, int(wanted[0]))[:part]
        walk = self.stretches.open_entry(entries[part])
        inside = walk.count(int(wanted[0]), max(end - entries[part].executions, 0))
        return int(self.count_before(block_id)[number]) + int(in_parts.sum()) + inside

    def _blocks_with(self, pc: int) -> list[int]:
        """Ids of the blocks that hold an address."""
        blocks = self.code.code.blocks[: len(self.code)]
        holding = (blocks["pc"] <= pc) & (blocks["end_pc"] > pc)
        ids: list[int] = self.code.block_id[holding].tolist()
        return ids

    def count_before(self, block_id: int) -> Array:
        """How often (i64) a block was executed before each stretch."""
        weights = self._weights_of(block_id)
        rises = self.stretches.file.find_rises(weights != 0)
        in_stretch = np.zeros(len(self.stretches) + 1, np.int64)
        np.add.at(in_stretch, rises.checkpoint + 1, rises.rise.astype(np.int64) * weights[rises.index])
        before: Array = np.cumsum(in_stretch)[: len(self.stretches)]
        return before

    def calls_at(self, place: PathPlace) -> Array:
        """Return addresses (u64) of the calls open at a place, the outermost first; at most 2^18 are known."""
        return self._go_to(execution=place.execution)[1].open_calls()

    def time_at(self, place: PathPlace) -> int:
        """A time (CLOCK_REALTIME, ns) at which the thread was not yet further than a place: that of the last call,
        signal, checkpoint or sample in front of it. A sample's may be some microseconds late."""
        entry, walk, _ = self._go_to(execution=place.execution)
        return self._time_of(entry, walk)

    def _time_of(self, entry: Entry, walk: StretchWalk) -> int:
        facts, samples = self.stretches.file.facts, self.stretches.file.samples
        events = self.stretches.events(entry.number)
        tsc = self.stretches[entry.number].tsc if entry.number else facts.tsc
        are_passed = self._are_passed(events, walk)
        if are_passed.any():
            tsc = max(tsc, int(events["tsc"][are_passed][-1]))
        position, _ = walk.place()
        is_behind = samples["surprise_bytes"] < position.surprise_bytes
        is_behind |= (samples["surprise_bytes"] == position.surprise_bytes) & (
            samples["decisions"] <= position.decisions
        )
        sampled_ns = int(samples["ns"][is_behind].max(initial=0))
        # Not as late as what comes next, or ended it.
        if not are_passed.all():
            sampled_ns = min(sampled_ns, self._to_ns(int(events["tsc"][~are_passed][0])) - 1000)
        elif entry.number + 1 < len(self.stretches):
            sampled_ns = min(sampled_ns, self._to_ns(self.stretches[entry.number + 1].tsc) - 1000)
        elif len(events) and events["event_kind"][-1] == PathEventKind.END:
            sampled_ns = min(sampled_ns, self._to_ns(int(events["tsc"][-1])))
        return max(self._to_ns(tsc), sampled_ns)

    def _to_ns(self, tsc: int) -> int:
        facts = self.stretches.file.facts
        return facts.ns + int((tsc - facts.tsc) * facts.ns_per_tick)

    def _are_passed(self, events: Array, walk: StretchWalk) -> Array:
        """Which events of a stretch lie in front of where a walk along it is, or there."""
        position, block = walk.place()
        are_passed: Array = self.code.find(events["pc"]) == block
        for name in ("symbol_bytes", "decisions", "surprise_bytes"):
            reached = getattr(position, name)
            are_passed = (events[name] < reached) | ((events[name] == reached) & are_passed)
        return are_passed

    @cached_property
    def _counters(self) -> tuple[Array, Array, Array]:
        table = self._trace.read("path_counters", ["process_id", "counter", "block_id", "weight"])
        process_id, counter, block_id, weight = (
            to_numpy(table[name]) for name in ("process_id", "counter", "block_id", "weight")
        )
        own = process_id == self.process_id
        return counter[own], block_id[own], weight[own].astype(np.int64)

    def _weights_of(self, block_id: int) -> Array:
        """How often (i64) a block was executed for each count of a counter, by the counter's index."""
        counter, block, weight = self._counters
        own = (block == block_id) & (counter < _MAX_COUNTERS)
        weights = np.zeros(int(counter[own].max(initial=0)) + 1, np.int64)
        np.add.at(weights, counter[own], weight[own])
        return weights

    def _go_to(
        self, *, execution: int | None = None, instruction: int | None = None
    ) -> tuple[Entry, StretchWalk, PathPlace]:
        """A walk at a place, the entry that it began at, and the place that was reached."""
        if execution is not None:
            column, name, wanted = "block_executions", "executions", max(execution, 0)
        else:
            assert instruction is not None
            column, name, wanted = "instructions", "instructions", max(instruction, 0)
        number = int(np.searchsorted(self.stretches.file.places[column], wanted, "right"))
        first, *others = self.stretches.entries(number)
        entry = next((one for one in reversed(others) if getattr(one, name) <= wanted), first)
        walk = self.stretches.open_entry(entry)
        left = max(wanted - getattr(entry, name), 0)
        skipped = walk.skip(MOST, left) if execution is not None else walk.skip(left, MOST)
        return entry, walk, PathPlace(entry.executions + skipped[1], entry.instructions + skipped[0])

    def _check_end(self, entry: Entry, walk: StretchWalk, *, is_last: bool) -> None:
        # A thread that was killed, and a path that goes on behind a loss, are cut off.
        number = entry.number
        is_at_end = number + 1 >= len(self.stretches)
        may_be_cut = is_last and (is_at_end or self.stretches[number + 1].is_after_loss)
        if walk.stop == Stop.DAMAGED or (walk.stop == Stop.CUT and not may_be_cut):
            name = self.stretches.file.name
            raise TraceDamagedError(self._trace.directory, f"{name} contradicts itself in stretch {number}")


def _execution_of(place: PathPlace) -> int:
    return place.execution
