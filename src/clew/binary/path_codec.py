"""The path codec: walks through ordered paths.

A thin cover of the library `pathcodec` (Rust), which does the work; tables and streams go to it as numpy arrays of the
dtypes of `clew.protocol.codec`. What they mean is written down in docs/format/paths.md.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass, field
from clew.errors import PathCodecError
from clew.protocol.codec import MAX_DEPTH, NOWHERE, Stop
from clew.protocol.codec_layouts import BLOCK, EVENT, Limit, Position, Progress, Tables

__all__ = [
    "MOST",
    "PathCode",
    "PathStart",
    "PathState",
    "PathStreams",
    "PathWalk",
    "default_library",
    "default_library_path",
    "lay_out",
    "load_library",
    "read_frame_rows",
    "read_time_stamp",
]

MOST: Final = (1 << 64) - 1
"""As many as there are."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PathCode:
    """The code that paths go through: blocks, of dtype BLOCK, and indirect branches' targets, u32 indices of blocks."""

    blocks: Array
    targets: Array


@dataclass(frozen=True)
class PathStreams:
    """What is stored of a path, or of a stretch: bytes of surprises and of symbols, events of dtype EVENT, and the
    decisions behind the last surprise. Of a stretch the streams have so many bytes and decisions before it."""

    surprises: bytes
    symbols: bytes
    events: Array
    decisions: int
    surprise_bytes_before: int = 0
    symbol_bytes_before: int = 0
    decisions_before: int = 0


@dataclass(frozen=True)
class PathStart:
    """Where a walk begins: the block that would run next, and of each open call the return address, u64, and the block
    there, u32; `forgotten` others were open once."""

    block: int = NOWHERE
    addresses: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    blocks: Array = field(default_factory=lambda: np.zeros(0, np.uint32))
    forgotten: int = 0


_FUNCTIONS: Final = {
    "clew_path_walk_bytes": ctypes.c_uint64,
    "clew_path_open": ctypes.c_uint32,
    "clew_path_walk": ctypes.c_uint64,
    "clew_path_read_flow": ctypes.c_uint64,
    "clew_path_advance": ctypes.c_uint32,
    "clew_path_place": None,
    "clew_path_open_calls": ctypes.c_uint64,
    "clew_path_memory_words": ctypes.c_uint64,
    "clew_path_encode": ctypes.c_uint32,
    "clew_path_decode": ctypes.c_uint32,
    "clew_time_stamp": ctypes.c_uint64,
    "clew_frame_rows": ctypes.c_uint64,
}
"""The library's functions, and what they return."""


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


def lay_out(
    code: PathCode, streams: tuple[Array, Array], events: Array, start: PathStart, place: Position, max_depth: int
) -> tuple[Tables, tuple[Array, ...]]:
    """What the library reads of a path whose `streams` begin at `place`, and arrays to keep as long as it does.

    The first of these are copies of the blocks, which change on the way, and of the open calls' addresses and blocks.
    """
    blocks = np.array(code.blocks, BLOCK)
    targets, events = np.ascontiguousarray(code.targets, np.uint32), np.ascontiguousarray(events, EVENT)
    depth = min(len(start.addresses), len(start.blocks), max_depth)
    addresses, numbers = np.zeros(max_depth, np.uint64), np.zeros(max_depth, np.uint32)
    addresses[:depth], numbers[:depth] = start.addresses[:depth], start.blocks[:depth]
    surprises, symbols = streams
    tables = Tables(
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
        depth=depth,
        forgotten=start.forgotten,
        start=place,
        block=start.block,
    )
    return tables, (blocks, addresses, numbers, targets, events, surprises, symbols)


def default_library_path() -> Path:
    """Where the codec's library is: beside the package."""
    return Path(__file__).resolve().parent.parent / "_runtime" / "libclew-pathcodec.so"


def load_library(path: Path) -> ctypes.CDLL:
    """The codec's library at `path`. Raises PathCodecError if it is missing, damaged or lacks a function."""
    way_out = "reinstall clew, or run `make build` in its repository"
    if not path.is_file():  # the dynamic linker says only that it can't open it
        raise PathCodecError(path, f"no such file; {way_out}")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        reason = str(error).removeprefix(f"{path}: ").partition("\n")[0]
        raise PathCodecError(path, f"{reason}; {way_out}") from error
    try:
        for name, result in _FUNCTIONS.items():
            getattr(library, name).restype = result
    except AttributeError as error:
        raise PathCodecError(path, f"{name} is not in it; {way_out}") from error
    return library


@cache
def default_library() -> ctypes.CDLL:
    """The codec's library. Raises PathCodecError."""
    return load_library(default_library_path())


def read_time_stamp() -> int:
    """The processor's time stamp counter now. Raises PathCodecError."""
    return int(default_library().clew_time_stamp())


def read_frame_rows(section: bytes, address: int, base: int) -> npt.NDArray[np.uint64]:
    """The rules of all functions of which a section .eh_frame tells, linked at `address`: how far each place is behind
    `base`, in the upper half, and the rule from there on. Raises PathCodecError."""
    # A rule takes a byte at least; pages that are not written to are not there.
    rows = np.empty(len(section) + 2, np.uint64)
    n_rows = default_library().clew_frame_rows(
        section,
        ctypes.c_uint64(len(section)),
        ctypes.c_uint64(address),
        ctypes.c_uint64(base),
        ctypes.c_void_p(rows.ctypes.data),
        ctypes.c_uint64(len(rows)),
    )
    return rows[: n_rows if n_rows <= len(rows) else 0].copy()


class PathWalk:
    """A walk along a path, or a stretch of it. Nothing of what it was made from may change meanwhile."""

    def __init__(
        self, code: PathCode, streams: PathStreams, start: PathStart | None = None, max_depth: int = MAX_DEPTH
    ) -> None:
        library = default_library()
        surprises, symbols = np.frombuffer(streams.surprises, np.uint8), np.frombuffer(streams.symbols, np.uint8)
        place = Position(streams.surprise_bytes_before, streams.decisions_before, streams.symbol_bytes_before, 0)
        tables, self._kept = lay_out(code, (surprises, symbols), streams.events, start or PathStart(), place, max_depth)
        tables.decisions = streams.decisions
        self._state = np.zeros(library.clew_path_walk_bytes() // 8 + 2, np.uint64)
        self._address = ctypes.c_void_p((self._state.ctypes.data + 15) & ~15)
        self.stop = Stop(library.clew_path_open(self._address, ctypes.byref(tables)))
        """Why it can't go on; ASKED while it can."""

    @property
    def address(self) -> ctypes.c_void_p:
        """Where the library keeps its state."""
        return self._address

    def walk(self, n: int) -> npt.NDArray[np.uint32]:
        """The next blocks executed (indices), at most `n`."""
        out = np.empty(n, np.uint32)
        if self.stop != Stop.ASKED:
            return out[:0]
        stop = ctypes.c_uint32()
        done = default_library().clew_path_walk(
            self._address, ctypes.c_void_p(out.ctypes.data), ctypes.c_uint64(n), ctypes.byref(stop)
        )
        self.stop = Stop(stop.value)
        return out[:done]

    def advance(self, instructions: int, blocks: int = MOST) -> tuple[int, int]:
        """Go on by whole blocks, at most so many, of no more than `instructions`; how many of both were executed."""
        progress = self._advance(Progress(instructions, blocks, MOST))
        return progress.instructions, progress.blocks

    def advance_to(self, block: int, n: int) -> tuple[int, int, int]:
        """Go on up to the `n`-th execution of a block from here, counted from 0, or as far as it goes; how many
        instructions and blocks were executed, and how often this one."""
        progress = self._advance(Progress(MOST, MOST, n), counted=block)
        return progress.instructions, progress.blocks, progress.hits

    def advance_counting(self, block: int, blocks: int) -> int:
        """Go on by so many blocks, or as far as it goes; how often `block` was executed."""
        return int(self._advance(Progress(MOST, blocks, MOST), counted=block).hits)

    def advance_until(self, surprise_bytes: int, decisions: int) -> tuple[int, int]:
        """Go on until so many bytes of surprises are read and so many decisions made behind the last one, or as far as
        it goes; how many instructions and blocks were executed."""
        progress = self._advance(Progress(MOST, MOST, MOST), (surprise_bytes, decisions))
        return progress.instructions, progress.blocks

    def _advance(self, most: Progress, position: tuple[int, int] = (MOST, MOST), counted: int = NOWHERE) -> Progress:
        progress = Progress()
        if self.stop == Stop.ASKED:
            limit = Limit(most, *position, counted, 0)
            stop = default_library().clew_path_advance(self._address, ctypes.byref(limit), ctypes.byref(progress))
            self.stop = Stop(stop)
        return progress

    def place(self) -> tuple[Position, int, int]:
        """Where it is: the position, the block that would run next, and how many events are behind it."""
        position, block, events = Position(), ctypes.c_uint32(), ctypes.c_uint64()
        default_library().clew_path_place(
            self._address, ctypes.byref(position), ctypes.byref(block), ctypes.byref(events)
        )
        return position, block.value, events.value

    def state(self, *, has_blocks: bool = True) -> PathState:
        """All that another walk needs to go on from here; a copy. The blocks, which are many, may be left out."""
        if self.stop == Stop.DAMAGED:
            raise ValueError("the walk has lost its way")
        position, block, n_events = self.place()
        n_open = default_library().clew_path_open_calls(self._address)
        blocks, addresses, numbers, *_ = self._kept
        forgotten = position.depth - n_open
        return PathState(
            (blocks if has_blocks else blocks[:0]).copy(),
            addresses[:n_open].copy(),
            numbers[:n_open].copy(),
            forgotten,
            block,
            position,
            n_events,
        )
