"""Paths through made-up code, and what damage makes of them: for the oracle and for the path codec alike."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from clew.binary import path_codec
from clew.protocol.codec_layouts import BLOCK, EVENT
from tests.oracle.path_walk import NOWHERE, Action, Block, Damaged, Ending, Event, PathWalk, Streams


class MadeUpPath(NamedTuple):
    """Code, the streams of a path through it, the block where that starts, and how many calls may be open."""

    blocks: list[Block]
    streams: Streams
    start: int
    max_depth: int

    def oracle(self) -> PathWalk:
        """A walk as the format says it."""
        return PathWalk(copy.deepcopy(self.blocks), self.streams, self.start, self.max_depth)

    def codec(self, sizes: Sequence[int] | None = None) -> path_codec.PathWalk:
        """A walk by the codec; `sizes` are the blocks' numbers of instructions."""
        blocks = np.zeros(len(self.blocks), BLOCK)
        targets: list[int] = []
        for index, block in enumerate(self.blocks):
            row = blocks[index]
            row["pc"], row["end_pc"], row["ending"] = block.pc, block.end_pc, block.ending
            row["target"], row["next"], row["is_taken"] = block.target, block.next, block.is_taken
            row["first_target"], row["n_targets"] = len(targets), len(block.targets)
            row["n_instructions"] = block.n_instructions * (1 if sizes is None else sizes[index])
            targets += block.targets
        events = np.zeros(len(self.streams.events), EVENT)
        for index, event in enumerate(self.streams.events):
            events[index] = (*event.place, event.subject, event.value, event.action, b"")
        streams = path_codec.PathStreams(self.streams.surprises, self.streams.symbols, events, self.streams.decisions)
        code = path_codec.PathCode(blocks, np.array(targets, np.uint32))
        return path_codec.PathWalk(code, streams, path_codec.PathStart(self.start), self.max_depth)


class Wanderer(PathWalk):
    """Goes its way by chance, at most so many blocks, and writes down where it went instead of reading it.

    One decision of `evenness` is a surprise, and nearly as rarely something happens that the code does not imply.
    """

    def __init__(
        self, blocks: list[Block], start: int, max_depth: int, n_blocks: int, evenness: int, seed: int
    ) -> None:
        super().__init__(copy.deepcopy(blocks), Streams(b"", b"", [], 0), start, max_depth)
        self.random, self.n_left, self.evenness = Random(seed), n_blocks, evenness
        self.surprises, self.symbols = bytearray(), bytearray()
        self.events: list[Event] = []

    def wander(self) -> Streams:
        """What there is to read of it in the end."""
        try:
            for _ in self:
                pass
        except Damaged:
            pass  # in front of what can't be, where a reader stops as well
        return Streams(bytes(self.surprises), bytes(self.symbols), self.events, self.decisions)

    def _event_here(self) -> Event | None:
        action = self._choose_action()
        if action is None:
            return None
        subject = self.random.randrange(len(self.blocks))
        value = self.random.randrange(2 if action == Action.EXPECT else len(self.blocks))
        if action == Action.CODE:
            subject = self.random.choice(self._slots())
            same = [i for i, one in enumerate(self.blocks) if one.pc == self.blocks[subject].pc and i != subject]
            value = self.random.choice(same)
        if action == Action.ELSEWHERE and self.stack and self.random.randrange(2):
            value = self.random.choice(self.stack)[1]  # where calls further out return to
        event = Event(self.place(), action, subject, value)
        self.events.append(event)
        return event

    def _choose_action(self) -> Action | None:
        if self.n_left == 0:
            return Action.END
        held = self._held()
        if held is None or self._is_nothing(self.blocks[held]):
            self.n_left -= 1
            return Action.RESUME
        block = self.blocks[held]
        is_branch = block.ending in (Ending.INDIRECT_CALL, Ending.INDIRECT_JUMP)
        takes_symbol = is_branch or (block.ending == Ending.RETURN and block.is_taken)
        if not (block.targets if takes_symbol else self.stack or block.ending != Ending.RETURN):
            return Action.ELSEWHERE
        if block.ending == Ending.RETURN and self.random.randrange(20) == 0:
            return Action.ELSEWHERE
        if self.random.randrange(4 * self.evenness) == 0:
            actions = [Action.NOTE, Action.RESUME, Action.EXPECT]
            actions += [Action.ELSEWHERE] if is_branch else []
            actions += [Action.CODE] if self._slots() else []
            return self.random.choice(actions)
        return None

    def _slots(self) -> list[int]:
        return [index for index, block in enumerate(self.blocks) if block.ending == Ending.SLOT]

    def _elsewhere(self) -> int | None:
        last = self.events[-1] if self.events else None
        if last is None or last.action != Action.ELSEWHERE or last.place != self.place():
            return None
        return last.value

    def _leave(self, block: Block) -> int:
        self.n_left -= 1
        return super()._leave(block)

    def _decide(self) -> bool:
        self.decisions += 1
        has_choice = self.blocks[self._held() or 0].ending == Ending.CONDITIONAL
        if not has_choice or self.random.randrange(self.evenness):
            return True
        self.surprises += _encode_surprise(self.decisions)
        self.n_surprise_bytes, self.decisions = len(self.surprises), 0
        return False

    def _symbol(self, block: Block) -> tuple[int, int]:
        symbol = self.random.randrange(len(block.targets))
        self.symbols += bytes([symbol]) if symbol < 255 else b"\xff" + symbol.to_bytes(2, "little")
        self.n_symbol_bytes = len(self.symbols)
        return symbol, block.targets[symbol]


def _encode_surprise(decisions: int) -> bytes:
    if decisions < 1 << 8:
        return bytes([decisions])
    if decisions < 1 << 16:
        return b"\0" + decisions.to_bytes(2, "little")
    return b"\0\0\0" + decisions.to_bytes(8, "little")


@st.composite
def codes(draw: st.DrawFn) -> list[Block]:
    """Some blocks in a row. What needs no decision leads forwards."""
    n = draw(st.integers(1, 12))
    blocks = []
    for index in range(n):
        ending = draw(st.sampled_from([ending for ending in Ending if ending != Ending.SLOT]))
        if ending == Ending.JUMP and index + 1 == n:
            ending = Ending.STOP
        lowest, highest = 0, n - 1
        if ending == Ending.JUMP:
            lowest = index + 1
        elif ending == Ending.BACK_JUMP:
            highest = index
        targets: list[int] = []
        if ending in (Ending.INDIRECT_CALL, Ending.INDIRECT_JUMP):
            targets = draw(st.lists(st.integers(0, n - 1), max_size=3)) * draw(st.sampled_from([1, 200]))
        elif ending == Ending.RETURN:
            targets = draw(st.lists(st.integers(0, n - 1), max_size=12)) * draw(st.sampled_from([1, 30]))
        blocks.append(
            Block(
                pc=0x1000 + 16 * index,
                end_pc=0x1010 + 16 * index,
                ending=ending,
                target=draw(st.integers(lowest, highest)),
                next=index + 1 if index + 1 < n else NOWHERE,
                is_taken=draw(st.booleans()),
                targets=targets,
                n_instructions=0 if ending == Ending.STOP and draw(st.booleans()) else 1,
            )
        )
    if draw(st.booleans()):
        _make_slot(
            blocks, draw(st.integers(0, n - 1)), draw(st.sampled_from([Ending.STOP, Ending.RETURN, Ending.CALL]))
        )
    return blocks


def _make_slot(blocks: list[Block], block: int, ending: Ending) -> None:
    """Block `block` is one of two that its address holds at times; the other one ends with `ending`."""
    first = blocks[block]
    slot = len(blocks) + 1
    for one in blocks:
        one.target, one.next = (slot if link == block else link for link in (one.target, one.next))
        one.targets = [slot if link == block else link for link in one.targets]
    blocks.append(replace(first, ending=ending, n_instructions=1))
    blocks.append(Block(first.pc, first.end_pc, Ending.SLOT, target=block))


@st.composite
def paths(draw: st.DrawFn, most_blocks: int = 1000) -> MadeUpPath:
    """A path as it was recorded."""
    blocks = draw(codes())
    start, max_depth = draw(st.integers(0, len(blocks) - 1)), draw(st.sampled_from([1, 2, 20, 3000]))
    evenness = draw(st.sampled_from([2, 10, 300, 3000]))
    # Hypothesis likes numbers small, and few blocks show little.
    n_blocks, seed = most_blocks - draw(st.integers(0, most_blocks)), draw(st.integers(0, 1 << 32))
    streams = Wanderer(blocks, start, max_depth, n_blocks, evenness, seed).wander()
    return MadeUpPath(blocks, streams, start, max_depth)


@st.composite
def damaged_paths(draw: st.DrawFn) -> MadeUpPath:
    """A path of which something is cut off or overwritten."""
    path = draw(paths(most_blocks=300))
    for damage in draw(st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=4)):
        path = damage(draw, path)
    return path


NUMBERS = st.one_of(st.integers(0, 12), st.integers(0, 0xFFFFFFFF))


def _cut_bytes(draw: st.DrawFn, path: MadeUpPath) -> MadeUpPath:
    name = draw(st.sampled_from(["surprises", "symbols"]))
    stream = getattr(path.streams, name)
    return _with_streams(path, **{name: stream[: draw(st.integers(0, len(stream)))]})


def _overwrite_byte(draw: st.DrawFn, path: MadeUpPath) -> MadeUpPath:
    name = draw(st.sampled_from(["surprises", "symbols"]))
    stream = getattr(path.streams, name)
    at = draw(st.integers(0, len(stream)))
    return _with_streams(path, **{name: stream[:at] + bytes([draw(st.integers(0, 255))]) + stream[at + 1 :]})


def _cut_events(draw: st.DrawFn, path: MadeUpPath) -> MadeUpPath:
    return _with_streams(path, events=path.streams.events[: draw(st.integers(0, len(path.streams.events)))])


def _overwrite_event(draw: st.DrawFn, path: MadeUpPath) -> MadeUpPath:
    events = list(path.streams.events)
    if not events:
        return path
    at = draw(st.integers(0, len(events) - 1))
    events[at] = Event(events[at].place, draw(st.integers(0, 6)), draw(NUMBERS), draw(NUMBERS))
    return _with_streams(path, events=events)


def _overwrite_decisions(draw: st.DrawFn, path: MadeUpPath) -> MadeUpPath:
    return _with_streams(path, decisions=draw(st.integers(0, 1000)))


def _overwrite_block(draw: st.DrawFn, path: MadeUpPath) -> MadeUpPath:
    blocks = copy.deepcopy(path.blocks)
    block = draw(st.sampled_from(blocks))
    match draw(st.integers(0, 2)):
        case 0:
            block.ending = draw(st.integers(0, 10))
        case 1:
            block.target = draw(NUMBERS)
        case _:
            block.next = draw(NUMBERS)
    return path._replace(blocks=blocks)


def _with_streams(path: MadeUpPath, **fields: Any) -> MadeUpPath:
    streams = {**vars(path.streams), **fields}
    return path._replace(streams=Streams(**streams))


DAMAGES = (_cut_bytes, _overwrite_byte, _cut_events, _overwrite_event, _overwrite_decisions, _overwrite_block)
