"""Segments of paths, re-coded: what `clew compact` makes of streams, and back.

A thin cover of the library `pathcodec` (Rust, `recode.rs`), which does the work.
"""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from clew.binary.path_codec import Array, PathCode, PathStart, PathState, PathWalk, default_library, lay_out
from clew.dataclass import dataclass
from clew.protocol.codec import MAX_DEPTH, Stop
from clew.protocol.codec_layouts import Coded, Encoded, Position

__all__ = ["PathSegment", "decode_segment", "encode_segment"]


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


def encode_segment(walk: PathWalk, n_items: int) -> PathSegment:
    """Go on by `n_items` conditional and indirect branches, or as far as `walk` can, and re-code them on the way.

    The segment begins where the walk is (`PathWalk.state`, taken before) and ends where it is then; `walk.stop` says
    whether there is more. What the walk can't come to is in no segment. A segment that would take more than two bits an
    item has fewer of them.

    Raises ValueError if the walk can't go on, or for less than one item.
    """
    if walk.stop != Stop.ASKED or n_items < 1:
        raise ValueError(f"no segment of {n_items} items of a walk that stopped: {walk.stop.name}")
    library = default_library()
    before, _, _ = walk.place()
    words = np.empty(library.clew_path_memory_words(), np.uint32)
    # Two bits an item are twice what an unpredictable one takes.
    room = np.empty(4096 + min(n_items, 1 << 30) // 4, np.uint8)
    encoded = Encoded()
    stop = library.clew_path_encode(
        walk.address,
        ctypes.c_uint64(n_items),
        ctypes.c_void_p(words.ctypes.data),
        ctypes.c_uint64(len(words)),
        ctypes.c_void_p(room.ctypes.data),
        ctypes.c_uint64(len(room)),
        ctypes.byref(encoded),
    )
    if stop == Stop.NO_ROOM:
        raise ValueError("no segment of a walk: there is no room for it")
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
    library = default_library()
    coded = np.ascontiguousarray(segment.coded, np.uint8)
    surprises = np.zeros(segment.n_surprise_bytes, np.uint8)
    symbols = np.zeros(segment.n_symbol_bytes, np.uint8)
    words = np.empty(library.clew_path_memory_words(), np.uint32)
    start = PathStart(state.block, state.addresses, state.numbers, state.forgotten)
    code = PathCode(state.blocks, targets)
    tables, _kept = lay_out(code, (surprises, symbols), events, start, state.position, max_depth)
    reading = Coded(
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
