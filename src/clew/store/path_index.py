"""The index at the end of a path's file: what is in it, and where.

Runs in the controller. The frame's content is the length (u32) of a JSON object of facts, this, and two tables with
their bytes shuffled: the frames of the file, of dtype FRAME, and its checkpoints, of dtype PLACE. Behind the frame, at
the very end, stand its offset (u64) and a magic number (u64), so that it is found.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.store.path_checkpoints import shuffle, unshuffle
from clew.store.path_frames import LEVEL, Frame, FrameKind, pack_frame, read_header, read_payload

__all__ = ["FRAME", "PLACE", "PathFacts", "PathIndex", "encode_index", "list_frames", "read_index"]

Array = npt.NDArray[Any]

FRAME: Final = np.dtype(
    [
        ("kind", "<u4"),
        ("stored_bytes", "<u4"),
        ("content_bytes", "<u4"),
        ("reserved", "<u4"),
        ("start", "<u8"),
        ("size", "<u8"),
        ("offset", "<u8"),
    ]
)
"""A frame, as `clew.store.path_frames.Frame` has it."""

PLACE: Final = np.dtype(
    [
        ("tsc", "<u8"),
        ("surprise_bytes", "<u8"),
        ("symbol_bytes", "<u8"),
        ("events", "<u8"),
        ("instructions", "<u8"),
        ("block_executions", "<u8"),
        ("is_after_loss", "<u8"),
    ]
)
"""A checkpoint: how many bytes of the streams, events, instructions and executions of blocks lie before it."""

_TRAILER: Final = struct.Struct("<QQ")
_MAGIC: Final = 0x5845444E4957454C


@dataclass(frozen=True)
class PathFacts:
    """A path as a whole: the thread's, how much of what it executed, what is in the file.

    `decisions` were made behind the last surprise. `is_lost_at_end`: what came after the last event was dropped,
    or left out (`is_thinned_at_end`).
    `tsc` was at `ns` (CLOCK_REALTIME), and another tick came every `ns_per_tick`. `is_compact`: `clew compact` wrote
    it.
    """

    pid: int
    tid: int
    process_id: int
    instructions: int
    block_executions: int
    surprise_bytes: int
    symbol_bytes: int
    events: int
    decisions: int
    is_lost_at_end: bool
    tsc: int
    ns: int
    ns_per_tick: float
    is_compact: bool = False
    is_thinned_at_end: bool = False


@dataclass(frozen=True)
class PathIndex:
    """The index: facts, frames of dtype FRAME, checkpoints of dtype PLACE."""

    facts: PathFacts
    frames: Array
    places: Array


def list_frames(frames: list[Frame]) -> Array:
    """The index's table of frames."""
    rows = [(one.kind, one.stored_bytes, one.content_bytes, 0, one.start, one.size, one.offset) for one in frames]
    return np.array(rows, FRAME)


def encode_index(index: PathIndex, offset: int, level: int = LEVEL) -> bytes:
    """The end of a file, from `offset` on, that makes it whole."""
    facts = json.dumps(vars(index.facts)).encode("ascii")
    content = b"".join([len(facts).to_bytes(4, "little"), facts, shuffle(index.frames), shuffle(index.places)])
    return pack_frame(FrameKind.INDEX, 0, len(index.frames), content, level) + _TRAILER.pack(offset, _MAGIC)


def find_index(file: BinaryIO) -> Frame | None:
    """The frame of the index, if the file is whole."""
    size_bytes = file.seek(0, os.SEEK_END)
    if size_bytes < _TRAILER.size:
        return None
    file.seek(size_bytes - _TRAILER.size)
    offset, magic = _TRAILER.unpack(file.read(_TRAILER.size))
    if magic != _MAGIC or offset >= size_bytes:
        return None
    frame = read_header(file, offset)
    return frame if frame is not None and frame.kind == FrameKind.INDEX else None


def read_index(file: BinaryIO) -> PathIndex:
    """The index of a file. Raises ValueError if it has none, or a damaged one."""
    frame = find_index(file)
    if frame is None:
        raise ValueError("the index is missing")
    content = read_payload(file, frame)
    facts_end = 4 + int.from_bytes(content[:4], "little")
    frames_end = facts_end + frame.size * FRAME.itemsize
    try:
        facts = PathFacts(**json.loads(content[4:facts_end]))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError("the index is damaged") from error
    if not all(isinstance(value, int | float) for value in vars(facts).values()) or len(content) < frames_end:
        raise ValueError("the index is damaged")
    return PathIndex(facts, unshuffle(content[facts_end:frames_end], FRAME), unshuffle(content[frames_end:], PLACE))
