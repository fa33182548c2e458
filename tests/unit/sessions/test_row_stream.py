"""Rows come in pieces, and go in any number, whatever was missing or came twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.sessions.events.row_stream import RowStream

DTYPE = np.dtype([("number", "<u4"), ("rest", "<u4")])


def rows(first: int, n: int) -> bytes:
    table = np.zeros(n, DTYPE)
    table["number"] = np.arange(first, first + n)
    return table.tobytes()


def numbers(stream: RowStream) -> list[int]:
    found: list[int] = stream.rows["number"].tolist()
    return found


def test_pieces_stay_apart_and_go_one_by_one() -> None:
    stream = RowStream(DTYPE)
    assert not stream.is_any and not len(stream.rows)
    stream.add(0, rows(0, 2))
    stream.add(16, rows(2, 3))
    assert (numbers(stream), stream.has_more) == ([0, 1], True)
    stream.let_go(8)
    assert numbers(stream) == [1] and stream.start == 8
    stream.let_go(16)
    assert (numbers(stream), stream.has_more) == ([2, 3, 4], False)
    stream.let_go(1000)
    assert (stream.is_any, stream.start, stream.end) == (False, 40, 40)


def test_an_open_piece_grows() -> None:
    stream = RowStream(DTYPE)
    stream.add(0, rows(0, 2), is_open=True)
    stream.add(0, rows(0, 4))
    assert numbers(stream) == [0, 1, 2, 3] and not stream.has_more
    stream.add(0, rows(0, 2), is_open=True)
    assert numbers(stream) == [0, 1, 2, 3], "it was there already"


def test_before_what_is_missing_nothing_is_kept() -> None:
    stream = RowStream(DTYPE)
    stream.add(0, rows(0, 2))
    stream.add(80, rows(10, 1))
    assert numbers(stream) == [10] and stream.start == 80


def test_nothing_is_read_behind_the_limit() -> None:
    stream = RowStream(DTYPE)
    stream.add(0, rows(0, 2))
    stream.add(16, rows(2, 2))
    for limit, first, more, any_ in ((0, [], False, False), (8, [0], False, True), (24, [0, 1], True, True)):
        stream.limit = limit
        assert (numbers(stream), stream.has_more, stream.is_any) == (first, more, any_)
    stream.let_go(16)
    assert numbers(stream) == [2] and not stream.has_more


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.integers(0, 8)), max_size=12))
def test_all_rows_are_read_once_in_order(steps: list[tuple[int, bool, int]]) -> None:
    stream, came, read = RowStream(DTYPE), 0, []
    for n, is_open, n_taken in steps:
        stream.add(8 * came, rows(came, n), is_open=is_open)
        came += n
        for _ in range(n_taken):
            if len(stream.rows):
                read.append(numbers(stream)[0])
                stream.let_go(stream.start + 8)
    while len(stream.rows):
        read.extend(numbers(stream))
        stream.let_go(stream.start + 8 * len(stream.rows))
    assert read == list(range(came))
