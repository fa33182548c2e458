"""What is left of a path in a thread's buffers."""

from __future__ import annotations

import numpy as np

from clew.protocol._generated import (
    PATH_BUFFER_BYTES,
    PATH_DECISIONS_CELL,
    PATH_LOST_CELL,
    PATH_OTHER_DECISIONS_CELL,
    PATH_SURPRISES_CELL,
    PATH_SURPRISES_LEFT_CELL,
    PATH_SURPRISES_OFFSET,
    PATH_SYMBOLS_CELL,
    PATH_WINDOW_BYTES,
)
from clew.recording.raw.path_tail import CELLS_BYTES, cut_tail, find_position, read_open_tail, read_tail


def test_what_is_in_the_buffers_is_cut_out_and_read() -> None:
    window = np.zeros(PATH_WINDOW_BYTES // 8, np.uint64)
    empty = (1 << 64) - PATH_BUFFER_BYTES
    window[PATH_SURPRISES_CELL], window[PATH_SYMBOLS_CELL], window[PATH_DECISIONS_CELL] = empty + 3, empty, 7
    data = bytearray(window.tobytes())
    data[PATH_SURPRISES_OFFSET : PATH_SURPRISES_OFFSET + 3] = b"abc"
    tail = read_tail(cut_tail(lambda offset, size: bytes(data[offset : offset + size])))
    assert (tail.surprises, tail.symbols, tail.decisions, tail.is_lost) == (b"abc", b"", 7, False)


def _cells(surprises: int = 0, decisions: int = 0, others: int = 0, left: int = 0, lost: int = 0) -> bytes:
    cells = np.zeros(CELLS_BYTES // 8, np.uint64)
    cells[PATH_SURPRISES_CELL] = (1 << 64) - PATH_BUFFER_BYTES + surprises
    cells[PATH_SYMBOLS_CELL] = (1 << 64) - PATH_BUFFER_BYTES
    cells[PATH_DECISIONS_CELL], cells[PATH_OTHER_DECISIONS_CELL] = decisions, others
    cells[PATH_SURPRISES_LEFT_CELL], cells[PATH_LOST_CELL] = left, lost
    return cells.tobytes()


def test_a_position_is_what_both_looks_agree_about() -> None:
    assert find_position(_cells(3, 5, 6, left=100), _cells(3, 7, 8, left=100)) == (103, 15)
    # A surprise was written meanwhile, or the buffer left.
    assert find_position(_cells(3, 5, 6), _cells(4, 1, 0)) is None
    assert find_position(_cells(3, 5, 6), _cells(3, 1, 0, left=1)) is None
    # What was dropped is no place of the path.
    assert find_position(_cells(3, 5, 6, lost=1), _cells(3, 5, 6, lost=1)) is None
    # There is no path yet.
    assert find_position(bytes(CELLS_BYTES), bytes(CELLS_BYTES)) is None
    # What the target may write is not believed.
    assert find_position(_cells(decisions=1 << 63), _cells(decisions=1 << 63)) is None


def test_a_thread_killed_before_its_path_began_left_nothing() -> None:
    tail = read_tail(cut_tail(lambda _, size: bytes(size)))
    assert (tail.surprises, tail.symbols) == (b"", b"")


def _killed(behind: bytes, decisions: int, others: int = 0) -> tuple[bytes, int]:
    """What is read of a thread that was killed with `behind` behind its surprises."""
    data = _cells(3, decisions, others).ljust(PATH_SURPRISES_OFFSET, b"\0") + b"abc" + behind
    tail = read_tail(cut_tail(lambda offset, size: data.ljust(1 << 18, b"\0")[offset : offset + size]))
    assert tail.surprises[:3] == b"abc"
    return tail.surprises[3:], tail.decisions


def test_a_surprise_that_a_thread_was_killed_in_counts_where_all_of_it_is_there() -> None:
    assert _killed(b"", 7) == (b"", 7)
    # One byte: neither cell is cleared, one of them, or both.
    assert _killed(b"\x11", 0x10, 1) == (b"\x11", 0)
    assert _killed(b"\x11", 0, 1) == (b"\x11", 0)
    assert _killed(b"\x11", 0) == (b"\x11", 0)
    # Of three the lowest comes first, then a zero in its place.
    assert _killed(b"\x11", 0x311) == (b"", 0x311)
    assert _killed(b"\0\x11", 0x311) == (b"", 0x311)
    assert _killed(b"\0\x11\x03", 0x311) == (b"\0\x11\x03", 0)
    assert _killed(b"\0\x11\x03", 0) == (b"\0\x11\x03", 0)
    long = bytes(3) + (0x20011).to_bytes(8, "little")
    assert _killed(long, 0x20010, 1) == (long, 0)
    assert _killed(long, 0) == (long, 0)
    assert _killed(long[:4], 0x20011) == (b"", 0x20011)


def test_of_a_thread_that_goes_on_no_more_is_taken_than_it_did() -> None:
    tail = _cells(3, 7, 2, left=100) + b"abc" + b"what it writes next"
    found = read_open_tail(_cells(3, 6, left=100), tail, _cells(3, 9, 2, left=100))
    assert found is not None
    assert (found.surprises_left, found.surprises, found.symbols, found.decisions) == (100, b"abc", b"", 9)
    # It wrote a surprise meanwhile: those before it count, but no decisions.
    found = read_open_tail(_cells(2, 6, left=100), tail, _cells(4, left=100))
    assert found is not None and (found.surprises, found.decisions) == (b"abc", 0)
    # The buffer left, what is in it belongs to nothing, or no path began.
    assert read_open_tail(_cells(3, left=100), tail, _cells(3, left=103)) is None
    assert read_open_tail(_cells(3), tail, _cells(3, left=100)) is None
    lost = _cells(3, 7, 2, left=100, lost=1)
    assert read_open_tail(_cells(3, left=100), lost + b"abc", lost) is None
    assert read_open_tail(bytes(CELLS_BYTES), bytes(CELLS_BYTES), bytes(CELLS_BYTES)) is None
