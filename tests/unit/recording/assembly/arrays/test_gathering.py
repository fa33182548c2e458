"""Indices, elements and bits by pieces are those that a plain loop finds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.recording.assembly.arrays import keys
from clew.recording.assembly.arrays.keys import gather, spans
from clew.recording.assembly.records.instruction_starts import InstructionStarts

PIECES = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9)))


def columns(pieces: list[tuple[int, int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Starts and lengths."""
    return np.array([at for at, _ in pieces], np.int64), np.array([n for _, n in pieces], np.int64)


@given(PIECES)
def test_spans_run_on_from_each_start(pieces: list[tuple[int, int]]) -> None:
    start, length = columns(pieces)
    expected = [at + k for at, n in pieces for k in range(n)]
    assert spans(start, length).tolist() == expected


@pytest.mark.parametrize("at_once", [1, 5, 1 << 17])
@given(pieces=PIECES)
def test_what_is_gathered_is_each_piece_in_turn(at_once: int, pieces: list[tuple[int, int]]) -> None:
    data = np.arange(210).astype(np.uint8)
    start, length = columns(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_GATHERED_AT_ONCE", at_once)
        assert gather(data, start, length).tobytes() == b"".join(data[at : at + n].tobytes() for at, n in pieces)


@given(st.binary(max_size=40))
def test_bits_are_counted_as_one_by_one(code: bytes) -> None:
    bits = np.unpackbits(np.frombuffer(code, np.uint8), bitorder="little")
    starts = InstructionStarts(np.frombuffer(code, np.uint8))
    places = np.arange(len(bits))
    assert starts.is_set(places).tolist() == bits.astype(bool).tolist()
    ends = np.arange(len(bits) + 1)
    assert starts.count_before(ends).tolist() == [int(bits[:end].sum()) for end in ends]
