"""What of a thread's path had not left the target when the thread ended, was killed, or was looked at (mode `full`).

Runs in the controller. Pure. The target writes its cells and buffers all the time, and may write anything there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import (
    PATH_BUFFER_BYTES,
    PATH_DECISIONS_CELL,
    PATH_LOST_CELL,
    PATH_OTHER_DECISIONS_CELL,
    PATH_SLACK_BYTES,
    PATH_SURPRISES_CELL,
    PATH_SURPRISES_LEFT_CELL,
    PATH_SURPRISES_OFFSET,
    PATH_SYMBOLS_CELL,
    PATH_SYMBOLS_LEFT_CELL,
    PATH_SYMBOLS_OFFSET,
    PathGap,
)
from clew.protocol.codec import (
    FIRST_LONG_SURPRISE,
    FIRST_WIDE_SURPRISE,
    MAX_SURPRISE_BYTES,
    WIDE_SURPRISE_BYTES,
)

__all__ = [
    "CELLS_BYTES",
    "PathTail",
    "are_lost",
    "count_decisions",
    "cut_tail",
    "find_position",
    "left_bytes",
    "read_open_tail",
    "read_tail",
    "used_bytes",
]

Array = npt.NDArray[Any]

_N_CELLS: Final = 8
CELLS_BYTES: Final = 8 * _N_CELLS
"""The window's first bytes, its cells."""


@dataclass(frozen=True)
class PathTail:
    """What was left in a thread's buffers: bytes of surprises and symbols, after so many that had left.

    `decisions` were made behind the last surprise. `is_lost`: it follows something that was dropped, or was left out
    (`is_thinned`), and belongs to nothing.
    """

    surprises_left: int
    surprises: bytes
    symbols_left: int
    symbols: bytes
    decisions: int
    is_lost: bool
    is_thinned: bool = False


def cut_tail(read: Callable[[int, int], bytes]) -> bytes:
    """The used part of a path's window: its cells, then what is in the buffers, and what may have been begun behind.

    `read` reads so many bytes of the window, at an offset.
    """
    cells = read(0, CELLS_BYTES)
    surprises, symbols = used_bytes(_cells_of(cells))[0].tolist()
    behind = PATH_SURPRISES_OFFSET + surprises, MAX_SURPRISE_BYTES
    offsets = (PATH_SURPRISES_OFFSET, surprises), (PATH_SYMBOLS_OFFSET, symbols), behind
    return b"".join([cells, *(read(offset, size) for offset, size in offsets if size)])


def read_tail(tail: bytes) -> PathTail:
    """What `cut_tail` made. Raises ValueError if it is too short."""
    if len(tail) < CELLS_BYTES:
        raise ValueError("a path's tail is cut off")
    rows = _cells_of(tail)
    surprises, symbols = used_bytes(rows)[0].tolist()
    content = tail[CELLS_BYTES:]
    decisions, cells = int(count_decisions(rows)[0]), rows[0].tolist()
    begun = _begun_surprise(content[surprises + symbols :], decisions, is_first_cleared=not cells[PATH_DECISIONS_CELL])
    return PathTail(
        surprises_left=cells[PATH_SURPRISES_LEFT_CELL],
        surprises=content[:surprises] + begun,
        symbols_left=cells[PATH_SYMBOLS_LEFT_CELL],
        symbols=content[surprises : surprises + symbols],
        decisions=0 if begun else decisions,
        is_lost=bool(are_lost(rows)[0]),
        is_thinned=cells[PATH_LOST_CELL] == PathGap.LEFT_OUT,
    )


def read_open_tail(before: bytes, tail: bytes, after: bytes) -> PathTail | None:
    """The same of a thread that goes on, whose cells were read before and after that; None if its buffers were emptied
    meanwhile, or it wrote no path.

    What is in them is only added to. Of its decisions no more are told than were made, as in `find_position`.
    """
    if min(len(before), len(tail), len(after)) < CELLS_BYTES:
        raise ValueError("a path's tail is cut off")
    first, rows, last = (_cells_of(data[:CELLS_BYTES]) for data in (before, tail, after))
    lefts = [PATH_SURPRISES_LEFT_CELL, PATH_SYMBOLS_LEFT_CELL]
    is_whole = (first[0, lefts] == rows[0, lefts]).all() and (rows[0, lefts] == last[0, lefts]).all()
    if not is_whole or are_lost(rows)[0] or are_lost(last)[0] or not rows.any():
        return None
    surprises, symbols = used_bytes(rows)[0].tolist()
    content = tail[CELLS_BYTES:]
    has_moved = first[0, PATH_SURPRISES_CELL] != last[0, PATH_SURPRISES_CELL]
    left = left_bytes(rows)[0].tolist()
    return PathTail(
        surprises_left=left[0],
        surprises=content[:surprises],
        symbols_left=left[1],
        symbols=content[surprises : surprises + symbols],
        decisions=0 if has_moved else int(count_decisions(rows)[0]),
        is_lost=False,
    )


def _begun_surprise(behind: bytes, decisions: int, *, is_first_cleared: bool) -> bytes:
    """The surprise that a thread was killed in, where all of it is `behind` those that count; else there are zeros.

    The decisions that it tells of are in the cells, or were cleared, one cell after the other: `decisions` are left.
    """
    if behind[:1] > b"\0":
        # The lowest byte comes first, also where there are more of them.
        is_all = decisions == behind[0] or (is_first_cleared and decisions < FIRST_WIDE_SURPRISE)
        return behind[:1] if is_all else b""
    if behind[2:3] > b"\0":
        return behind[:WIDE_SURPRISE_BYTES]
    told = int.from_bytes(behind[WIDE_SURPRISE_BYTES:], "little")
    return behind if told >= max(FIRST_LONG_SURPRISE, decisions) else b""


def used_bytes(cells: Array) -> Array:
    """Bytes of surprises and of symbols in the buffers of threads, shape (n, 2), i64, whose `cells` are rows of u64.

    Such a cell counts from its buffer's end, below 0. Where both are 0 the thread was killed before its path began:
    both are never full at once.
    """
    used = cells[:, [PATH_SURPRISES_CELL, PATH_SYMBOLS_CELL]]
    size = used + np.uint64(PATH_BUFFER_BYTES)
    size[(size > PATH_BUFFER_BYTES + PATH_SLACK_BYTES) | ~used.any(axis=1, keepdims=True)] = 0
    found: Array = size.astype(np.int64)
    return found


def left_bytes(cells: Array) -> Array:
    """Bytes of surprises and of symbols that left the buffers of threads, as `used_bytes` has those that are there.

    No more than 2^62 are told, whatever the cells say.
    """
    left: Array = np.minimum(cells[:, [PATH_SURPRISES_LEFT_CELL, PATH_SYMBOLS_LEFT_CELL]], np.uint64(1 << 62))
    return left.astype(np.int64)


def count_decisions(cells: Array) -> Array:
    """How many decisions threads made behind the last surprise, u64, whose `cells` are rows of u64."""
    total: Array = cells[:, PATH_DECISIONS_CELL] + cells[:, PATH_OTHER_DECISIONS_CELL]
    return total


def are_lost(cells: Array) -> Array:
    """Of which threads, whose `cells` are rows of u64, what is in the buffers belongs to nothing; shape (n,), bool."""
    lost: Array = cells[:, PATH_LOST_CELL] != int(PathGap.NONE)
    return lost


def find_position(before: bytes, after: bytes) -> tuple[int, int] | None:
    """How far a path had come, at least, when its cells were read for the second of two times: bytes of surprises, and
    decisions behind the last one. None if it wrote a surprise meanwhile, or there is no path yet.

    Between two surprises the decisions only grow; while one is written some of them are missing, and its byte counts
    last. So what was read before it all can't be more than what was.
    """
    rows = _cells_of(after)
    numbers = (PATH_SURPRISES_CELL, PATH_SURPRISES_LEFT_CELL)
    cells, earlier = rows[0].tolist(), _cells_of(before)[0].tolist()
    if any(earlier[number] != cells[number] for number in numbers) or are_lost(rows)[0] or not any(cells):
        return None
    surprise_bytes = cells[PATH_SURPRISES_LEFT_CELL] + int(used_bytes(rows)[0, 0])
    decisions = int(count_decisions(rows)[0])
    return (surprise_bytes, decisions) if max(surprise_bytes, decisions) < 1 << 63 else None


def _cells_of(data: bytes) -> Array:
    """One row of cells."""
    return np.frombuffer(data, np.uint64, _N_CELLS).reshape(1, -1)
