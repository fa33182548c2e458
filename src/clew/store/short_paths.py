"""Paths of short threads: many in one file below `paths/` of a trace, a frame for some hundreds of them.

Runs in the controller. A thread that did next to nothing would need a file, an index and three frames for some bytes.
Such a path is named by its file and its number in it (`short_name`), and is read as the file that it would have had.
A frame's `start` is the number of its first path and `size` how many there are. Its content is a header, little-endian;
shuffled rows of dtype SHORT_PATH; the events of all paths, shuffled; their surprises; and their symbols:

    pid u32 | process_id u32 | tsc u64 | ns i64 | ns_per_tick f64

What these mean is in `clew.store.path_index.PathFacts`.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass, replace
from clew.protocol._generated import PATH_EVENT_RECORD
from clew.store.path_checkpoints import find_states, shuffle, unshuffle
from clew.store.path_frames import HEADER_BYTES, Frame, FrameKind, iter_frames, pack_frame, read_payload
from clew.store.path_index import PLACE, PathFacts, PathIndex, encode_index, list_frames

__all__ = ["SHORT_PATH", "ShortPaths", "encode_short", "read_short", "short_file_name", "short_name", "split_name"]

Array = npt.NDArray[Any]

SHORT_PATH: Final = np.dtype(
    [
        ("tid", "<u4"),
        ("n_events", "<u4"),
        ("surprise_bytes", "<u4"),
        ("symbol_bytes", "<u4"),
        ("events_reached", "<u8"),
        ("decisions", "<u8"),
        ("instructions", "<i8"),
        ("block_executions", "<i8"),
    ]
)
"""A path: how many events and bytes it has in the frame; `events_reached` of the events lie where its streams end or
before (`events` of `PathFacts`). Its thread lost nothing and has no checkpoint."""

_HEAD: Final = struct.Struct("<IIQqd")
_MARK: Final = "#"
_KEPT_FRAMES: Final = 4


@dataclass(frozen=True)
class ShortPaths:
    """The paths of a frame. `facts` are those of their process; events have dtype PATH_EVENT_RECORD."""

    facts: PathFacts
    rows: Array
    events: Array
    surprises: bytes
    symbols: bytes


def short_file_name(process: int) -> str:
    """Name of the file of the short paths of a process, by its number in the journal."""
    return f"{process}.paths"


def short_name(file: str, number: int) -> str:
    """What stands for a path in a file of many."""
    return f"{file}{_MARK}{number}"


def split_name(name: str) -> tuple[str, int | None]:
    """The file that a path is in, and its number there if it is one of many."""
    file, mark, number = name.partition(_MARK)
    return (file, int(number)) if mark and number.isdecimal() else (name, None)


def encode_short(start: int, paths: ShortPaths) -> bytes:
    """A frame."""
    facts = paths.facts
    head = _HEAD.pack(facts.pid, facts.process_id, facts.tsc, facts.ns, facts.ns_per_tick)
    content = b"".join([head, shuffle(paths.rows), shuffle(paths.events), paths.surprises, paths.symbols])
    return pack_frame(FrameKind.SHORT, start, len(paths.rows), content)


def decode_short(content: bytes, n: int) -> ShortPaths:
    """The content of a frame of `n` paths. Raises ValueError if that can't be."""
    rows_end = _HEAD.size + n * SHORT_PATH.itemsize
    if n > len(content) or rows_end > len(content):
        raise ValueError("a frame of short paths is cut off")
    pid, process_id, tsc, ns, ns_per_tick = _HEAD.unpack_from(content)
    rows = unshuffle(content[_HEAD.size : rows_end], SHORT_PATH)
    n_events, surprise_bytes, symbol_bytes = (
        int(rows[name].sum(dtype=np.int64)) for name in ("n_events", "surprise_bytes", "symbol_bytes")
    )
    events_end = rows_end + n_events * PATH_EVENT_RECORD.itemsize
    symbols_at = events_end + surprise_bytes
    if symbols_at + symbol_bytes != len(content):
        raise ValueError("a frame of short paths contradicts itself")
    return ShortPaths(
        PathFacts(pid, 0, process_id, 0, 0, 0, 0, 0, 0, False, tsc, ns, ns_per_tick),
        rows,
        unshuffle(content[rows_end:events_end], PATH_EVENT_RECORD),
        content[events_end:symbols_at],
        content[symbols_at:],
    )


def read_short(path: Path, number: int) -> bytes:
    """The file that path `number` of the file at `path` would have. Raises OSError, and ValueError if it is damaged."""
    status = path.stat()
    with open(path, "rb") as file:
        for frame in iter_frames(file):
            if frame.kind == FrameKind.SHORT and frame.start <= number < frame.end:
                identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
                return _expand(_read(path, frame, identity), number - frame.start)
    raise ValueError(f"path {number} is missing")


@lru_cache(_KEPT_FRAMES)
def _read(path: Path, frame: Frame, _identity: tuple[int, ...]) -> ShortPaths:
    with open(path, "rb") as file:
        return decode_short(read_payload(file, frame), frame.size)


def _expand(paths: ShortPaths, at: int) -> bytes:
    row = paths.rows[at]
    n_events, surprise_bytes, symbol_bytes = (
        slice(int(before), int(before) + int(row[name]))
        for name in ("n_events", "surprise_bytes", "symbol_bytes")
        for before in (paths.rows[name][:at].sum(dtype=np.int64),)
    )
    events = paths.events[n_events]
    states = find_states(events, 0)
    contents = (
        (FrameKind.SURPRISES, surprise_bytes.stop - surprise_bytes.start, paths.surprises[surprise_bytes]),
        (FrameKind.SYMBOLS, symbol_bytes.stop - symbol_bytes.start, paths.symbols[symbol_bytes]),
        (FrameKind.EVENTS, len(events), shuffle(events)),
        (FrameKind.STATES, len(states), shuffle(states)),
    )
    parts: list[bytes] = []
    frames: list[Frame] = []
    offset = 0
    for kind, size, content in contents:
        if size:
            parts.append(pack_frame(kind, 0, size, content))
            frames.append(Frame(kind, 0, size, len(parts[-1]) - HEADER_BYTES, len(content), offset))
            offset += len(parts[-1])
    facts = replace(
        paths.facts,
        tid=int(row["tid"]),
        instructions=int(row["instructions"]),
        block_executions=int(row["block_executions"]),
        surprise_bytes=int(row["surprise_bytes"]),
        symbol_bytes=int(row["symbol_bytes"]),
        events=int(row["events_reached"]),
        decisions=int(row["decisions"]),
    )
    return b"".join([*parts, encode_index(PathIndex(facts, list_frames(frames), np.zeros(0, PLACE)), offset)])
