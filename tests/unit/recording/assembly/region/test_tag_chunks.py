"""Chunks of tags (mode region) are found among other records, however the journal cut them into frames."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.protocol import _generated as protocol
from clew.protocol._generated import (
    RECORD_BYTES,
    REGION_BUFFER_BYTES,
    REGION_NUMBERS_CELL,
    REGION_NUMBERS_LEFT_CELL,
    REGION_WINDOW_BYTES,
    REGION_WORDS_CELL,
    REGION_WORDS_LEFT_CELL,
    REGION_WORDS_OFFSET,
    RecordKind,
)
from clew.recording.assembly.region import tag_chunks
from clew.recording.assembly.region.tag_chunks import TagChunks, without_chunks
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.raw.records import iter_records
from tests.unit.recording.made_up_records import record

EMPTY = -REGION_BUFFER_BYTES % (1 << 64)
CELLS = {REGION_WORDS_CELL: EMPTY, REGION_NUMBERS_CELL: EMPTY}
ODD = record(protocol.EVENT_RECORD, kind=RecordKind.EVENT, tid=1)
LONG = record(protocol.FRAGMENT_RECORD, bytes(range(100)), kind=RecordKind.FRAGMENT, tid=1)


def window(cells: dict[int, int], words: bytes = b"") -> bytes:
    content = bytearray(REGION_WINDOW_BYTES)
    for cell, value in cells.items():
        content[cell * 8 : cell * 8 + 8] = struct.pack("<Q", value)
    content[REGION_WORDS_OFFSET : REGION_WORDS_OFFSET + len(words)] = words
    return bytes(content)


def chunk(stream: int, start: int, data: bytes) -> bytes:
    fields = {"start": start, "size_bytes": len(data), "stream": stream}
    return record(protocol.REGION_CHUNK_RECORD, data, kind=RecordKind.REGION_CHUNK, tid=1, tsc=1, **fields)


def frames(data: bytes, cuts: list[int]) -> list[Frame]:
    """`data` as frames that end behind so many records."""
    borders = [0, *sorted(cuts), len(data) // RECORD_BYTES]
    payloads = [data[first * RECORD_BYTES : last * RECORD_BYTES] for first, last in pairwise(borders)]
    return [Frame(FrameKind.RECORDS, 0, 0, 0, 0, 0, memoryview(payload)) for payload in payloads]


def read(found: list[Frame], rest: bytes) -> tuple[list[int], list[int]]:
    pieces = list(TagChunks(found).iter_pieces(rest))
    words, numbers = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("words", "numbers"))
    return words.tolist(), numbers.tolist()


@given(st.lists(st.integers(0, 12), max_size=6), st.integers(1, 300))
def test_frames_may_end_anywhere(cuts: list[int], piece_bytes: int) -> None:
    words = np.arange(40, dtype="<u4").tobytes()
    data = ODD + chunk(0, 0, words) + LONG + chunk(1, 0, struct.pack("<2Q", 7, 8)) + chunk(0, 160, words) + ODD
    found = frames(data, cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tag_chunks, "_PIECE_BYTES", piece_bytes)
        assert read(found, window(CELLS)) == ([*range(40), *range(40)], [7, 8])
    assert b"".join(part.tobytes() for part in without_chunks(found)) == ODD + LONG + ODD


def test_what_had_not_left_the_buffers() -> None:
    cells = {
        REGION_WORDS_CELL: EMPTY + 8,
        REGION_NUMBERS_CELL: EMPTY,
        REGION_WORDS_LEFT_CELL: 8,
        REGION_NUMBERS_LEFT_CELL: 0,
    }
    data = chunk(0, 0, struct.pack("<2I", 1, 2)) + chunk(0, 400, b"behind a gap")
    assert read(frames(data, []), window(cells, struct.pack("<2I", 3, 4)))[0] == [1, 2, 3, 4]


def test_a_kill_in_the_middle_of_emptying_a_buffer_loses_nothing() -> None:
    """The first chunk has left it, and the cells do not say so yet."""
    cells = CELLS | {REGION_WORDS_CELL: EMPTY + 12}
    data = chunk(0, 0, struct.pack("<2I", 1, 2))
    assert read(frames(data, []), window(cells, struct.pack("<3I", 1, 2, 3)))[0] == [1, 2, 3]


def test_a_chunk_whose_end_is_missing_is_left_out() -> None:
    cut = chunk(0, 0, bytes(100))[:-RECORD_BYTES]
    found = frames(cut + ODD, [])
    assert read(found, window(CELLS)) == ([], [])
    assert b"".join(part.tobytes() for part in without_chunks(found)) == ODD


@given(st.binary(min_size=0, max_size=6 * RECORD_BYTES), st.lists(st.integers(0, 5), max_size=3))
def test_any_bytes_are_read(data: bytes, kinds: list[int]) -> None:
    content = bytearray(data[: len(data) // RECORD_BYTES * RECORD_BYTES])
    for at in kinds:
        if at * RECORD_BYTES < len(content):
            content[at * RECORD_BYTES : at * RECORD_BYTES + 2] = struct.pack("<H", RecordKind.REGION_CHUNK)
    found = frames(bytes(content), [])
    read(found, window({}))
    assert sum(map(len, without_chunks(found))) <= sum(map(len, iter_records(found)))
