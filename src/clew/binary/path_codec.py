"""The path codec: walks through ordered paths, and re-codes them in segments.

A thin cover of the library `pathcodec` (Rust), which does the work; tables and streams go to it as numpy arrays of the
dtypes below. What they mean is written down in docs/format/paths.md.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "BLOCK",
    "EVENT",
    "MAX_DEPTH",
    "NOWHERE",
    "Action",
    "Ending",
    "PathCode",
    "PathSegment",
    "PathState",
    "PathStreams",
    "PathWalk",
    "Position",
    "Stop",
    "decode_segment",
    "encode_segment",
]

NOWHERE: Final = 0xFFFFFFFF
"""No block."""

MAX_DEPTH: Final = 1 << 18
"""So many calls may be open."""

BLOCK: Final = np.dtype(
    [
        ("pc", "<u8"),
        ("end_pc", "<u8"),
        ("target", "<u4"),
        ("next", "<u4"),
        ("first_target", "<u4"),
        ("n_targets", "<u4"),
        ("n_instructions", "<u4"),
        ("ending", "u1"),
        ("is_taken", "u1"),
        ("reserved", "V10"),
    ]
)
"""A basic block: `ending` is a number of `Ending`; `target`, where its direct branch leads, `next`, what lies behind,
are indices of blocks or NOWHERE; `targets[first_target:][:n_targets]` are its indirect branch's, by their symbols."""

EVENT: Final = np.dtype(
    [
        ("surprise_bytes", "<u8"),
        ("decisions", "<u8"),
        ("symbol_bytes", "<u8"),
        ("depth", "<u8"),
        ("block", "<u4"),
        ("subject", "<u4"),
        ("value", "<u4"),
        ("action", "u1"),
        ("reserved", "V3"),
    ]
)
"""Something at a place of a path; `action` is a number of `Action`."""

_LIBRARY: Final = Path(__file__).resolve().parents[1] / "_runtime" / "libclew-pathcodec.so"

Array = npt.NDArray[Any]


class Ending(IntEnum):
    """What a block ends with, as far as paths are concerned."""

    FALL_THROUGH = 0
    JUMP = 1
    BACK_JUMP = 2
    CONDITIONAL = 3
    CALL = 4
    INDIRECT_CALL = 5
    INDIRECT_JUMP = 6
    RETURN = 7
    STOP = 8


class Action(IntEnum):
    """What an event does to the path."""

    NOTE = 0
    RESUME = 1
    ELSEWHERE = 2
    EXPECT = 3
    END = 4


class Stop(IntEnum):
    """Why a walk stopped: it was asked to, the path ends, what was recorded is used up, or it contradicts itself."""

    ASKED = 0
    END = 1
    CUT = 2
    DAMAGED = 3


@dataclass(frozen=True)
class PathCode:
    """The code that paths go through: blocks, of dtype BLOCK, and targets of indirect branches, u32 indices of them."""

    blocks: Array
    targets: Array


@dataclass(frozen=True)
class PathStreams:
    """What is stored of a path: bytes of surprises and of symbols, events of dtype EVENT, and the decisions behind the
    last surprise."""

    surprises: bytes
    symbols: bytes
    events: Array
    decisions: int


class Position(ctypes.Structure):
    """A place in a path: bytes of surprises and symbols read, decisions since the last surprise, calls open."""

    _fields_ = (
        ("surprise_bytes", ctypes.c_uint64),
        ("decisions", ctypes.c_uint64),
        ("symbol_bytes", ctypes.c_uint64),
        ("depth", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class PathState:
    """All that a walk needs to go on from some place of a path."""

    blocks: Array
    """The code's blocks, of dtype BLOCK, with what is expected of them here."""
    addresses: npt.NDArray[np.uint64]
    """Return addresses of open calls, the outermost first, but for those that are forgotten."""
    numbers: npt.NDArray[np.uint32]
    """The blocks at these addresses."""
    forgotten: int
    """Open calls that are forgotten."""
    block: int
    """The block that would run next."""
    position: Position
    n_events: int
    """Events that are behind it."""


@dataclass(frozen=True)
class PathSegment:
    """A stretch of a path, re-coded. Reading it takes the state where it begins and the events from there on, too."""

    coded: npt.NDArray[np.uint8]
    n_blocks: int
    """Blocks executed in it."""
    n_items: int
    """Conditional and indirect branches in it."""
    n_surprise_bytes: int
    n_symbol_bytes: int
    """What decoding gives."""


class _Tables(ctypes.Structure):
    _fields_ = (
        ("blocks", ctypes.c_void_p),
        ("n_blocks", ctypes.c_uint64),
        ("targets", ctypes.c_void_p),
        ("n_targets", ctypes.c_uint64),
        ("surprises", ctypes.c_void_p),
        ("n_surprise_bytes", ctypes.c_uint64),
        ("symbols", ctypes.c_void_p),
        ("n_symbol_bytes", ctypes.c_uint64),
        ("events", ctypes.c_void_p),
        ("n_events", ctypes.c_uint64),
        ("decisions", ctypes.c_uint64),
        ("addresses", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("max_depth", ctypes.c_uint64),
        ("depth", ctypes.c_uint64),
        ("forgotten", ctypes.c_uint64),
        ("start", Position),
        ("block", ctypes.c_uint64),
    )


class _Encoded(ctypes.Structure):
    _fields_ = (("n_bytes", ctypes.c_uint64), ("n_blocks", ctypes.c_uint64), ("n_items", ctypes.c_uint64))


class _Coded(ctypes.Structure):
    _fields_ = (
        ("bytes", ctypes.c_void_p),
        ("n_bytes", ctypes.c_uint64),
        ("n_blocks", ctypes.c_uint64),
        ("words", ctypes.c_void_p),
        ("n_words", ctypes.c_uint64),
    )


class _Progress(ctypes.Structure):
    _fields_ = (("instructions", ctypes.c_uint64), ("blocks", ctypes.c_uint64))


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_LIBRARY))
    library.clew_path_walk_bytes.restype = ctypes.c_uint64
    library.clew_path_walk.restype = ctypes.c_uint64
    library.clew_path_open_calls.restype = ctypes.c_uint64
    library.clew_path_memory_words.restype = ctypes.c_uint64
    return library


class PathWalk:
    """A walk along a path from its start. Nothing of what it was made from may change meanwhile."""

    def __init__(self, code: PathCode, streams: PathStreams, block: int = NOWHERE, max_depth: int = MAX_DEPTH) -> None:
        library = _library()
        # What is expected changes on the way.
        blocks = np.array(code.blocks, BLOCK)
        targets = np.ascontiguousarray(code.targets, np.uint32)
        events = np.ascontiguousarray(streams.events, EVENT)
        addresses, numbers = np.zeros(max_depth, np.uint64), np.zeros(max_depth, np.uint32)
        surprises, symbols = np.frombuffer(streams.surprises, np.uint8), np.frombuffer(streams.symbols, np.uint8)
        self._kept = (blocks, targets, events, addresses, numbers, surprises, symbols)
        tables = _Tables(
            blocks=blocks.ctypes.data,
            n_blocks=len(blocks),
            targets=targets.ctypes.data,
            n_targets=len(targets),
            surprises=surprises.ctypes.data,
            n_surprise_bytes=len(surprises),
            symbols=symbols.ctypes.data,
            n_symbol_bytes=len(symbols),
            events=events.ctypes.data,
            n_events=len(events),
            decisions=streams.decisions,
            addresses=addresses.ctypes.data,
            numbers=numbers.ctypes.data,
            max_depth=max_depth,
            block=block,
        )
        self._state = np.zeros(library.clew_path_walk_bytes() // 8 + 2, np.uint64)
        self._address = ctypes.c_void_p((self._state.ctypes.data + 15) & ~15)
        self.stop = Stop(library.clew_path_open(self._address, ctypes.byref(tables)))
        """Why it can't go on; ASKED while it can."""

    def walk(self, n: int) -> npt.NDArray[np.uint32]:
        """The next blocks executed (indices), at most `n`."""
        out = np.empty(n, np.uint32)
        if self.stop != Stop.ASKED:
            return out[:0]
        stop = ctypes.c_int32()
        done = _library().clew_path_walk(
            self._address, ctypes.c_void_p(out.ctypes.data), ctypes.c_uint64(n), ctypes.byref(stop)
        )
        self.stop = Stop(stop.value)
        return out[:done]

    def advance(self, instructions: int) -> tuple[int, int]:
        """Go on by as many whole blocks as have no more than `instructions`; how many of both were executed."""
        progress = _Progress()
        if self.stop == Stop.ASKED:
            stop = _library().clew_path_advance(self._address, ctypes.c_uint64(instructions), ctypes.byref(progress))
            self.stop = Stop(stop)
        return progress.instructions, progress.blocks

    def place(self) -> tuple[Position, int, int]:
        """Where it is: the position, the block that would run next, and how many events are behind it."""
        position, block, events = Position(), ctypes.c_uint32(), ctypes.c_uint64()
        if self.stop != Stop.DAMAGED or self._kept:
            _library().clew_path_place(self._address, ctypes.byref(position), ctypes.byref(block), ctypes.byref(events))
        return position, block.value, events.value

    def state(self) -> PathState:
        """All that another walk needs to go on from here; a copy."""
        if self.stop == Stop.DAMAGED:
            raise ValueError("the walk has lost its way")
        position, block, n_events = self.place()
        n_open = _library().clew_path_open_calls(self._address)
        blocks, _, _, addresses, numbers, *_ = self._kept
        forgotten = position.depth - n_open
        return PathState(
            blocks.copy(), addresses[:n_open].copy(), numbers[:n_open].copy(), forgotten, block, position, n_events
        )


def encode_segment(walk: PathWalk, n_items: int) -> PathSegment:
    """Go on by `n_items` conditional and indirect branches, or as far as `walk` can, and re-code them on the way.

    The segment begins where the walk is (`PathWalk.state`, taken before) and ends where it is then; `walk.stop` says
    whether there is more. What the walk can't come to is in no segment. A segment that would take more than two bits an
    item has fewer of them; real paths take a tenth of that. 10 to 40 million items a second.

    Raises ValueError if the walk can't go on, or for less than one item.
    """
    if walk.stop != Stop.ASKED or n_items < 1:
        raise ValueError(f"no segment of {n_items} items of a walk that stopped: {walk.stop.name}")
    library = _library()
    before, _, _ = walk.place()
    words = np.empty(library.clew_path_memory_words(), np.uint32)
    # Two bits an item are twice what an unpredictable one takes.
    room = np.empty(4096 + min(n_items, 1 << 30) // 4, np.uint8)
    encoded = _Encoded()
    stop = library.clew_path_encode(
        walk._address,
        ctypes.c_uint64(n_items),
        ctypes.c_void_p(words.ctypes.data),
        ctypes.c_uint64(len(words)),
        ctypes.c_void_p(room.ctypes.data),
        ctypes.c_uint64(len(room)),
        ctypes.byref(encoded),
    )
    walk.stop = Stop(stop)
    after, _, _ = walk.place()
    return PathSegment(
        room[: encoded.n_bytes].copy(),
        encoded.n_blocks,
        encoded.n_items,
        after.surprise_bytes - before.surprise_bytes,
        after.symbol_bytes - before.symbol_bytes,
    )


def decode_segment(
    state: PathState, targets: Array, events: Array, segment: PathSegment, max_depth: int = MAX_DEPTH
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], Position]:
    """The bytes of surprises and of symbols that `segment` was made from, and the position where it ends.

    `state` is where it begins; `targets` are those of PathCode; `events`, of dtype EVENT, those of the path from
    `state.n_events` on, as far as the segment goes or further. The end's `decisions` are those behind the last
    surprise.

    Raises ValueError if the segment contradicts what it is read with.
    """
    library = _library()
    blocks, targets = np.array(state.blocks, BLOCK), np.ascontiguousarray(targets, np.uint32)
    events = np.ascontiguousarray(events, EVENT)
    coded = np.ascontiguousarray(segment.coded, np.uint8)
    n_open = min(len(state.addresses), len(state.numbers), max_depth)
    addresses, numbers = np.zeros(max_depth, np.uint64), np.zeros(max_depth, np.uint32)
    addresses[:n_open], numbers[:n_open] = state.addresses[:n_open], state.numbers[:n_open]
    surprises = np.zeros(segment.n_surprise_bytes, np.uint8)
    symbols = np.zeros(segment.n_symbol_bytes, np.uint8)
    words = np.empty(library.clew_path_memory_words(), np.uint32)
    tables = _Tables(
        blocks=blocks.ctypes.data,
        n_blocks=len(blocks),
        targets=targets.ctypes.data,
        n_targets=len(targets),
        surprises=surprises.ctypes.data,
        n_surprise_bytes=len(surprises),
        symbols=symbols.ctypes.data,
        n_symbol_bytes=len(symbols),
        events=events.ctypes.data,
        n_events=len(events),
        addresses=addresses.ctypes.data,
        numbers=numbers.ctypes.data,
        max_depth=max_depth,
        depth=n_open,
        forgotten=state.forgotten,
        start=state.position,
        block=state.block,
    )
    reading = _Coded(
        bytes=coded.ctypes.data,
        n_bytes=len(coded),
        n_blocks=segment.n_blocks,
        words=words.ctypes.data,
        n_words=len(words),
    )
    end = Position()
    stop = library.clew_path_decode(ctypes.byref(tables), ctypes.byref(reading), ctypes.byref(end))
    n_surprise_bytes = end.surprise_bytes - state.position.surprise_bytes
    n_symbol_bytes = end.symbol_bytes - state.position.symbol_bytes
    if stop != Stop.ASKED or (n_surprise_bytes, n_symbol_bytes) != (len(surprises), len(symbols)):
        raise ValueError("the segment contradicts the code, or its events")
    return surprises, symbols, end
