"""A thread's path read as events, as far as it is known: the walk goes on when there is more of it, or of its code.

A cover of the library `pathcodec` (Rust). What the rows mean is told by `FlowKind` and `FLOW_EVENT`.
"""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from clew.binary.path_codec import default_library
from clew.dataclass import dataclass
from clew.protocol.codec import MAX_DEPTH, NOWHERE, Stop
from clew.protocol.codec_layouts import ACCESS_ROW, VALUE_EVENT, FlowReading, Position, Tables

__all__ = ["FlowCode", "FlowStreams", "FlowWalk"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class FlowCode:
    """Code that paths go through: targets (u32) of indirect branches, what events say of each block (BLOCK_DETAIL), and
    where their instructions begin (u16). The blocks themselves are a walk's own: it changes them."""

    targets: Array
    details: Array
    starts: Array


class RowSource(Protocol):
    """Accesses to memory, in pieces of whole blocks, which are let go of as they are read."""

    start: int
    """Where what is left begins, in bytes."""

    @property
    def rows(self) -> Array:
        """The first piece, of dtype ACCESS_ROW."""

    @property
    def has_more(self) -> bool:
        """Whether others follow."""

    def let_go(self, end: int) -> None:
        """What lies before byte `end` is read."""


@dataclass(frozen=True)
class FlowStreams:
    """What there is of a path behind where a walk is: bytes (u8) of surprises and symbols, events of dtype EVENT, and
    their time stamps (u64), and what is told of them (TOLD_EVENT), or nothing of either. `decisions` were made behind
    the last surprise. All that the thread did is there up to `known`: so many bytes of surprises, and so many decisions
    behind the last one. `accesses` is what it did with memory, of dtype ACCESS_ROW, if that is told: it is let go
    of as it is read."""

    surprises: Array
    symbols: Array
    events: Array
    times: Array
    told: Array
    decisions: int
    known: tuple[int, int]
    accesses: RowSource | None = None


class FlowWalk:
    """Where a thread, of that number (tid), is on its path."""

    def __init__(self, thread: int) -> None:
        self._state: Array = np.zeros(default_library().clew_path_walk_bytes() // 8 + 2, np.uint64)
        self._address = ctypes.c_void_p((self._state.ctypes.data + 15) & ~15)
        # Pages of these are there once they are written to.
        self._addresses = np.zeros(MAX_DEPTH, np.uint64)
        self._numbers = np.zeros(MAX_DEPTH, np.uint32)
        self._depth = self._forgotten = 0
        self._reading = FlowReading(thread=thread, is_open=1)
        self._kept: tuple[Array, FlowCode, FlowStreams] | None = None
        self.block: int = NOWHERE
        """The block (an index) that would run next."""
        self.position = Position()
        self.n_events = 0
        """How many of the events that it was opened with it has passed."""

    @property
    def thread(self) -> int:
        """The thread's number (tid)."""
        return int(self._reading.thread)

    @thread.setter
    def thread(self, tid: int) -> None:
        self._reading.thread = tid

    @property
    def kinds(self) -> int:
        """What is told of the thread: bits by `FlowKind`."""
        return int(self._reading.kinds)

    @kinds.setter
    def kinds(self, kinds: int) -> None:
        self._reading.kinds = kinds

    @property
    def is_open(self) -> bool:
        """Whether what the thread does is told, by the gates that it came to (`Gate`)."""
        return bool(self._reading.is_open)

    @is_open.setter
    def is_open(self, is_open: bool) -> None:
        self._reading.is_open = is_open

    @property
    def sequence(self) -> int:
        """How many events were told, so the number of the next."""
        return int(self._reading.sequence)

    @sequence.setter
    def sequence(self, number: int) -> None:
        self._reading.sequence = number

    @property
    def open_calls(self) -> Array:
        """Return addresses (u64) of the calls that are open, the outermost first."""
        return self._addresses[: self._depth]

    def begin(self, block: int, position: Position, calls: Array, blocks: Array) -> None:
        """Go on at another place of the path, with the addresses of open calls (u64) and the blocks there (u32)."""
        self._depth = min(len(calls), MAX_DEPTH)
        self._addresses[: self._depth], self._numbers[: self._depth] = calls[: self._depth], blocks[: self._depth]
        self._forgotten = max(position.depth - self._depth, 0)
        self.block, self.position = block, position
        self._reading.begun.end = 0

    def renumber(self, block: int, blocks: Array) -> None:
        """Blocks have other numbers: the next one's, and those (u32) at the open calls' addresses."""
        self.block = block
        self._numbers[: self._depth] = blocks

    def open(self, blocks: Array, code: FlowCode, streams: FlowStreams) -> bool:
        """Have more to read; whether that can be read. `blocks`, of dtype BLOCK, are changed on the way."""
        self._kept = blocks, code, streams
        tables = Tables(
            blocks=blocks.ctypes.data,
            n_blocks=len(blocks),
            targets=code.targets.ctypes.data,
            n_targets=len(code.targets),
            surprises=streams.surprises.ctypes.data,
            n_surprise_bytes=len(streams.surprises),
            symbols=streams.symbols.ctypes.data,
            n_symbol_bytes=len(streams.symbols),
            events=streams.events.ctypes.data,
            n_events=len(streams.events),
            decisions=streams.decisions,
            addresses=self._addresses.ctypes.data,
            numbers=self._numbers.ctypes.data,
            max_depth=MAX_DEPTH,
            depth=self._depth,
            forgotten=self._forgotten,
            start=self.position,
            block=self.block,
        )
        reading = self._reading
        reading.details, reading.n_details = code.details.ctypes.data, len(code.details)
        reading.starts, reading.n_starts = code.starts.ctypes.data, len(code.starts)
        reading.times, reading.n_times = streams.times.ctypes.data, len(streams.times)
        reading.told, reading.n_told = streams.told.ctypes.data, len(streams.told)
        reading.surprise_bytes, reading.decisions = streams.known
        self.n_events = 0
        is_sound: bool = default_library().clew_path_open(self._address, ctypes.byref(tables)) == Stop.ASKED
        return is_sound

    def read(self, rows: Array) -> tuple[int, Stop]:
        """Write the next events to `rows`, of dtype FLOW_EVENT or VALUE_EVENT: how many, and why there are no more.

        ASKED: there was no room, or there are more accesses behind these; CUT: no more is known; DAMAGED, also: code is
        not known. It was opened.
        """
        library, reading = default_library(), self._reading
        reading.rows, reading.n_rows, reading.has_values = rows.ctypes.data, len(rows), rows.dtype == VALUE_EVENT
        source = self._kept[2].accesses if self._kept is not None else None
        accesses = None if source is None else source.rows
        reading.has_accesses = 0 if source is None else 1 + source.has_more
        reading.accesses = self._state.ctypes.data if accesses is None else accesses.ctypes.data
        reading.n_accesses = 0 if accesses is None else len(accesses)
        stop = ctypes.c_uint32()
        n = library.clew_path_read_flow(self._address, ctypes.byref(reading), ctypes.byref(stop))
        if source is not None:
            source.let_go(source.start + int(reading.n_passed) * ACCESS_ROW.itemsize)
        return int(n), Stop(stop.value)

    def close(self) -> None:
        """Take note of where it is; then it can be opened with more."""
        position, block, passed = Position(), ctypes.c_uint32(), ctypes.c_uint64()
        library = default_library()
        library.clew_path_place(self._address, ctypes.byref(position), ctypes.byref(block), ctypes.byref(passed))
        self._depth = int(library.clew_path_open_calls(self._address))
        self._forgotten = position.depth - self._depth
        self.position, self.block, self.n_events = position, block.value, passed.value
        self._kept = None
