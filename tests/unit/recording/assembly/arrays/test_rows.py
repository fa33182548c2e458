"""Rows found by number and sums by number are what a plain loop finds; spans go when they are unmapped whole."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.recording.assembly.arrays.rows import NumberSet, Rows, add_up, is_in
from clew.recording.assembly.images.mapped import MappedSpans
from clew.recording.raw.process import Counters

# Close together, and now and then far apart: these are looked up in another way.
NUMBER = st.integers(-2, 12) | st.sampled_from([10_000, 1 << 31, 1 << 40])
NUMBERS = st.lists(st.integers(-2, 12), max_size=30) | st.lists(NUMBER, max_size=30)


@given(NUMBERS, NUMBERS)
def test_rows_are_found(numbers: list[int], wanted: list[int]) -> None:
    rows = Rows(np.array(numbers, np.int64))
    found, which = rows.find(np.array(wanted, np.int64))
    there = [(at, number) for at, number in enumerate(numbers) if number >= 0]
    expected = [(at, index) for index, one in enumerate(wanted) for at, number in there if number == one]
    assert list(zip(found.tolist(), which.tolist(), strict=True)) == expected
    first = rows.find_first(np.array(wanted, np.int64)).tolist()
    assert first == [numbers.index(one) if one >= 0 and one in numbers else -1 for one in wanted]
    among = is_in(np.array(wanted, np.int64), np.unique(np.array(numbers, np.int64)))
    assert among.tolist() == [one in numbers for one in wanted]
    held = NumberSet(np.array(numbers[:5], np.int64), np.array(numbers[5:], np.int64)).holds(np.array(wanted, np.int64))
    assert held.tolist() == [one >= 0 and one in numbers for one in wanted]


@given(st.lists(st.tuples(NUMBER.filter(lambda number: number >= 0), st.integers(-5, 5)), max_size=30))
def test_counts_are_added_up(counts: list[tuple[int, int]]) -> None:
    totals: dict[int, int] = {}
    for number, count in counts:
        totals[number] = totals.get(number, 0) + count
    array = np.array(counts, np.int64).reshape(-1, 2)
    numbers, sums = add_up(array[:, 0], array[:, 1])
    assert dict(zip(numbers.tolist(), sums.tolist(), strict=True)) == totals
    assert numbers.tolist() == sorted(totals)


@given(st.lists(st.integers(0, 3), max_size=30), NUMBERS)
def test_counters_are_those_that_counted(values: list[int], wanted: list[int]) -> None:
    counters = Counters.from_values(np.array(values, np.uint64))
    expected = [values[one] if 0 <= one < len(values) else 0 for one in wanted]
    assert counters.at(np.array(wanted, np.int64)).tolist() == expected
    assert counters.last == max((at for at, value in enumerate(values) if value), default=-1)


SPANS = st.tuples(st.booleans(), st.integers(0, 12), st.integers(1, 6))


@given(st.lists(SPANS, max_size=30))
def test_spans_go_when_they_are_unmapped_whole(steps: list[tuple[bool, int, int]]) -> None:
    mapped, there = MappedSpans(), set[tuple[int, int, int]]()
    for number, (is_new, start, size) in enumerate(steps):
        if is_new:
            mapped.add(start, start + size, number)
            there.add((start, start + size, number))
            continue
        gone = {span for span in there if start <= span[0] and span[1] <= start + size}
        assert set(mapped.remove(start, start + size)) == {number for _, _, number in gone}
        there -= gone
