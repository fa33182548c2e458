"""What is left of a path in a thread's buffers."""

from __future__ import annotations

import numpy as np

from clew.protocol._generated import (
    PATH_BUFFER_BYTES,
    PATH_DECISIONS_CELL,
    PATH_SURPRISES_CELL,
    PATH_SURPRISES_OFFSET,
    PATH_SYMBOLS_CELL,
    PATH_WINDOW_BYTES,
)
from clew.recording.path_tail import cut_tail, read_tail


def test_what_is_in_the_buffers_is_cut_out_and_read() -> None:
    window = np.zeros(PATH_WINDOW_BYTES // 8, np.uint64)
    empty = (1 << 64) - PATH_BUFFER_BYTES
    window[PATH_SURPRISES_CELL], window[PATH_SYMBOLS_CELL], window[PATH_DECISIONS_CELL] = empty + 3, empty, 7
    data = bytearray(window.tobytes())
    data[PATH_SURPRISES_OFFSET : PATH_SURPRISES_OFFSET + 3] = b"abc"
    tail = read_tail(cut_tail(bytes(data)))
    assert (tail.surprises, tail.symbols, tail.decisions, tail.is_lost) == (b"abc", b"", 7, False)


def test_a_thread_killed_before_its_path_began_left_nothing() -> None:
    tail = read_tail(cut_tail(bytes(PATH_WINDOW_BYTES)))
    assert (tail.surprises, tail.symbols) == (b"", b"")
