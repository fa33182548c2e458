"""A path unfolded as its format says it, block by block: what the path codec is compared with.

Pure; plain Python, as short as it can be, and slow. Knows nothing of how the codec does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

NOWHERE = 0xFFFFFFFF
MAX_DEPTH = 1 << 18
REACH = 1024


class Ending(IntEnum):
    """What a block ends with."""

    FALL_THROUGH = 0
    JUMP = 1
    BACK_JUMP = 2
    CONDITIONAL = 3
    CALL = 4
    INDIRECT_CALL = 5
    INDIRECT_JUMP = 6
    RETURN = 7
    STOP = 8
    SLOT = 9


class Action(IntEnum):
    """What an event does."""

    NOTE = 0
    RESUME = 1
    ELSEWHERE = 2
    EXPECT = 3
    END = 4
    CODE = 5


@dataclass
class Block:
    """A basic block; `targets` are its indirect branch's or return's, by their symbols. `ending` may be no `Ending`."""

    pc: int
    end_pc: int
    ending: int
    target: int = NOWHERE
    next: int = NOWHERE
    is_taken: bool = False
    targets: Sequence[int] = ()
    n_instructions: int = 1


@dataclass(frozen=True)
class Event:
    """Something at the place (bytes of surprises, decisions, bytes of symbols, depth, block).

    `action` may be what is no `Action`."""

    place: tuple[int, int, int, int, int]
    action: int
    subject: int
    value: int


@dataclass
class Streams:
    """What is stored of a path. `decisions` are those behind the last surprise."""

    surprises: bytes
    symbols: bytes
    events: Sequence[Event]
    decisions: int


class Cut(Exception):  # noqa: N818 - an ending, no error
    """What was stored is used up."""


class Damaged(Exception):  # noqa: N818
    """Path and code do not fit."""


@dataclass
class PathWalk:
    """An unfolding under way; iterating gives the blocks executed, and ends where the path does (or raises)."""

    blocks: list[Block]
    streams: Streams
    block: int
    max_depth: int = MAX_DEPTH
    n_surprise_bytes: int = 0
    decisions: int = 0
    n_symbol_bytes: int = 0
    forgotten: int = 0
    n_events: int = 0
    stack: list[tuple[int, int]] = field(default_factory=list)

    def __iter__(self) -> Iterator[int]:
        if any(self._leads_back(block) for block in self.blocks):
            raise Damaged
        while True:
            while (event := self._event_here()) is not None and event.action != Action.ELSEWHERE:
                if event.action == Action.END:
                    return
                self.n_events += 1
                if event.action == Action.RESUME:
                    self.block = event.value
                elif event.action == Action.EXPECT and event.subject < len(self.blocks):
                    self.blocks[event.subject].is_taken = bool(event.value)
                elif event.action == Action.CODE:
                    self._hold(event.subject, event.value)
                elif event.action != Action.NOTE:
                    raise Damaged
            executed = self._held()
            if executed is None or self._is_nothing(self.blocks[executed]):
                raise Cut if self._is_used_up() else Damaged
            self.block = self._leave(self.blocks[executed])
            yield executed

    def _held(self) -> int | None:
        """The block that would run next: where that is a slot, the one that it holds."""
        held = self.block
        if held < len(self.blocks) and self.blocks[held].ending == Ending.SLOT:
            held = self.blocks[held].target
            if held < len(self.blocks) and self.blocks[held].ending == Ending.SLOT:
                return None
        return held if held < len(self.blocks) else None

    def _hold(self, slot: int, block: int) -> None:
        if slot >= len(self.blocks) or self.blocks[slot].ending != Ending.SLOT:
            raise Damaged
        self.blocks[slot].target = block
        if block >= len(self.blocks) or self.blocks[block].pc != self.blocks[slot].pc:
            raise Damaged

    def _is_nothing(self, block: Block) -> bool:
        """Whether it is an address where no instruction could be read."""
        return block.ending == Ending.STOP and block.n_instructions == 0

    def _is_used_up(self) -> bool:
        """Whether nothing is left to read: a thread was killed, and nothing says what would have come."""
        streams = self.streams
        is_read = (self.n_surprise_bytes, self.n_symbol_bytes) == (len(streams.surprises), len(streams.symbols))
        return is_read and self.n_events == len(streams.events) and self.decisions >= streams.decisions

    def place(self) -> tuple[int, int, int, int, int]:
        """Where it is, as events say it."""
        depth = self.forgotten + len(self.stack)
        return self.n_surprise_bytes, self.decisions, self.n_symbol_bytes, depth, self.block

    def _leads_back(self, block: Block) -> bool:
        """Whether a path might go round through the block and never decide anything."""
        if block.ending == Ending.SLOT:
            return block.target < len(self.blocks) and self.blocks[block.target].pc != block.pc
        if block.ending not in (Ending.FALL_THROUGH, Ending.JUMP):
            return False
        successor = block.next if block.ending == Ending.FALL_THROUGH else block.target
        return successor < len(self.blocks) and self.blocks[successor].pc <= block.pc

    def _event_here(self) -> Event | None:
        if self.n_events == len(self.streams.events):
            return None
        event = self.streams.events[self.n_events]
        *position, block = event.place
        # There is no branch before the one meant with the same position: it would have moved that.
        is_here = event.action == Action.ELSEWHERE or block == self.block
        return event if is_here and tuple(position) == self.place()[:4] else None

    def _elsewhere(self) -> int | None:
        """Where an event says that the branch at this place leads."""
        event = self._event_here()
        if event is None or event.action != Action.ELSEWHERE:
            return None
        self.n_events += 1
        return event.value

    def _leave(self, block: Block) -> int:
        ending = block.ending
        if ending not in tuple(Ending):
            raise Damaged
        if ending == Ending.CONDITIONAL:
            return block.target if self._decide() == block.is_taken else block.next
        if ending in (Ending.BACK_JUMP, Ending.CALL) and not self._decide():
            raise Damaged
        if ending == Ending.RETURN:
            return self._return(block)
        target = block.target
        if ending in (Ending.INDIRECT_CALL, Ending.INDIRECT_JUMP):
            elsewhere = self._elsewhere()
            target = self._symbol(block)[1] if elsewhere is None else elsewhere
        if ending in (Ending.CALL, Ending.INDIRECT_CALL):
            if len(self.stack) == self.max_depth:
                self.forgotten += self.max_depth
                self.stack.clear()
            self.stack.append((block.end_pc, block.next))
        if ending == Ending.STOP:
            return NOWHERE
        return block.next if ending == Ending.FALL_THROUGH else target

    def _decide(self) -> bool:
        """Whether the next decision goes as expected."""
        rest = self.streams.surprises[self.n_surprise_bytes :]
        size = 1 if rest[:1] != b"\0" else 3 if rest[1:3] != b"\0\0" else 11
        if len(rest) < size:
            if self.decisions == self.streams.decisions:
                # A surprise counts as written when all of it is: nothing that is cut off has a part of one.
                raise Damaged if rest else Cut
            self.decisions += 1
            return True
        surprise = rest[0] or int.from_bytes(rest[1:3], "little") or max(int.from_bytes(rest[3:11], "little"), 1)
        self.decisions += 1
        if self.decisions < surprise:
            return True
        self.n_surprise_bytes += size
        self.decisions = 0
        return False

    def _symbol(self, block: Block) -> tuple[int, int]:
        """The next symbol, and where it leads."""
        rest = self.streams.symbols[self.n_symbol_bytes :]
        size = 3 if rest[:1] == b"\xff" else 1
        if len(rest) < size:
            raise Cut
        symbol = int.from_bytes(rest[1:3], "little") if size == 3 else rest[0]
        if symbol >= len(block.targets):
            raise Damaged
        self.n_symbol_bytes += size
        return symbol, block.targets[symbol]

    def _return(self, block: Block) -> int:
        elsewhere = self._elsewhere()
        if elsewhere is None and block.is_taken:
            symbol, target = self._symbol(block)
            del self.stack[max(len(self.stack) - 1 - symbol % 8, 0) :]
            return target
        if elsewhere is None:
            if not self.stack:
                raise Cut if self._is_used_up() else Damaged
            return self.stack.pop()[1]
        address = self.blocks[elsewhere].pc if elsewhere < len(self.blocks) else 0
        for depth in range(len(self.stack) - 1, max(len(self.stack) - REACH, 0) - 1, -1):
            if self.stack[depth][0] == address:
                del self.stack[depth:]
                break
        return elsewhere
