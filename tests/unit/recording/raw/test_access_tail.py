"""What is in a thread's buffer of accesses is believed only where nothing left it meanwhile."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from clew.protocol._generated import (
    PATH_ACCESSES_BUFFER_BYTES,
    PATH_ACCESSES_CELL,
    PATH_ACCESSES_LEAVE,
    PATH_ACCESSES_OFFSET,
    PATH_ACCESSES_SLACK_BYTES,
)
from clew.recording.raw.access_tail import cut_accesses, read_accesses

Read = Callable[[int, int], bytes]


def window(cells: list[tuple[int, int]], rows: bytes = b"") -> Read:
    """Reads a window whose cells are as these say, each time that they are read; the last ones from then on."""
    left = list(cells)

    def read(offset: int, size: int) -> bytes:
        if offset == 8 * PATH_ACCESSES_CELL:
            used, gone = left.pop(0) if len(left) > 1 else left[0]
            return struct.pack("<QQ", (used - PATH_ACCESSES_BUFFER_BYTES) & (1 << 64) - 1, gone)
        assert offset == PATH_ACCESSES_OFFSET
        return rows[:size]

    return read


def test_what_is_there_is_told_with_what_left() -> None:
    rows = bytes(range(48))
    assert read_accesses(cut_accesses(window([(48, 240)], rows))) == (240, rows)
    assert read_accesses(cut_accesses(window([(24, 0), (48, 0), (72, 0)], rows))) == (0, rows), "more came meanwhile"
    assert read_accesses(cut_accesses(window([(0, 240)]))) == (240, b"")


def test_the_path_is_read_in_between() -> None:
    order: list[str] = []
    read = window([(24, 0)], bytes(24))

    def note(offset: int, size: int) -> bytes:
        order.append("cells" if offset == 8 * PATH_ACCESSES_CELL else "rows")
        return read(offset, size)

    cut_accesses(note, lambda: order.append("path"))
    assert order == ["cells", "path", "cells", "rows", "cells"]


@pytest.mark.parametrize(
    "cells",
    [
        [(48, 0), (0, 48), (0, 48)],
        [(48, 0), (48, 0), (0, 48)],
        [(0, PATH_ACCESSES_LEAVE), (0, PATH_ACCESSES_LEAVE)],
        [(PATH_ACCESSES_BUFFER_BYTES, 0)],
        [(PATH_ACCESSES_BUFFER_BYTES + PATH_ACCESSES_SLACK_BYTES + 1, 9)],
        [(1 << 40, 9)],
    ],
    ids=["left-before", "left-behind", "leaving", "never-used", "too-much", "nonsense"],
)
def test_what_may_be_wrong_is_nothing(cells: list[tuple[int, int]]) -> None:
    assert cut_accesses(window(cells, bytes(48))) == b""


def test_what_is_cut_off_is_told() -> None:
    assert cut_accesses(lambda _offset, _size: b"short") == b""
    with pytest.raises(ValueError, match="cut off"):
        read_accesses(b"short")
