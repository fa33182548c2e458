"""Where made-up sequences part and meet again, however they are cut into chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.analysis.comparison.partings import Chunk, End, Lookahead, Parting, Partings, find_meeting

SAME = list(range(100, 140))


def chunks(numbers: Sequence[int], size: int) -> Iterator[Chunk]:
    for start in range(0, len(numbers), size):
        yield Chunk(np.array(numbers[start : start + size], np.int32))
        yield Chunk(np.zeros(0, np.int32))


def compare(
    a: Sequence[int],
    b: Sequence[int],
    *,
    limit: int = 100,
    alike: int = 4,
    window: int = 64,
    sizes: tuple[int, int] = (7, 5),
) -> tuple[list[Parting], End | None]:
    partings = Partings(Lookahead(chunks(a, sizes[0])), Lookahead(chunks(b, sizes[1])), limit, alike, window)
    return list(partings), partings.end


@pytest.mark.parametrize("n", [0, 1, 35, 40])
def test_equal(n: int) -> None:
    assert compare(SAME[:n], SAME[:n]) == ([], End.TOGETHER)


@pytest.mark.parametrize("n", [0, 1, 35, 39])
def test_one_is_the_beginning_of_the_other(n: int) -> None:
    assert compare(SAME[:n], SAME) == ([], End.A)
    assert compare(SAME, SAME[:n]) == ([], End.B)


def test_one_runs_something_more() -> None:
    more = [*SAME[:20], 1, 2, 3, *SAME[20:]]
    assert compare(SAME, more) == ([Parting(20, 20, 20, 23)], End.TOGETHER)
    assert compare(more, SAME) == ([Parting(20, 20, 23, 20)], End.TOGETHER)


def test_each_goes_its_own_way() -> None:
    a, b = [*SAME[:3], 1, 1, *SAME[3:20], 3, *SAME[20:]], [*SAME[:3], 2, *SAME[3:20], *SAME[20:]]
    expected = [Parting(3, 3, 5, 4), Parting(22, 21, 23, 21)]
    assert compare(a, b) == (expected, End.TOGETHER)
    assert compare(a, b, limit=1) == (expected[:1], End.LIMIT)
    assert compare(a, b, limit=0) == ([], End.LIMIT)
    # As many as were asked for, and the rest is the same.
    assert compare(a, b, limit=2) == (expected, End.TOGETHER)


def test_a_loop_that_goes_round_more_often() -> None:
    few, many = [0, *[1, 2, 3] * 10, *SAME], [0, *[1, 2, 3] * 13, *SAME]
    assert compare(few, many) == ([Parting(31, 31, 31, 40)], End.TOGETHER)


def test_what_is_the_same_for_too_short_is_no_meeting() -> None:
    a, b = [0, 1, *SAME[:3], 2, *SAME], [0, 5, *SAME[:3], 6, 6, *SAME]
    assert compare(a, b) == ([Parting(1, 1, 6, 7)], End.TOGETHER)
    assert compare(a, b, alike=3)[0][0] == Parting(1, 1, 2, 2)


def test_the_end_of_both_is_a_meeting() -> None:
    assert compare([*SAME, 1, 9], [*SAME, 2, 2, 9]) == ([Parting(40, 40, 41, 42)], End.TOGETHER)
    assert compare([*SAME, 1, 9], [*SAME, 2, 2, 9, 9]) == ([Parting(40, 40, 41, 43)], End.TOGETHER)


def test_they_never_meet() -> None:
    assert compare([*SAME, 1, 1], [*SAME, 2]) == ([Parting(40, 40, None, None)], End.APART)
    far = [*SAME, *[7] * 64, *SAME]
    assert compare([*SAME, *SAME], far, window=64) == ([Parting(40, 40, None, None)], End.APART)
    assert compare([*SAME, *SAME], far, window=128) == ([Parting(40, 40, 40, 104)], End.TOGETHER)


def test_windows_grow_until_the_nearest_place_is_certain() -> None:
    same = list(range(10_000, 30_000))
    for more in (900, 1000, 1023, 1024, 1100, 9000):
        longer = [*same[:50], *[1] * more, *same[50:]]
        told = compare(same, longer, alike=64, window=1 << 14, sizes=(1 << 12, 1000))
        assert told == ([Parting(50, 50, 50, 50 + more)], End.TOGETHER)


def test_what_is_kept_is_what_lies_around() -> None:
    side = Lookahead(chunks(SAME, 5))
    assert side.front().tolist() == SAME[:5]
    assert side.peek(12).tolist() == SAME[:12]
    side.skip(5)
    assert side.find(4) is not None
    side.skip(3)
    assert side.find(4) is None
    found = side.find(9)
    assert found is not None and found[0].numbers[found[1]] == SAME[9]
    assert side.find(30) is None
    assert side.peek(100).tolist() == SAME[8:]
    side.skip(32)
    assert side.front().tolist() == side.peek(3).tolist() == []


numbers = st.lists(st.integers(0, 3), max_size=60)


@given(numbers, st.integers(1, 9), st.integers(1, 9))
def test_a_sequence_and_itself(a: list[int], one: int, other: int) -> None:
    assert compare(a, a, sizes=(one, other)) == ([], End.TOGETHER)


@settings(max_examples=300)
@given(numbers, numbers, st.integers(1, 5), st.integers(1, 9), st.integers(1, 9))
def test_partings_are_as_told(a: list[int], b: list[int], alike: int, one: int, other: int) -> None:
    partings, end = compare(a, b, alike=alike, sizes=(one, other))
    assert (partings, end) == compare(a, b, alike=alike, sizes=(60, 60))
    at_a = at_b = 0
    for parting in partings:
        # The same up to there, and no further.
        assert parting.a - at_a == parting.b - at_b
        assert a[at_a : parting.a] == b[at_b : parting.b]
        assert a[parting.a] != b[parting.b]
        met = find_slowly(a[parting.a :], b[parting.b :], alike)
        if met is None:
            assert (parting.met_a, parting.met_b, end) == (None, None, End.APART)
            return
        assert parting.met_a is not None and parting.met_b is not None
        at_a, at_b = parting.met_a, parting.met_b
        assert at_a - parting.a + at_b - parting.b == met
    n = min(len(a) - at_a, len(b) - at_b)
    assert a[at_a : at_a + n] == b[at_b : at_b + n]
    assert end == (End.TOGETHER if len(a) - at_a == len(b) - at_b else End.A if len(a) - at_a == n else End.B)


@given(numbers, numbers)
def test_the_other_way_round_it_is_mirrored(a: list[int], b: list[int]) -> None:
    there, end = compare(a, b, limit=1)
    back, other_end = compare(b, a, limit=1)
    assert [(parting.a, parting.b) for parting in there] == [(parting.b, parting.a) for parting in back]
    sums = [[(parting.met_a or 0) + (parting.met_b or 0) for parting in found] for found in (there, back)]
    assert sums[0] == sums[1]
    if not there:
        assert other_end == {End.A: End.B, End.B: End.A}.get(end or End.APART, end)


def find_slowly(a: list[int], b: list[int], alike: int) -> int | None:
    ends = [-1] * (alike - 1)
    a, b = a + ends, b + ends
    for total in range(len(a) + len(b)):
        for i in range(total + 1):
            run = a[i : i + alike]
            if len(run) == alike and run == b[total - i : total - i + alike]:
                return total
    return None


def test_meeting_of_arrays_too_short() -> None:
    assert find_meeting(np.arange(3), np.arange(3), 4) is None
    assert find_meeting(np.arange(4), np.arange(4), 4) == (0, 0)
