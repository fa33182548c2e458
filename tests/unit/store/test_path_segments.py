"""Segments as path files have them: what is written is read, and what can't be is refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from clew.store.path_segments import PART, StoredPart, StoredSegment, decode_stored, encode_stored


def _make_segment() -> StoredSegment:
    parts = []
    for number in range(3):
        head = np.zeros(1, PART)[0]
        for at, name in enumerate(("decisions", "pc", "instructions", "n_blocks", "n_surprise_bytes", "checksum")):
            head[name] = number * 100 + at
        parts.append(StoredPart(head, np.arange(number, dtype=np.uint64) << np.uint64(40), bytes([number] * 5)))
    counted = np.array([3, 4, 4000], np.uint32)
    return StoredSegment(7, 1, parts, counted, np.array([[1, 2], [3, 0], [0, 5]], np.uint32))


def test_what_is_written_is_read() -> None:
    segment = _make_segment()
    found = decode_stored(7, 1, encode_stored(segment))
    assert (found.first, found.end, len(found.parts)) == (7, 8, 3)
    for one, other in zip(segment.parts, found.parts, strict=True):
        assert (one.n_blocks, one.sizes, one.coded) == (other.n_blocks, other.sizes, other.coded)
        assert one.head["pc"] == other.head["pc"] and one.calls.tolist() == other.calls.tolist()
    assert [found.count(block).tolist() for block in (3, 4, 5, 4000, 5000)] == [[1, 2], [3, 0], [0, 0], [0, 5], [0, 0]]


def test_what_is_cut_off_is_refused() -> None:
    content = encode_stored(_make_segment())
    for size in range(len(content)):
        with pytest.raises(ValueError, match=r"cut off|impossible"):
            decode_stored(7, 1, content[:size])


@pytest.mark.parametrize(
    ("header", "n_stretches", "reason"),
    [
        ((1, 3, 3), 1, "form 1"),
        ((2, 0, 3), 1, "number of parts"),
        ((2, 3, 3), 2, "number of parts"),
        ((2, 0xFFFFFFFF, 3), 1, "cut off"),
        ((2, 3, 0xFFFFFFFF), 1, "cut off"),
    ],
)
def test_what_can_not_be_is_refused(header: tuple[int, int, int], n_stretches: int, reason: str) -> None:
    content = struct.pack("<III", *header) + encode_stored(_make_segment())[12:]
    with pytest.raises(ValueError, match=reason):
        decode_stored(7, n_stretches, content)


@pytest.mark.parametrize("name", ["n_blocks", "n_surprise_bytes", "n_symbol_bytes"])
def test_sizes_that_would_take_for_ever_are_refused(name: str) -> None:
    segment = _make_segment()
    for part in segment.parts[:2]:
        part.head[name] = 1 << 63
    with pytest.raises(ValueError, match="impossible size"):
        decode_stored(7, 1, encode_stored(segment))
