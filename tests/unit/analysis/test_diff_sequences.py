"""Made-up paths as sequences of pieces: cut blocks, numbers of instructions, losses, what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.analysis.comparison.partings import End, Lookahead, Partings
from clew.analysis.comparison.pieces import Pieces
from clew.analysis.comparison.places import Code
from clew.analysis.comparison.sequences import PieceSequence
from clew.analysis.order.thread_path import PathPiece, PathPlace, ThreadPath

Array = Any
CODE = 24
"""So many instructions, of a byte each; a piece is one of them here, unless no block begins or ends inside of it."""


class MadePath:
    """Blocks executed one after the other, `at_once` of them; behind `lost` so many of them it goes on after a loss."""

    def __init__(self, sizes: list[int], executed: list[int], at_once: int = 3, lost: int | None = None) -> None:
        self.sizes, self.executed = sizes, executed
        self._at_once, self._lost = at_once, lost
        # Ids are not rows.
        self.code = SimpleNamespace(block_id=np.arange(len(sizes)) * 3 + 5)

    def iter_pieces(self, start: int = 0) -> Iterator[PathPiece]:
        cuts = {*range(start, len(self.executed), self._at_once), len(self.executed)}
        if self._lost is not None:
            cuts.add(self._lost)
        borders = sorted(cut for cut in cuts if cut >= start)
        for begin, end in pairwise(borders):
            indices = np.array(self.executed[begin:end], np.uint32)
            place = PathPlace(begin, sum(self.sizes[block] for block in self.executed[:begin]))
            yield PathPiece(place, self.code.block_id[indices], indices, begin == self._lost)


def make_sequence(path: MadePath, cuts: list[list[int]], **options: Any) -> PieceSequence:
    """The sequence of a path whose block i is cut into pieces with the numbers `cuts[i]`, of an instruction each; what
    is over of its instructions is of its last piece."""
    count = [len(cut) for cut in cuts]
    first = np.cumsum([0, *count])
    block = np.repeat(np.arange(len(cuts)), count)
    sizes = np.ones(len(block), np.int64)
    sizes[first[1:] - 1] += np.array(path.sizes) - np.array(count)
    number = np.array([number for cut in cuts for number in cut], np.int64)
    pieces = Pieces(number, first, block, np.arange(len(block)) - first[block], sizes, sizes, np.zeros(len(block)))
    code = SimpleNamespace(arrays=SimpleNamespace(block_id=path.code.block_id), refuse=pytest.fail)
    return PieceSequence(cast(ThreadPath, path), cast(Code, code), pieces, **options)


def read_all(ahead: Lookahead) -> list[int]:
    read: list[int] = []
    while len(front := ahead.front()):
        read += front.tolist()
        ahead.skip(len(front))
    return read


def test_whole_blocks_and_cut_ones() -> None:
    path = MadePath([2, 5, 1], [0, 0, 1, 2, 1, 0, 2])
    cuts = [[7], [3, 9], [4]]
    assert read_all(make_sequence(path, cuts).ahead) == [7, 7, 3, 9, 4, 3, 9, 7, 4]
    assert read_all(make_sequence(path, cuts, start=3).ahead) == [4, 3, 9, 7, 4]
    assert read_all(make_sequence(path, cuts, start=4, skipped=1).ahead) == [9, 7, 4]
    assert read_all(make_sequence(MadePath([2, 5, 1], []), cuts).ahead) == []


def test_places() -> None:
    sequence = make_sequence(MadePath([2, 5, 1], [0, 0, 1, 2, 1, 0, 2], at_once=100), [[7], [3, 9], [4]])
    assert sequence.find(0) is None
    sequence.ahead.peek(100)
    found = [sequence.find(position) for position in range(9)]
    assert [(place.piece, place.execution, place.instruction) for place in found if place] == [
        *((0, 0, 0), (0, 1, 2), (1, 2, 4), (2, 2, 5), (3, 3, 9), (1, 4, 10), (2, 4, 11), (0, 5, 15), (3, 6, 17))
    ]
    assert sequence.find_pieces(7, 4) == [0, 3]
    assert sequence.find_place(5) == PathPlace(4, 10)
    # Behind the last one.
    assert sequence.find_place(9) == PathPlace(7, 18)


def test_what_is_left_out() -> None:
    path = MadePath([2, 5, 1], [0, 0, 1, 2, 1, 0, 2])
    is_compared = np.zeros(10, bool)
    is_compared[[9, 4]] = True
    sequence = make_sequence(path, [[7], [3, 9], [4]], is_compared=is_compared)
    assert sequence.ahead.peek(100).tolist() == [9, 4, 9, 4]
    place = sequence.find(2)
    assert place is not None and (place.piece, place.execution, place.instruction) == (2, 4, 11)


@pytest.mark.parametrize("lost", [1, 3, 5])
def test_it_ends_at_a_loss(lost: int) -> None:
    executed = [0, 1, 0, 1, 1, 0, 1]
    cuts, sizes = [[1], [2]], [1, 1]
    cut = make_sequence(MadePath(sizes, executed, lost=lost), cuts)
    whole = make_sequence(MadePath(sizes, executed), cuts)
    partings = Partings(cut.ahead, whole.ahead, 5)
    assert (list(partings), partings.end, cut.ahead.is_cut, whole.ahead.is_cut) == ([], End.A, True, False)
    assert cut.find_place(cut.ahead.position) == PathPlace(lost, lost)
    # From behind it on it is read.
    behind = make_sequence(MadePath(sizes, executed, lost=lost), cuts, start=lost)
    assert read_all(behind.ahead) == [block + 1 for block in executed[lost:]]


def test_the_same_end_is_no_meeting_in_front_of_a_loss() -> None:
    cuts, sizes = [[1], [2], [3]], [1, 1, 1]
    for lost, met in ((None, 2), (3, None)):
        a = make_sequence(MadePath(sizes, [0, 1, 2, 0, 0][: 3 if lost is None else 5], lost=lost), cuts)
        b = make_sequence(MadePath(sizes, [0, 2]), cuts)
        assert [parting.met_a for parting in Partings(a.ahead, b.ahead, 5)] == [met]


borders = st.sets(st.integers(1, CODE - 1))
ways = st.lists(st.integers(0, CODE - 1), min_size=1, max_size=12)


@given(borders, borders, ways, st.integers(1, 5), st.integers(1, 5))
def test_it_does_not_matter_where_blocks_were_cut(
    a: set[int], b: set[int], way: list[int], one: int, other: int
) -> None:
    """A run of straight code, entered at some places: at each it goes on up to the last instruction."""
    cuts = sorted({0, CODE} | a | b | set(way))
    sequences = []
    for own, at_once in ((a, one), (b, other)):
        begins = sorted({0} | own | set(way))
        ends = [*begins[1:], CODE]
        pieces = [[cut for cut in cuts if begin <= cut < end] for begin, end in zip(begins, ends, strict=True)]
        executed = [block for entry in way for block, begin in enumerate(begins) if begin >= entry]
        sizes = [end - begin for begin, end in zip(begins, ends, strict=True)]
        sequences.append(make_sequence(MadePath(sizes, executed, at_once), pieces))
    partings = Partings(sequences[0].ahead, sequences[1].ahead, 1)
    assert (list(partings), partings.end) == ([], End.TOGETHER)
    n = sum(CODE - entry for entry in way)
    assert [side.find_place(side.ahead.position).instruction for side in sequences] == [n, n]
