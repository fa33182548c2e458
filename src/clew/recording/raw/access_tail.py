"""What of a thread's accesses to memory had not left the target when it ended, or was looked at (mode `full`).

Runs in the controller. Pure. The target writes its cells and buffers all the time, and may write anything there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from clew.protocol._generated import (
    PATH_ACCESSES_BUFFER_BYTES,
    PATH_ACCESSES_CELL,
    PATH_ACCESSES_LEAVE,
    PATH_ACCESSES_LEFT_CELL,
    PATH_ACCESSES_OFFSET,
    PATH_ACCESSES_SLACK_BYTES,
)

__all__ = ["cut_accesses", "read_accesses"]

_CELLS: Final = struct.Struct("<QQ")
"""Where the next row goes, counted from the buffer's end, and bytes that left it."""
assert PATH_ACCESSES_LEFT_CELL == PATH_ACCESSES_CELL + 1


def cut_accesses(read: Callable[[int, int], bytes], tail: Callable[[], None] = lambda: None) -> bytes:
    """The used part of the buffer, behind its two cells; nothing if it was emptied meanwhile, or never used.

    `read` reads so many bytes of a thread's counters window, at an offset. What the thread's path has is read by `tail`
    in between: so nothing is missing here of what that says.
    """
    before = read(8 * PATH_ACCESSES_CELL, _CELLS.size)
    tail()
    cells = read(8 * PATH_ACCESSES_CELL, _CELLS.size)
    if min(len(before), len(cells)) < _CELLS.size or before[8:] != cells[8:]:
        return b""
    if _CELLS.unpack(cells)[1] & PATH_ACCESSES_LEAVE:
        return b""
    size = (_CELLS.unpack(cells)[0] + PATH_ACCESSES_BUFFER_BYTES) & (1 << 64) - 1
    if not any(cells) or size > PATH_ACCESSES_BUFFER_BYTES + PATH_ACCESSES_SLACK_BYTES:
        return b""
    rows = read(PATH_ACCESSES_OFFSET, size)
    after = read(8 * PATH_ACCESSES_CELL, _CELLS.size)
    return cells + rows if after[8:] == cells[8:] else b""


def read_accesses(data: bytes) -> tuple[int, bytes]:
    """What `cut_accesses` made: bytes of rows that left the buffer, and those that are in it. Raises ValueError if it
    is too short."""
    if len(data) < _CELLS.size:
        raise ValueError("accesses are cut off")
    return min(_CELLS.unpack_from(data)[1], 1 << 62), data[_CELLS.size :]
